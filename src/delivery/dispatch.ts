/**
 * Sends claimed jobs on their way: the router decides where each goes, and the site there sends it. Results come back as outcomes, unsent
 * jobs return to the spool.
 */
import type { Clock, Config, Ids, Log, Secrets } from '#base'
import type { Db } from '#db'
import type { Domains } from '#domains'
import { CostlyHandshakes, openResolver, type Resolver } from '#net'
import type { Scenario } from '#simulator'
import type { Dial, SmtpLimits } from '#smtp'
import type { Claimed, Lane, Leases, QueuePause, RetrySchedule } from '#spool'
import type { Tenants } from '#tenants'
import { firstUsable, signalOf, type TransportHealths } from './assign-transports.ts'
import { type AttemptResult, decideOutcome, noRemote, type Outcome } from './attempt-outcome.ts'
import { DivertedJobs } from './diverted-jobs.ts'
import { maxPostponeMs } from './egress/pool-wait.ts'
import type { InFlight } from './in-flight.ts'
import type { Job, JobResult } from './job.ts'
import { openMailGuard } from './mail-ssrf-guard.ts'
import { MessagePreparer } from './prepare-messages.ts'
import { type Requeue, UnsentJobs } from './requeue.ts'
import { type LookedUpRoute, openRouteLookup, withoutTlsPolicies } from './route-lookup.ts'
import { type DeliveryRoute, Router } from './router.ts'
import type { Providers } from './shaping/providers.ts'
import type { TrafficShaper } from './shaping/shaping.ts'
import { sendToSimulator } from './simulated-delivery.ts'
import type { Destroyed } from './site.ts'
import { Sites } from './sites.ts'
import type { TlsSessions } from './tls/tls-sessions.ts'
import type { Transport } from './transports/transport-records.ts'

/** The first backoff of a site that accepts no message (adaptive limits); twice as long as a failed connection counts. */
const usualBlockedMs = 30_000
/** A full queue of a transport is looked at again after this time. */
const busyMs = 2000

export interface DispatchDeps extends Requeue {
  db: Db
  clock: Clock
  ids: Ids
  log: Log
  secrets: Secrets
  domains: Domains
  tenants: Tenants
  config: Pick<Config, 'hostname' | 'mxPort' | 'mtaStsPort' | 'relay' | 'resolvers' | 'trustedResolvers' | 'allowedNetworks'>
  leases: Pick<Leases, 'owns'>
  inFlight: Pick<InFlight, 'assign'>
  /** The active queue pauses. */
  pauses: () => Promise<readonly QueuePause[]>
  shaper: TrafficShaper
  providers: Providers
  schedule: RetrySchedule
  transportHealths: TransportHealths
  /** Passes outcomes to the recorder; the recipients are then no longer in flight. */
  finished: (outcomes: Outcome[]) => void
  /** Behaviour of hosts in the simulated network, in addition to the simulator's own addresses. */
  scenario?: Scenario | undefined
  /** Replaces the real network: the resolver that answers DNS queries, and the function that opens connections. */
  outside?: { resolver: Resolver; dial: Dial } | undefined
  /** Undefined: sessions are not counted for TLS reports. */
  tlsSessions?: TlsSessions | undefined
  /** Overrides of the default timeouts. */
  bounds?: { smtp?: Partial<SmtpLimits>; dnsQueryMs?: number; downForMs?: number } | undefined
}

export class Dispatch {
  readonly #deps: DispatchDeps
  readonly #messages: MessagePreparer
  readonly #unsent: UnsentJobs
  readonly #router: Router
  readonly #sites: Sites
  readonly #diverted: DivertedJobs
  readonly #lookUp: (domain: string, job: Job) => void
  #isClosing = false

