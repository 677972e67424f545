/**
 * Routes claimed recipients to a site. Test mail and simulated recipients go to the simulator. All other mail goes to the relay if the
 * operator configured one, otherwise to the recipient domain's MX hosts.
 */
import { type Clock, type Config, emailIdTimeMs, type Ids, type Log, type Secrets } from '#base'
import type { Db } from '#db'
import type { Domains } from '#domains'
import { openResolver, type Resolver } from '#net'
import { type Scenario, simulatorDomain } from '#simulator'
import type { Dial, SmtpLimits } from '#smtp'
import { type Claimed, type Lane, type Leases, type QueuePause, type RetrySchedule, wholeScheduleMs } from '#spool'
import { type AttemptResult, decideOutcome, expired, noRemote, type Outcome, type RemoteMta, withoutAttempt } from './attempt-outcome.ts'
import type { JobResult } from './connection-worker.ts'
import { pausedWords } from './delay-reason.ts'
import { egressPathsName, egressPathsOf } from './egress-path.ts'
import { maxPostponeMs, minPostponeMs, openEgressPool } from './egress-pool.ts'
import type { Job } from './job.ts'
import { openMailGuard } from './mail-ssrf-guard.ts'
import type { NextHop } from './open-connection.ts'
import { openMessages } from './prepare-messages.ts'
import type { Requeue } from './requeue.ts'
import { type LookedUpRoute, openRouteLookup } from './route-lookup.ts'
import type { Provider, Providers } from './shaping/providers.ts'
import type { TrafficShaper } from './shaping/shaping.ts'
import { sendToSimulator } from './simulated-delivery.ts'
import { Site } from './site.ts'
import type { EgressSource } from './sources/egress-sources.ts'
import type { PathAddresses } from './sources/next-source.ts'
import { openWarmUp, type WarmUp } from './sources/warm-up.ts'
import type { GuardedHost } from './tls/tls-policy.ts'

/** A domain in backoff is checked again after at most this time: another process may have raised the limits. */
const maxSuspensionMs = 30_000
/** After a resume, mail for the provider continues within this time; also the minimum delay between checks of its mail. */
const pausedLookMs = 5000
/**
 * Maximum delay between checks of a paused provider's mail, so that it is not claimed and postponed all the time. Resuming makes it due at
 * once.
 */
const maxPausedLookMs = 60_000
const maxSuspended = 2000
/** After its retry schedule ends, an email may wait this long to be offered one last time. */
const graceMs = 86_400_000
const relayProvider: Provider = { name: 'relay', isNamed: true, connections: 40, rate: null }
/** A password sent to these hosts stays on the machine, so TLS is not required. */
const loopbackHosts = ['127.0.0.1', '::1', 'localhost']

export interface DispatchDeps extends Requeue {
  db: Db
  clock: Clock
  ids: Ids
  log: Log
  secrets: Secrets
  domains: Domains
  config: Pick<Config, 'hostname' | 'mxPort' | 'mtaStsPort' | 'relay' | 'resolvers' | 'trustedResolvers' | 'allowedNetworks'>
  leases: Pick<Leases, 'owns'>
  /** The active queue pauses. */
  pauses(): Promise<readonly QueuePause[]>
  shaper: TrafficShaper
  providers: Providers
  schedule: RetrySchedule
  /** InFlight outcomes to the recorder; the recipients are then no longer in flight. */
  finished(outcomes: Outcome[]): void
  /** Behaviour of hosts in the simulated network, in addition to the simulator's own addresses. */
  scenario?: Scenario | undefined
  /** Replaces the real network: the resolver that answers DNS queries, and the function that opens connections. */
  outside?: { resolver: Resolver; dial: Dial } | undefined
  /** Overrides of the default timeouts. */
  bounds?: { smtp?: Partial<SmtpLimits>; dnsQueryMs?: number; downForMs?: number } | undefined
}

export interface Dispatch {
  send(jobs: readonly Job[]): void
  /** Recipient domains for which no more mail is to be claimed now. */
  suspendedDomains(): string[]
  /** The same for single tenants: lanes from which no more mail is to be claimed now. */
  suspendedLanes(): Lane[]
  /** Removes and returns every recipient that no connection has started. */
  takeUnstarted(): Claimed[]
  close(): void
  destroy(): void
}

