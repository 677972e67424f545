/**
 * Dispatch: claimed recipients on their way to a destination. Test mail and simulated recipients go to the simulator; a relay takes
 * all live mail when the operator has set one; everything else goes to the mail servers that DNS names.
 */
import { type Clock, type Config, type Ids, type Log, pause, type Secrets } from '#base'
import { CommitUnknown, DatabaseUnreachable, type Db } from '#db'
import type { Domains } from '#domains'
import { decodeContent, findContentBody, openReturnPaths } from '#emails'
import { dotStuff } from '#mail'
import { findRoute, openDnssec, openGuard, openPost, openResolver, type Resolver, type Route } from '#net'
import { type Scenario, simulate, simulatedHost, simulatorDomain, waitFraction } from '#simulator'
import type { Dial, SmtpLimits } from '#smtp'
import type { Claimed, Lane as ClaimLane, Leases, RetrySchedule } from '#spool'
import { openTokens } from '#tracking'
import { type Destination, type FindingFor, openDestination } from './destination.ts'
import { type Job, jobsOf, type PreparedMessage, splitOff } from './job.ts'
import { laneName, laneOf } from './lane.ts'
import { type Later, noteLater } from './later.ts'
import type { Way } from './open-connection.ts'
import { cancelled, decide, type Finding, findingOfReply, nowhere, type Outcome, type RemoteEnd } from './outcome.ts'
import { keysFor, needsOnly8bit, rebuildMessage } from './prepare.ts'
import type { Provider, Providers } from './providers.ts'
import type { Shaper } from './shaping.ts'
import type { Source } from './sources.ts'
import { openSts } from './sts.ts'
import { type Guarded, type GuardedHost, guardHosts } from './tls-policy.ts'
import { openTlsRequirements } from './tls-required.ts'
import { type LaneAddresses, nextTurn, type Turn } from './turns.ts'
import { openWarmUp, type WarmUp } from './warm-up.ts'

/** Large messages are loaded only when a connection is ready for them, and together weigh no more than this. */
const largeOctetsAtOnce = 64 * 1_048_576
/** Looked at again by then: another process may have learnt more. */
const longestRestMs = 30_000
const mostResting = 2000
/** Put off for no longer, because an operator may change what it waits for. */
const longestPutOffMs = 900_000
/** A shorter rest is waited for in the queue. */
const shortestPutOffMs = 1500
/** No address of the pool is of this machine; perhaps soon one is. */
const addresslessMs = 60_000
const relayProvider: Provider = { name: 'relay', isNamed: true, connections: 40, rate: null }
/** A password on its way to these stays on the machine, so it may go without TLS. */
const loopbackHosts = ['127.0.0.1', '::1', 'localhost']

export interface DispatchDeps {
  db: Db
  clock: Clock
  ids: Ids
  log: Log
  secrets: Secrets
  domains: Domains
  config: Pick<Config, 'hostname' | 'mxPort' | 'mtaStsPort' | 'relay' | 'resolvers' | 'trustedResolvers' | 'allowedNetworks'>
  leases: () => Leases
  shaper: Shaper
  providers: Providers
  schedule: RetrySchedule
  /** Takes outcomes to the record; the recipients leave this process's hands. */
  finished(outcomes: Outcome[]): void
  /** What hosts of the simulated world do besides the simulator's own addresses. */
  scenario?: Scenario | undefined
  /** Not sent, and not ours to send any more. */
  abandoned(claimed: Claimed[]): void
  /** Not sent, and not to be claimed again for so long; no attempt. */
  putOff(claimed: Claimed[], forMs: number, waitsFor: string): void
  /** Another world than the real one: who answers questions about names, and where connections lead. */
  outside?: { resolver: Resolver; dial: Dial } | undefined
  /** Other limits of time than the usual ones. */
  bounds?: { smtp?: Partial<SmtpLimits>; dnsQueryMs?: number } | undefined
}