  constructor(deps: DispatchDeps) {
    const { db, clock, ids, log, config, leases, schedule, outside, bounds } = deps
    const resolver = outside?.resolver ?? openResolver({ servers: config.resolvers, clock, ids, queryMs: bounds?.dnsQueryMs })
    const guard = openMailGuard(deps)
    const messages = new MessagePreparer(deps)
    const release = (job: Job) => messages.release(job)
    const { finished, requeue, postpone } = deps
    const unsent = new UnsentJobs({ clock, ids, schedule, release, finished, requeue, postpone })
    this.#deps = deps
    this.#messages = messages
    this.#unsent = unsent
    this.#diverted = new DivertedJobs({
      db,
      log,
      defaultName: defaultNameOf(config),
      // The process may have begun to stop while the transport was stored. A closed site has given back its queue and no longer sends.
      send: (jobs) => {
        if (!this.#isClosing) return this.send(jobs)
        for (const job of jobs) unsent.requeue(job)
      },
      requeue: (job) => unsent.requeue(job),
    })
    this.#router = new Router({ clock, config, providers: deps.providers, guard })
    this.#sites = new Sites({
      db,
      clock,
      config,
      shaper: deps.shaper,
      postponeDomains: (jobs, forMs, reason) => this.#postpone(jobs, forMs, reason),
      requeue: (job) => unsent.requeue(job),
      postpone: (job, forMs, reason) => unsent.postpone(job, forMs, reason),
      site: {
        clock,
        log,
        resolver,
        prepare: (job) => messages.prepare(job),
        release,
        leaseStillHeld: ({ recipients: [first] }) => leases.owns(first.shard, first.epoch),
        done: (result) => this.#report(result),
        requeue: (job) => unsent.requeue(job),
        postponeUnprepared: (job, forMs, reason) => unsent.postpone(job, forMs, reason),
        divert: (job) => this.#divert(job),
        isLastTry: (job) => unsent.isLastTry(job),
        postpone: (job, forMs, reason) => unsent.postponeLastTry(job, forMs, reason),
        smtpLimits: bounds?.smtp,
        downForMs: bounds?.downForMs,
        dial: outside?.dial,
        costlyHandshakes: new CostlyHandshakes(clock),
        tlsSessions: deps.tlsSessions,
      },
    })
    const { pauses } = deps
    const found = (domain: string, route: LookedUpRoute | undefined, jobs: readonly Job[]) => this.#routeFound(domain, route, jobs)
    this.#lookUp = openRouteLookup({ db, clock, ids, log, config, resolver, guard, pauses, found })
  }

  send(jobs: readonly Job[]): void {
    const refused: Job[] = []
    for (const job of jobs) {
      const route = this.#router.withoutLookup(job)
      if (route) refused.push(...this.#follow(route, [job]))
      else this.#lookUp(job.recipients[0].recipientDomain, job)
    }
    this.#unsent.requeueAll(refused)
  }

  /** Recipient domains for which no more mail is to be claimed now. */
  suspendedDomains(): string[] {
    return this.#unsent.suspendedDomains()
  }

  /** The same for single tenants: lanes from which no more mail is to be claimed now. */
  suspendedLanes(): Lane[] {
    return [...this.#sites.suspendedLanes(), ...this.#unsent.suspendedLanes()]
  }

  /** Removes and returns every recipient that no connection has started. */
  takeUnstarted(): Claimed[] {
    return this.#sites.takeUnstarted()
  }

  /** Starts no more transactions. */
  close(): void {
    this.#isClosing = true
    this.#sites.close()
  }

  /** Ends these connections at once; returns the number of the others, whose servers have yet to answer a final dot. */
  destroy(which: Destroyed): number {
    return this.#sites.destroy(which)
  }

  #routeFound(domain: string, found: LookedUpRoute | undefined, jobs: readonly Job[]): void {
    if (!found || this.#isClosing) {
      for (const job of jobs) this.#deps.requeue(job.recipients)
      return
    }
    const { true: free = [], false: bound = [] } = Object.groupBy(jobs, (job) => (ignoresTlsPolicies(job) ? 'true' : 'false'))
    const refused = [
      ...(bound.length > 0 ? this.#follow(this.#router.ofDomain(domain, found), bound) : []),
      ...(free.length > 0 ? this.#follow(this.#router.ofDomain(domain, withoutTlsPolicies(found)), free) : []),
    ]
    this.#unsent.requeueAll(refused)
  }

  /** Returns the jobs for which their provider has no place now. */
  #follow(route: DeliveryRoute, jobs: readonly Job[]): Job[] {
    if (route.kind === 'pause') this.#unsent.postponeRoute(jobs, route.forMs, route.reason, route.suspensionMs)
    else if (route.kind === 'simulator') for (const job of jobs) this.#simulate(job)
    else if (route.kind === 'fail') for (const job of jobs) this.#fail(job, route)
    else return jobs.filter((job) => !this.#addToSite(route, job))
    return []
  }

  #addToSite(route: Extract<DeliveryRoute, { site: string }>, job: Job): boolean {
    // Where all mail goes to the same relay, no other mail needs the places.
    const isOnlyWay = route.kind === 'relay' && !job.transport
    const hasPlace = isOnlyWay || this.#deps.inFlight.assign(job.recipients, route.provider.name)
    if (hasPlace) this.#sites.add(route, job)
    return hasPlace
  }

  /**
   * Jobs that their site cannot take now. A transport's jobs do not suspend their recipient domains, to which other mail may go another way.
   * A short time only means that it is busy, so its share stays; a long one means that it blocks Postrider.
   */
  #postpone(jobs: readonly Job[], forMs: number, reason: string): void {
    const [first] = jobs
    if (!first?.transport?.server) return this.#unsent.postponeRoute(jobs, forMs, reason)
    const { downForMs } = this.#deps.bounds ?? {}
    const blockedMs = downForMs === undefined ? usualBlockedMs : 2 * downForMs
    for (const job of jobs)
      if (forMs < blockedMs || !this.#divert(job)) this.#unsent.postpone(job, Math.min(Math.max(forMs, busyMs), maxPostponeMs), reason)
  }

  /** Sends the job of a failed transport by the next of its chain, without an attempt: it was not offered to the transport. */
  #divert(job: Job): boolean {
    const { server, fallbacks = [] } = job.transport ?? {}
    if (!server?.failover || this.#isClosing) return false
    const { transportHealths: healths, config } = this.#deps
    healths.note(server, 'failed', job.tenantId)
    this.#diverted.add({ ...job, transport: firstUsable(fallbacks, job, { healths, defaultName: defaultNameOf(config) }) })
    return true
  }

  #simulate(job: Job): void {
    const { db, clock, log, scenario } = this.#deps
    void sendToSimulator(job, {
      db,
      clock,
      log,
      scenario,
      messages: this.#messages,
      done: (result, fractionOf) => this.#report(result, fractionOf),
      requeue: (one) => this.#unsent.requeue(one),
      postponeUnprepared: (one, forMs, reason) => this.#unsent.postpone(one, forMs, reason),
    })
  }

  #fail(job: Job, { attemptResult, conversation }: Extract<DeliveryRoute, { kind: 'fail' }>): void {
    this.#report({ job, results: job.recipients.map(() => attemptResult), remote: noRemote, durationMs: 0, conversation })
  }

  #noteHealth(server: Transport, tenantId: string, results: readonly AttemptResult[], isWithoutConnection: boolean): void {
    for (const result of results) {
      const signal = isWithoutConnection ? 'failed' : signalOf(result)
      if (signal) this.#deps.transportHealths.note(server, signal, tenantId)
    }
  }

  /** `fractionOf`: the random part of a recipient's retry delay. */
  #report(
    { job, results, isWithoutConnection = false, ...known }: JobResult,
    fractionOf: (claimed: Claimed) => number = () => this.#deps.ids.random(),
  ): void {
    const { clock, schedule, finished } = this.#deps
    const facts = { ...known, transport: job.transport?.name, schedule, atMs: clock.nowMs(), unknownRetry: 'by schedule' as const }
    if (job.transport?.server) this.#noteHealth(job.transport.server, job.tenantId, results, isWithoutConnection)
    this.#messages.release(job)
    finished(
      job.recipients.map((claimed, index) =>
        decideOutcome(claimed, results[index] as AttemptResult, { ...facts, random: () => fractionOf(claimed) }),
      ),
    )
  }
}

const ignoresTlsPolicies = ({ recipients: [first] }: Job) => first.ignoresTlsPolicies === true

/** The transport of mail without a share, and of the end of a chain. */
export const defaultNameOf = ({ relay }: Pick<Config, 'relay'>): 'mx' | 'relay' => (relay ? 'relay' : 'mx')