export function openDispatch(deps: DispatchDeps): Dispatch {
  const { clock, config, ids, schedule } = deps
  const random = () => ids.random()
  const resolver = deps.outside?.resolver ?? openResolver({ servers: config.resolvers, clock, ids, queryMs: deps.bounds?.dnsQueryMs })
  const guard = openMailGuard(deps)
  const sites = new Map<string, Site>()
  let closing = false

  const report = ({ job, results, ...known }: JobResult, fractionOf: (claimed: Claimed) => number = random) => {
    const facts = { ...known, schedule, atMs: clock.nowMs(), unknownRetry: 'by schedule' as const }
    messages.release(job)
    deps.finished(
      job.recipients.map((claimed, index) =>
        decideOutcome(claimed, results[index] as AttemptResult, { ...facts, random: () => fractionOf(claimed) }),
      ),
    )
  }

  const reportAll = (job: Job, attemptResult: AttemptResult, remote: RemoteMta = noRemote, conversation = '') =>
    report({ job, results: job.recipients.map(() => attemptResult), remote, durationMs: 0, conversation })

  const requeueJob = (job: Job) => {
    messages.release(job)
    deps.requeue(job.recipients)
  }

  const postponeJob = (job: Job, forMs: number, delayReason: string) => {
    messages.release(job)
    deps.postpone(job.recipients, forMs, delayReason)
  }

  const isLastTry = ({ attempts }: Claimed) => attempts + 1 >= schedule.maxAttempts
  const oldestMs = wholeScheduleMs(schedule) + graceMs
  /** The retry schedule starts with the first attempt. A held email or one retried by hand has not started it. */
  const isOver = (one: Claimed) =>
    isLastTry(one) && one.attempts > 0 && clock.nowMs() - (emailIdTimeMs(one.emailId) ?? clock.nowMs()) > oldestMs

  /** The job's connection was opened for another email, and the job has one attempt left. */
  const notOfferedAgain = (job: Job, forMs: number, delayReason: string) => {
    const over = job.recipients.filter(isOver)
    if (over.length > 0) deps.finished(over.map((one) => decideOutcome(one, expired(delayReason), withoutAttempt(deps, 'by schedule'))))
    job.recipients = job.recipients.filter((one) => !over.includes(one))
    postponeJob(job, Math.min(forMs, maxPostponeMs), delayReason)
  }

  const messages = openMessages({ ...deps, report: reportAll, requeue: requeueJob })

  /** By recipient domain, oldest first: the monotonic time in ms until which its mail is not claimed. */
  const suspendedDomains = new Map<string, number>()
  const postponeJobs = (
    jobs: readonly Job[],
    forMs: number,
    delayReason: string,
    domainSuspensionMs = Math.min(forMs, maxSuspensionMs),
  ) => {
    const untilMs = clock.monotonicMs() + domainSuspensionMs
    for (const job of jobs) {
      const [first] = job.recipients
      if (first) suspendedDomains.set(first.recipientDomain, untilMs)
      if (forMs > minPostponeMs) postponeJob(job, Math.min(forMs, maxPostponeMs), delayReason)
      else requeueJob(job)
    }
    for (const domain of suspendedDomains.keys()) if (suspendedDomains.size > maxSuspended) suspendedDomains.delete(domain)
  }

  const pathFor = (source: EgressSource, provider: Provider) => {
    const { address, ehloName, warmUpFrom } = source
    return {
      source: address,
      ehloName: ehloName ?? config.hostname,
      limiter: deps.shaper.limiterFor(address, provider),
      warmUp: warmUpFrom === null ? undefined : warmUpOf(address, provider.isNamed ? provider.name : 'others', warmUpFrom.getTime()),
    }
  }
  const warmUps = new Map<string, WarmUp>()
  const warmUpOf = (source: string, provider: string, fromMs: number): WarmUp => {
    const key = `${source} ${provider} ${fromMs}`
    const warmUp = warmUps.get(key) ?? openWarmUp(deps, { source, provider, fromMs })
    warmUps.set(key, warmUp)
    return warmUp
  }
  const egressPathsFor = (addresses: PathAddresses<EgressSource> | undefined, provider: Provider) => {
    if (addresses) {
      const { ipv4, ipv6 } = addresses
      return egressPathsOf({ ipv4: ipv4 && pathFor(ipv4, provider), ipv6: ipv6 && pathFor(ipv6, provider) })
    }
    const path = { source: undefined, ehloName: config.hostname, limiter: deps.shaper.limiterFor('', provider), warmUp: undefined }
    return egressPathsOf({ ipv4: path, ipv6: path })
  }

  /** `addresses`: the egress sources to send from; undefined: the operating system chooses. */
  const siteFor = (name: string, provider: Provider, addresses?: PathAddresses<EgressSource>): Site => {
    const key = addresses ? `${name} ${egressPathsName(addresses)}` : name
    let site = sites.get(key)
    if (!site) {
      if (sites.size > maxSites) closeIdle()
      site = new Site(name, {
        clock,
        log: deps.log,
        resolver,
        prepare: (job, others) => messages.prepare(job, others),
        release: (job) => messages.release(job),
        leaseStillHeld(job) {
          const { shard, epoch } = job.recipients[0] as Claimed
          return deps.leases.owns(shard, epoch)
        },
        done: report,
        requeue: requeueJob,
        paths: egressPathsFor(addresses, provider),
        postponeJobs: (jobs, forMs) =>
          addresses && !closing
            ? pools.tryNextSource(name, provider, jobs, forMs)
            : postponeJobs(jobs, forMs, `${provider.name} accepts no more mail at present`),
        isLastTry: (job) => job.recipients.some(isLastTry),
        postpone: notOfferedAgain,
        smtpLimits: deps.bounds?.smtp,
        downForMs: deps.bounds?.downForMs,
        dial: deps.outside?.dial,
      })
      sites.set(key, site)
    }
    return site
  }

  const pools = openEgressPool({
    clock,
    siteFor,
    egressPathsFor,
    requeue: requeueJob,
    postpone: postponeJob,
  })

  const closeIdle = () => {
    for (const [name, site] of sites) if (site.idle) sites.delete(name)
  }

  const relayHop: NextHop | undefined = config.relay && {
    hosts: [{ host: config.relay.host, preference: 0, ...relayTls(config.relay) }],
    port: config.relay.port,
    auth: config.relay.auth,
    // The operator named this host; it does not come from a recipient's DNS.
    guard: { allows: () => true },
  }

  const sendByRoute = (domain: string, { route, pauses }: LookedUpRoute, jobs: readonly Job[]) => {
    if (route.kind === 'hosts') {
      const hosts = route.hosts.map(({ host }) => host).sort()
      const name = `${route.site} ${hosts.join(' ')} ${route.key}`
      const provider = deps.providers.ofRoute(route)
      const queuePause = pauses.find((one) => one.kind === 'provider' && isOneOf([provider, ...deps.providers.among(route)], one.name))
      if (queuePause) {
        const forMs = Math.min(maxPausedLookMs, Math.max(pausedLookMs, clock.nowMs() - queuePause.at.getTime()))
        return postponeJobs(jobs, forMs, pausedWords(queuePause.name) + queuePause.reason, pausedLookMs)
      }
      const nextHop: NextHop = { hosts: route.hosts, port: config.mxPort, auth: undefined, ownName: config.hostname, guard }
      for (const job of jobs) {
        if (!job.pool) siteFor(name, provider).add(job, nextHop)
        else pools.add(name, provider, job, nextHop)
      }
      return
    }
    const attemptResult: AttemptResult = {
      kind: route.kind,
      reply: null,
      classification: route.classification,
      enhanced: route.enhanced,
      message: route.message,
    }
    for (const job of jobs) reportAll(job, attemptResult, noRemote, `${domain}: ${route.message}`)
  }

  const lookUp = openRouteLookup({
    ...deps,
    resolver,
    guard,
    found(domain, found, jobs) {
      if (found && !closing) sendByRoute(domain, found, jobs)
      else for (const job of jobs) deps.requeue(job.recipients)
    },
  })

  return {
    send(jobs) {
      for (const job of jobs) {
        const [first] = job.recipients
        if (!first) continue
        if (first.test || first.recipientDomain === simulatorDomain) void sendToSimulator(job, { ...deps, messages, done: report })
        else if (relayHop) siteFor('relay', relayProvider).add(job, relayHop)
        else lookUp(first.recipientDomain, job)
      }
    },
    suspendedDomains() {
      const nowMs = clock.monotonicMs()
      for (const [domain, untilMs] of suspendedDomains) if (untilMs <= nowMs) suspendedDomains.delete(domain)
      return [...suspendedDomains.keys()]
    },
    suspendedLanes: () => pools.suspended(),
    takeUnstarted: () => [...sites.values()].flatMap((site) => site.takeUnstarted()).flatMap((job) => job.recipients),
    close() {
      closing = true
      for (const site of sites.values()) site.close()
    },
    destroy() {
      for (const site of sites.values()) site.destroy()
    },
  }
}

/** The operator relies on the password's secrecy and on implicit TLS. A relay on this machine needs neither. */
function relayTls({ implicitTls, auth, host }: NonNullable<Config['relay']>): Pick<GuardedHost, 'tls' | 'policy'> {
  if (implicitTls) return { tls: 'implicit', policy: 'required' }
  if (auth && !loopbackHosts.includes(host)) return { tls: 'require', policy: 'required' }
  return { tls: 'opportunistic', policy: 'opportunistic' }
}

const isOneOf = (providers: readonly Provider[], name: string) => providers.some((one) => one.name === name)

/** Above this number of sites, those without work are dropped. */
const maxSites = 10_000
