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
import { type Claimed, type Lane, type Leases, type QueueStop, type RetrySchedule, wholeScheduleMs } from '#spool'
import type { FindingFor } from './carry.ts'
import { type Destination, openDestination } from './destination.ts'
import type { Job } from './job.ts'
import type { LetGo } from './let-go.ts'
import { type Found, openLookUps } from './look-ups.ts'
import { openMailGuard } from './mail-guard.ts'
import { openMessages } from './messages.ts'
import type { Way } from './open-connection.ts'
import { decide, expired, type Finding, nowhere, type Outcome, type RemoteEnd, untried } from './outcome.ts'
import { outletName, outletOf } from './outlet.ts'
import { longestPutOffMs, openPoolTurns, shortestPutOffMs } from './pool-turns.ts'
import type { Provider, Providers } from './shaping/providers.ts'
import type { Shaper } from './shaping/shaping.ts'
import { sendToSimulator } from './simulated.ts'
import type { Source } from './sources/sources.ts'
import type { OutletAddresses } from './sources/turns.ts'
import { openWarmUp, type WarmUp } from './sources/warm-up.ts'
import { pausedWords } from './standstill.ts'
import type { GuardedHost } from './tls/policy.ts'

/** A domain in backoff is checked again after at most this time: another process may have raised the limits. */
const longestRestMs = 30_000
/** After a resume, mail for the provider continues within this time; also the minimum delay between checks of its mail. */
const pausedLookMs = 5000
/**
 * Maximum delay between checks of a paused provider's mail, so that it is not claimed and postponed all the time. Resuming makes it due at
 * once.
 */
const longestPausedLookMs = 60_000
const mostResting = 2000
/** After its retry schedule ends, an email may wait this long to be offered one last time. */
const graceMs = 86_400_000
const relayProvider: Provider = { name: 'relay', isNamed: true, connections: 40, rate: null }
/** A password sent to these hosts stays on the machine, so TLS is not required. */
const loopbackHosts = ['127.0.0.1', '::1', 'localhost']

export interface DispatchDeps extends LetGo {
  db: Db
  clock: Clock
  ids: Ids
  log: Log
  secrets: Secrets
  domains: Domains
  config: Pick<Config, 'hostname' | 'mxPort' | 'mtaStsPort' | 'relay' | 'resolvers' | 'trustedResolvers' | 'allowedNetworks'>
  leases: Pick<Leases, 'holds'>
  /** The active queue pauses. */
  stops(): Promise<readonly QueueStop[]>
  shaper: Shaper
  providers: Providers
  schedule: RetrySchedule
  /** Hands outcomes to the recorder; the recipients are then no longer in flight. */
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
  resting(): string[]
  /** The same for single tenants: lanes from which no more mail is to be claimed now. */
  restingLanes(): Lane[]
  /** Removes and returns every recipient that no connection has started. */
  takeBack(): Claimed[]
  close(): void
  destroy(): void
}