export interface Dispatch {
  send(jobs: readonly Job[]): void
  /** Recipients' domains that nothing more is to be claimed for now. */
  resting(): string[]
  /** The same, of one tenant's mail. */
  restingLanes(): ClaimLane[]
  /** Takes back every recipient that no connection has begun. */
  takeBack(): Claimed[]
  close(): void
  destroy(): void
}

export function openDispatch(deps: DispatchDeps): Dispatch {
  const { clock, config, ids, schedule } = deps
  const fraction = () => ids.fraction()
  const resolver = deps.outside?.resolver ?? openResolver({ servers: config.resolvers, clock, queryMs: deps.bounds?.dnsQueryMs })
  const guard = openGuard(config.allowedNetworks)
  const { get } = openPost({ resolver, guard, openedNetworks: config.allowedNetworks, clock })
  const tlsPolicies = {
    ...deps,
    dnssec: openDnssec({ servers: config.resolvers, trusted: config.trustedResolvers, clock, fraction }),
    sts: openSts({ ...deps, resolver, get }),
    requirements: openTlsRequirements(deps),
  }
  const tokens = openTokens(deps.secrets)
  const returnPaths = openReturnPaths(deps.secrets)
  const destinations = new Map<string, Destination>()
  const looking = new Map<string, Job[]>()
  let closing = false
  /** Jobs whose message was loaded on its own and is still in memory. */
  const large = new Set<Job>()
  let largeOctets = 0
  let largeWaiters: (() => void)[] = []

  const report = ({ job, findings, remote, durationMs, conversation }: FindingFor, fractionOf: (claimed: Claimed) => number = fraction) => {
    const facts = { schedule, atMs: clock.nowMs(), durationMs, remote, conversation, unknownRetry: 'by schedule' as const }
    freeLarge(job)
    deps.finished(
      job.recipients.map((claimed, index) =>
        decide(claimed, findings[index] as Finding, { ...facts, fraction: () => fractionOf(claimed) }),
      ),
    )
  }

  const reportAll = (job: Job, finding: Finding, remote: RemoteEnd = nowhere, conversation = '') =>
    report({ job, findings: job.recipients.map(() => finding), remote, durationMs: 0, conversation })

  const build = async (job: Job, others: (jobs: readonly Job[]) => void): Promise<PreparedMessage | undefined> => {
    const body = job.body ?? (await findContentBody(deps.db, job))
    if (!body) {
      reportAll(job, cancelled('the content is past its retention'))
      return undefined
    }
    const content = decodeContent(body)
    const keys = await keysFor(content, job.tenantId, deps.domains)
    if (!keys) {
      reportAll(job, cancelled('the sending domain was deleted'))
      return undefined
    }
    const recipient = job.recipients[0] as Claimed
    const { octets, needs8bit, needsSmtpUtf8, personal } = rebuildMessage(content, keys, recipient, tokens)
    if (personal && job.recipients.length > 1) others(splitOff(job))
    job.body = undefined
    const { returnPathDomain: domain, messageId } = content
    let written: Buffer | undefined
    const sevenBit = () => {
      written ??= dotStuff(rebuildMessage(content, keys, recipient, tokens, 'sevenBit').octets)
      return written
    }
    return {
      messageId,
      acceptedAtMs: content.acceptedAtMs,
      returnPathOf: domain === null ? null : ({ emailId }) => returnPaths.make(emailId, domain, clock.nowMs()),
      data: dotStuff(octets),
      needs8bit,
      needsSmtpUtf8,
      ...(needsOnly8bit({ needs8bit, needsSmtpUtf8 }) ? { sevenBit } : {}),
    }
  }

  const prepare = async (job: Job, others: (jobs: readonly Job[]) => void): Promise<PreparedMessage | undefined> => {
    try {
      if (!job.body && !large.has(job)) await takeLarge(job)
      return await build(job, others)
    } catch (error) {
      if (error instanceof DatabaseUnreachable || error instanceof CommitUnknown) {
        abandon(job)
        return undefined
      }
      deps.log.error({ err: error, email: job.contentId }, 'a message could not be prepared; it is tried again later')
      reportAll(job, {
        kind: 'temporary',
        reply: null,
        classification: 'temporarily_unavailable',
        enhanced: null,
        message: 'the message could not be prepared',
      })
      return undefined
    }
  }

  const takeLarge = async (job: Job) => {
    while (largeOctets > 0 && largeOctets + job.sizeOctets > largeOctetsAtOnce) {
      await new Promise<void>((resolve) => largeWaiters.push(resolve))
    }
    large.add(job)
    largeOctets += job.sizeOctets
  }

  const freeLarge = (job: Job) => {
    if (!large.delete(job)) return
    largeOctets -= job.sizeOctets
    const woken = largeWaiters
    largeWaiters = []
    for (const wake of woken) wake()
  }

  const abandon = (job: Job) => {
    freeLarge(job)
    deps.abandoned(job.recipients)
  }

  /** Until when (monotonic ms) nothing is claimed for a domain, the oldest first. */
  const resting = new Map<string, number>()
  const surplus = (jobs: Job[], forMs: number) => {
    const untilMs = clock.monotonicMs() + Math.min(forMs, longestRestMs)
    for (const job of jobs) {
      const [first] = job.recipients
      if (first) resting.set(first.destination, untilMs)
      abandon(job)
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
  const laneFor = (addresses: LaneAddresses<Source> | undefined, provider: Provider) => {
    if (addresses) {
      const { four, six } = addresses
      return laneOf({ four: four && endFor(four, provider), six: six && endFor(six, provider) })
    }
    const end = { source: undefined, ehloName: config.hostname, shape: deps.shaper.shape('', provider), warmUp: undefined }
    return laneOf({ four: end, six: end })
  }

  /** `addresses`: of ours to send from; undefined: the system's choice. */
  const destinationFor = (name: string, provider: Provider, addresses?: LaneAddresses<Source>): Destination => {
    const key = addresses ? `${name} ${laneName(addresses)}` : name
    let destination = destinations.get(key)
    if (!destination) {
      if (destinations.size > mostDestinations) forgetIdle()
      destination = openDestination(name, {
        ...deps,
        resolver,
        prepare,
        release: freeLarge,
        mayFinish: (job) => deps.leases().holds((job.recipients[0] as Claimed).shard, (job.recipients[0] as Claimed).epoch),
        done: report,
        abandoned: abandon,
        lane: laneFor(addresses, provider),
        surplus: addresses ? (jobs, forMs) => passOn(name, provider, jobs, forMs) : surplus,
        smtpLimits: deps.bounds?.smtp,
        dial: deps.outside?.dial,
      })
      destinations.set(key, destination)
    }
    return destination
  }

  /** By destination and pool: whose turn it is, and how it is reached. */
  const turns = new Map<string, { turn: Turn; way: Way }>()
  let begun = 0

  /** Gives the job to one of its pool's lanes; false when none has room. */
  const addToPool = (name: string, provider: Provider, job: Job, way: Way): boolean => {
    const { lanes = [], name: pool = '' } = job.pool ?? {}
    const key = `${pool} ${name}`
    const before = turns.get(key)
    const among = lanes.map((addresses) => destinationFor(name, provider, addresses))
    // New destinations begin with another lane each, so that many of one message are spread too.
    const turn = nextTurn(
      before?.turn,
      among.map((one) => one.hasRoom),
      before ? 0 : begun++ % Math.max(1, among.length),
    )
    if (!turn) return false
    if (turns.size > mostDestinations) turns.clear()
    turns.set(key, { turn, way })
    among[turn.lane]?.add(job, way)
    return true
  }

  /** What one lane of a pool does not take now goes to another, or waits. */
  const passOn = (name: string, provider: Provider, jobs: Job[], forMs: number) => {
    for (const job of jobs) {
      const way = turns.get(`${job.pool?.name} ${name}`)?.way
      if (way && !closing && job.moves++ < (job.pool?.lanes.length ?? 0) && addToPool(name, provider, job, way)) continue
      waitForPool(provider, job, forMs)
    }
  }

  const waitForPool = (provider: Provider, job: Job, forMs: number) => {
    const lanes = (job.pool?.lanes ?? []).map((addresses) => laneFor(addresses, provider))
    const restMs = lanes.length === 0 ? addresslessMs : Math.min(forMs, ...lanes.map((lane) => lane.restMs))
    freeLarge(job)
    if (restMs > shortestPutOffMs) {
      const reached = lanes.flatMap(({ four, six }) => [four, six]).find((end) => (end?.warmUp?.restMs ?? 0) > 0)
      const waitsFor =
        lanes.length === 0
          ? `no address of the pool ${job.pool?.name} is of the machine that has this mail`
          : (reached?.warmUp?.because ?? `${provider.name} takes nothing more from the pool ${job.pool?.name} for now`)
      deps.putOff(job.recipients, Math.min(restMs, longestPutOffMs), waitsFor)
      return
    }
    const untilMs = clock.monotonicMs() + shortestPutOffMs
    for (const { tenantId, destination } of job.recipients.slice(0, 1))
      restingLanes.set(`${tenantId} ${destination}`, { tenantId, destination, untilMs })
    for (const key of restingLanes.keys()) if (restingLanes.size > mostResting) restingLanes.delete(key)
    deps.abandoned(job.recipients)
  }
  const restingLanes = new Map<string, ClaimLane & { untilMs: number }>()

  const forgetIdle = () => {
    for (const [name, destination] of destinations) if (destination.idle) destinations.delete(name)
  }

  const sendToSimulator = async (job: Job) => {
    const others = (jobs: readonly Job[]) => {
      for (const one of jobs) void sendToSimulator(one)
    }
    const prepared = await prepare(job, others)
    if (!prepared) return
    const { returnPathOf, messageId, acceptedAtMs } = prepared
    const findings: Finding[] = []
    const later: Later[] = []
    let conversation = ''
    let durationMs = 0
    for (const claimed of job.recipients) {
      const { recipient, failures } = claimed
      const elapsedMs = clock.nowMs() + claimed.aheadMs - acceptedAtMs
      const simulated = simulate({ recipient, attempt: failures + 1, elapsedMs }, deps.scenario)
      durationMs = Math.max(durationMs, simulated.delayMs)
      conversation = simulated.transcript
      for (const { kind, afterMs } of simulated.kind === 'reply' ? simulated.later : []) {
        const { tenantId, emailId, test, contentId } = claimed
        const returnPath = returnPathOf?.(claimed) ?? ''
        const dueAt = new Date(clock.nowMs() + afterMs)
        later.push({ tenantId, emailId, kind, test, contentId, recipient, returnPath, messageId, dueAt })
      }
      findings.push(
        simulated.kind === 'timeout'
          ? {
              kind: 'temporary',
              reply: null,
              classification: 'connection_error',
              enhanced: null,
              message: 'the connection timed out (simulated)',
            }
          : simulated.reply.code < 400
            ? { kind: 'accepted', reply: simulated.reply, classification: null, enhanced: simulated.reply.enhanced, message: '' }
            : findingOfReply(simulated.reply),
      )
    }
    if (durationMs > 0) await pause(clock, durationMs)
    // Before the outcome: what follows a delivery is not lost with this process.
    if (later.length > 0)
      await noteLater(deps.db, later).catch((error) => deps.log.warn({ err: error }, 'what simulated recipients do later was not noted'))
    const remote = { host: simulatedHost, address: '192.0.2.1', port: 25, secure: true, tls: null }
    const { scenario } = deps
    const fractionOf = scenario && (({ recipient, failures }: Claimed) => waitFraction(scenario, { recipient, attempt: failures + 1 }))
    report({ job, findings, remote, durationMs, conversation }, fractionOf)
  }

  const relayWay: Way | undefined = config.relay && {
    hosts: [{ host: config.relay.host, preference: 0, ...relayTls(config.relay) }],
    port: config.relay.port,
    auth: config.relay.auth,
    // Named by the operator, not by a recipient's DNS.
    guard: { allows: () => true },
  }

  const sendByRoute = (domain: string, route: GuardedRoute, jobs: readonly Job[]) => {
    if (route.kind === 'hosts') {
      const hosts = route.hosts.map(({ host }) => host).sort()
      const name = `${route.destination} ${hosts.join(' ')} ${route.key}`
      const provider = deps.providers.of(route.destination)
      const way: Way = { hosts: route.hosts, port: config.mxPort, auth: undefined, guard }
      for (const job of jobs) {
        if (!job.pool) destinationFor(name, provider).add(job, way)
        else if (!addToPool(name, provider, job, way)) waitForPool(provider, job, Number.MAX_SAFE_INTEGER)
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

  const lookUp = (domain: string, job: Job) => {
    const waiting = looking.get(domain)
    if (waiting) {
      waiting.push(job)
      return
    }
    looking.set(domain, [job])
    void findRoute(domain, resolver, { ownNames: [config.hostname], fraction, guard })
      .then(
        async (route): Promise<GuardedRoute> =>
          route.kind === 'hosts' ? { ...route, ...(await guardHosts(domain, route.hosts, tlsPolicies)) } : route,
      )
      .catch((error): GuardedRoute | undefined => {
        if (error instanceof DatabaseUnreachable || error instanceof CommitUnknown) return undefined
        deps.log.error({ err: error, domain }, 'it could not be learnt how to send to a domain; it is tried again later')
        return { kind: 'temporary', classification: 'dns_error', enhanced: '4.4.3', message: String(error) }
      })
      .then((route) => {
        const jobs = looking.get(domain) ?? []
        looking.delete(domain)
        if (route && !closing) sendByRoute(domain, route, jobs)
        else for (const one of jobs) deps.abandoned(one.recipients)
      })
  }

  return {
    send(jobs) {
      for (const job of jobs) {
        const [first] = job.recipients
        if (!first) continue
        if (first.test || first.destination === simulatorDomain) void sendToSimulator(job)
        else if (relayWay) destinationFor('relay', relayProvider).add(job, relayWay)
        else lookUp(first.destination, job)
      }
    },
    resting() {
      const nowMs = clock.monotonicMs()
      for (const [domain, untilMs] of resting) if (untilMs <= nowMs) resting.delete(domain)
      return [...resting.keys()]
    },
    restingLanes() {
      const nowMs = clock.monotonicMs()
      for (const [key, { untilMs }] of restingLanes) if (untilMs <= nowMs) restingLanes.delete(key)
      return [...restingLanes.values()]
    },
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

/** A password, and TLS from the first octet, are promises to the operator; a relay of this machine needs neither. */
function relayTls({ implicitTls, auth, host }: NonNullable<Config['relay']>): Pick<GuardedHost, 'tls' | 'policy'> {
  if (implicitTls) return { tls: 'implicit', policy: 'required' }
  if (auth && !loopbackHosts.includes(host)) return { tls: 'require', policy: 'required' }
  return { tls: 'opportunistic', policy: 'opportunistic' }
}

/** A route with what each of its hosts must show. */
type GuardedRoute = Exclude<Route, { kind: 'hosts' }> | (Extract<Route, { kind: 'hosts' }> & Extract<Guarded, { kind: 'hosts' }>)

/** Above this many, destinations without work are forgotten. */
const mostDestinations = 10_000

export { jobsOf }