export function openDispatch(deps: DispatchDeps): Dispatch {
  const { clock, config, ids, schedule } = deps
  const fraction = () => ids.fraction()
  const resolver = deps.outside?.resolver ?? openResolver({ servers: config.resolvers, clock, ids, queryMs: deps.bounds?.dnsQueryMs })
  const guard = openMailGuard(deps)
  const destinations = new Map<string, Destination>()
  let closing = false

  const report = ({ job, findings, ...known }: FindingFor, fractionOf: (claimed: Claimed) => number = fraction) => {
    const facts = { ...known, schedule, atMs: clock.nowMs(), unknownRetry: 'by schedule' as const }
    messages.release(job)
    deps.finished(
      job.recipients.map((claimed, index) =>
        decide(claimed, findings[index] as Finding, { ...facts, fraction: () => fractionOf(claimed) }),
      ),
    )
  }

  const reportAll = (job: Job, finding: Finding, remote: RemoteEnd = nowhere, conversation = '') =>
    report({ job, findings: job.recipients.map(() => finding), remote, durationMs: 0, conversation })

  const abandon = (job: Job) => {
    messages.release(job)
    deps.abandoned(job.recipients)
  }

  const putOff = (job: Job, forMs: number, waitsFor: string) => {
    messages.release(job)
    deps.putOff(job.recipients, forMs, waitsFor)
  }

  const isLastTry = ({ failures }: Claimed) => failures + 1 >= schedule.maxAttempts
  const oldestMs = wholeScheduleMs(schedule) + graceMs
  /** The retry schedule starts with the first attempt. A held email or one retried by hand has not started it. */
  const isOver = (one: Claimed) =>
    isLastTry(one) && one.failures > 0 && clock.nowMs() - (emailIdTimeMs(one.emailId) ?? clock.nowMs()) > oldestMs

  /** The job's connection was opened for another email, and the job has one attempt left. */
  const notOfferedAgain = (job: Job, forMs: number, waitsFor: string) => {
    const over = job.recipients.filter(isOver)
    if (over.length > 0) deps.finished(over.map((one) => decide(one, expired(waitsFor), untried(deps, 'by schedule'))))
    job.recipients = job.recipients.filter((one) => !over.includes(one))
    putOff(job, Math.min(forMs, longestPutOffMs), waitsFor)
  }

  const messages = openMessages({ ...deps, report: reportAll, abandoned: abandon })

  /** By recipient domain, oldest first: the monotonic time in ms until which its mail is not claimed. */
  const resting = new Map<string, number>()
  const surplus = (jobs: readonly Job[], forMs: number, waitsFor: string, domainRestMs = Math.min(forMs, longestRestMs)) => {
    const untilMs = clock.monotonicMs() + domainRestMs
    for (const job of jobs) {
      const [first] = job.recipients
      if (first) resting.set(first.destination, untilMs)
      if (forMs > shortestPutOffMs) putOff(job, Math.min(forMs, longestPutOffMs), waitsFor)
      else abandon(job)
    }
    for (const domain of resting.keys()) if (resting.size > mostResting) resting.delete(domain)
  }

  const endFor = (source: Source, provider: Provider) => {
    const { address, ehloName, warmUpFrom } = source
    return {
      source: address,
      ehloName: ehloName ?? config.hostname,
      shape: deps.shaper.shape(address, provider),
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
  const outletFor = (addresses: OutletAddresses<Source> | undefined, provider: Provider) => {
    if (addresses) {
      const { four, six } = addresses
      return outletOf({ four: four && endFor(four, provider), six: six && endFor(six, provider) })
    }
    const end = { source: undefined, ehloName: config.hostname, shape: deps.shaper.shape('', provider), warmUp: undefined }
    return outletOf({ four: end, six: end })
  }

  /** `addresses`: the egress sources to send from; undefined: the operating system chooses. */
  const destinationFor = (name: string, provider: Provider, addresses?: OutletAddresses<Source>): Destination => {
    const key = addresses ? `${name} ${outletName(addresses)}` : name
    let destination = destinations.get(key)
    if (!destination) {
      if (destinations.size > mostDestinations) forgetIdle()
      destination = openDestination(name, {
        ...deps,
        resolver,
        ...messages,
        mayFinish(job) {
          const { shard, epoch } = job.recipients[0] as Claimed
          return deps.leases.holds(shard, epoch)
        },
        done: report,
        abandoned: abandon,
        outlet: outletFor(addresses, provider),
        surplus: (jobs, forMs) =>
          addresses && !closing
            ? pools.passOn(name, provider, jobs, forMs)
            : surplus(jobs, forMs, `${provider.name} takes nothing more for now`),
        isLastTry: (job) => job.recipients.some(isLastTry),
        putOff: notOfferedAgain,
        smtpLimits: deps.bounds?.smtp,
        downForMs: deps.bounds?.downForMs,
        dial: deps.outside?.dial,
      })
      destinations.set(key, destination)
    }
    return destination
  }

  const pools = openPoolTurns({
    clock,
    destinationFor,
    outletFor,
    abandoned: abandon,
    putOff,
  })

  const forgetIdle = () => {
    for (const [name, destination] of destinations) if (destination.idle) destinations.delete(name)
  }

  const relayWay: Way | undefined = config.relay && {
    hosts: [{ host: config.relay.host, preference: 0, ...relayTls(config.relay) }],
    port: config.relay.port,
    auth: config.relay.auth,
    // The operator named this host; it does not come from a recipient's DNS.
    guard: { allows: () => true },
  }

  const sendByRoute = (domain: string, { route, stops }: Found, jobs: readonly Job[]) => {
    if (route.kind === 'hosts') {
      const hosts = route.hosts.map(({ host }) => host).sort()
      const name = `${route.destination} ${hosts.join(' ')} ${route.key}`
      const provider = deps.providers.ofRoute(route)
      const stop = stops.find((one) => one.kind === 'provider' && isOneOf([provider, ...deps.providers.among(route)], one.name))
      if (stop) {
        const forMs = Math.min(longestPausedLookMs, Math.max(pausedLookMs, clock.nowMs() - stop.at.getTime()))
        return surplus(jobs, forMs, pausedWords(stop.name) + stop.because, pausedLookMs)
      }
      const way: Way = { hosts: route.hosts, port: config.mxPort, auth: undefined, ownName: config.hostname, guard }
      for (const job of jobs) {
        if (!job.pool) destinationFor(name, provider).add(job, way)
        else pools.add(name, provider, job, way)
      }
      return
    }
    const finding: Finding = {
      kind: route.kind,
      reply: null,
      classification: route.classification,
      enhanced: route.enhanced,
      message: route.message,
    }
    for (const job of jobs) reportAll(job, finding, nowhere, `${domain}: ${route.message}`)
  }

  const lookUp = openLookUps({
    ...deps,
    resolver,
    guard,
    found(domain, found, jobs) {
      if (found && !closing) sendByRoute(domain, found, jobs)
      else for (const job of jobs) deps.abandoned(job.recipients)
    },
  })

  return {
    send(jobs) {
      for (const job of jobs) {
        const [first] = job.recipients
        if (!first) continue
        if (first.test || first.destination === simulatorDomain) void sendToSimulator(job, { ...deps, messages, done: report })
        else if (relayWay) destinationFor('relay', relayProvider).add(job, relayWay)
        else lookUp(first.destination, job)
      }
    },
    resting() {
      const nowMs = clock.monotonicMs()
      for (const [domain, untilMs] of resting) if (untilMs <= nowMs) resting.delete(domain)
      return [...resting.keys()]
    },
    restingLanes: () => pools.resting(),
    takeBack: () => [...destinations.values()].flatMap((destination) => destination.takeBack()).flatMap((job) => job.recipients),
    close() {
      closing = true
      for (const destination of destinations.values()) destination.close()
    },
    destroy() {
      for (const destination of destinations.values()) destination.destroy()
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
const mostDestinations = 10_000
