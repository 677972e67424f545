/**
 * One destination: the mail servers that domains share, a small pool of reused connections, and the jobs that wait for one. It never
 * holds up another destination; a host that cannot be reached fails what waits for it now and is asked again a little later.
 */
import { type Clock, type Config, impossible, type Log } from '#base'
import { type AddressesResult, type AddressGuard, findAddresses, type Resolver, type RouteHost } from '#net'
import { type ConnectOptions, connect, type Failure, reach, type SmtpConnection, type Transaction } from '#smtp'
import type { Claimed } from '#spool'
import { fairQueue } from './fair-queue.ts'
import { type Job, type PreparedMessage, transactionsOf } from './job.ts'
import { type End, endRestMs, isLeftOut, type Lane, takePlaces, targetsOf } from './lane.ts'
import { type Finding, findingOf, findingOfFailure, nowhere, type RemoteEnd, remoteOf } from './outcome.ts'
import type { Slot } from './shaping.ts'
import type { WarmUp } from './warm-up.ts'

const mostConnections = 10
/** A connection is kept this long for the next message. */
const idleMs = 3000
/** Transactions on one connection before it is renewed; polite towards servers that count. */
const mostPerConnection = 1000
/** How long a failed connection speaks for the whole destination. */
const downForMs = 15_000
/**
 * Transactions given to one connection at a time: the one under way and those chained behind it. A peer that answers fast is given
 * more before a second connection is woken, because a chained message costs one round trip and one write instead of two.
 */
const depth = 2
const depthOfFast = 3
const fastMs = 50
/** After no place for a connection was to be had; and between connections that processes take turns with. */
const deniedMs = 100
/** By then what a refusal means has been learnt. */
const refusedMs = 700
const scarceLifeMs = 5000
const surplusMs = 1000

export interface FindingFor {
  job: Job
  findings: Finding[]
  remote: RemoteEnd
  durationMs: number
  conversation: string
}

export interface DestinationDeps {
  clock: Clock
  log: Log
  config: Pick<Config, 'hostname' | 'mxPort'>
  resolver: Resolver
  /** Loads, builds and signs; undefined when there is nothing to send any more. */
  prepare(job: Job): Promise<PreparedMessage | undefined>
  /** What was prepared for the job is not needed any more. */
  release(job: Job): void
  /** Whether the lease of the job's shard is still held. */
  mayFinish(job: Job): boolean
  done(result: FindingFor): void
  /** The lease was lost before the final dot: nothing was sent. */
  abandoned(job: Job): void
  /** From which of our addresses, and how much the provider takes from them, over all processes. */
  lane: Lane
  /** Not begun, and not to be claimed again for so long: the provider takes no more now. */
  surplus(jobs: Job[], forMs: number): void
}

/** How a destination is reached: MX hosts, or the operator's relay. */
export interface Way {
  hosts: readonly RouteHost[]
  port: number
  tls: 'opportunistic' | 'implicit' | 'require'
  auth: ConnectOptions['auth']
  guard: AddressGuard
}

export interface Destination {
  add(job: Job, way: Way): void
  /** More may be added: it neither rests nor has its fill. */
  readonly hasRoom: boolean
  /** Nothing waits and no connection is open. */
  readonly idle: boolean
  /** Takes back what no connection has begun. */
  takeBack(): Job[]
  /** Ends idle connections and closes the others when their transactions end. */
  close(): void
  destroy(): void
}

export function openDestination(name: string, deps: DestinationDeps): Destination {
  const { clock } = deps
  const queue = fairQueue<Job>()
  const { lane } = deps
  const anyEnd = (lane.four ?? lane.six) as End
  const open = new Map<SmtpConnection, End>()
  let way: Way | undefined
  let working = 0
  /** Grows with every success, so that a destination which answers nobody costs one connection. */
  let allowed = 1
  let down: { untilMs: number; why: Unopened } | undefined
  /** No place for a connection is asked for before. */
  let deniedUntilMs = 0
  let closing = false
  /** How long the last transaction took. */
  let lastMs = Infinity
  /** Connections with room behind what they are sending, and connections with nothing to send. */
  const chaining = new Set<() => void>()
  const resting = new Set<() => void>()
  /** One of them has been woken and has not looked at the queue yet. */
  let waking = false

  /** Until there is a job for it, or one of `running` ends, or `ms` have passed. */
  const wait = async (among: Set<() => void>, running: Iterable<Promise<void>>, ms?: number) => {
    let stop = () => {}
    const woken = new Promise<void>((resolve) => {
      const wake = () => {
        among.delete(wake)
        cancel()
        resolve()
      }
      const cancel = ms === undefined ? () => {} : clock.after(ms, wake)
      among.add(wake)
      stop = wake
    })
    await Promise.race([woken, ...running])
    stop()
  }

  const failAll = (finding: Finding, remote: RemoteEnd, conversation: string, durationMs: number) => {
    for (const job of queue.takeAll()) deps.done({ job, findings: job.recipients.map(() => finding), remote, durationMs, conversation })
  }

  /**
   * Sees to it that somebody takes what waits: a connection that can chain it, else an idle one, else a new one. Whoever has its fill
   * calls again, so that a few connections are kept busy rather than many woken.
   */
  const press = () => {
    if (queue.size === 0 || waking) return
    if (lane.restMs > 0) return deps.surplus(queue.takeAll(), lane.restMs)
    const [wake] = chaining.size > 0 ? chaining : resting
    if (wake) {
      waking = true
      wake()
      return
    }
    if (down && clock.monotonicMs() < down.untilMs) {
      const { finding, remote, conversation } = down.why
      failAll(finding, remote, `${conversation}\n(not tried again so soon)`, 0)
      return
    }
    down = undefined
    if (clock.monotonicMs() < deniedUntilMs) return
    if (closing || working >= Math.min(allowed, mostConnections) || queue.size <= (working - open.size) * mostChained()) return
    working++
    void work().finally(() => {
      working--
      waking = false
      press()
    })
  }

  /** One connection's life: open, send what there is, wait a little for more, quit. */
  const work = async () => {
    const places = await takePlaces(lane, queue.size)
    if (places.size === 0) return denied()
    try {
      await workOn(places)
    } finally {
      for (const slot of places.values()) slot.release()
      if (lane.isScarce && clock.monotonicMs() >= deniedUntilMs) denied()
    }
  }

  const denied = (forMs = deniedMs) => {
    deniedUntilMs = clock.monotonicMs() + forMs
    clock.after(forMs, press)
  }

  const workOn = async (places: ReadonlyMap<End, Slot>) => {
    const beganMs = clock.monotonicMs()
    const opened = await openConnection(way as Way, places, deps)
    if (opened === 'left out') {
      if (open.size === 0) deps.surplus(queue.takeAll(), Math.max(surplusMs, ...restsOf(lane)))
      return
    }
    if (!opened.ok) {
      const { reply } = opened.finding
      if (reply && opened.end?.shape.isThrottle(reply)) {
        opened.end.shape.refused(reply.text)
        allowed = Math.max(1, open.size)
        // One email tells what was said; the others wait until the provider takes more.
        const job = open.size === 0 ? queue.take() : undefined
        const { finding, remote, conversation } = opened
        const durationMs = clock.monotonicMs() - beganMs
        if (job) deps.done({ job, findings: job.recipients.map(() => finding), remote, durationMs, conversation })
        return denied(refusedMs)
      }
      // With another connection alive, this is its limit and not the destination's end.
      if (open.size > 0) {
        allowed = Math.max(1, open.size)
        return
      }
      allowed = 1
      down = { untilMs: clock.monotonicMs() + downForMs, why: opened }
      failAll(opened.finding, opened.remote, opened.conversation, clock.monotonicMs() - beganMs)
      return
    }
    const { connection, end } = opened
    for (const [other, slot] of places) if (other !== end) slot.release()
    open.set(connection, end)
    try {
      await sendOver(connection, end)
    } catch (error) {
      deps.log.error({ err: error, destination: name }, 'a delivery loop broke')
      connection.destroy()
    } finally {
      open.delete(connection)
      connection.quit()
    }
  }

  const sendOver = async (connection: SmtpConnection, end: End) => {
    const running = new Set<Promise<void>>()
    const endMs = clock.monotonicMs() + scarceLifeMs
    let sent = 0
    while (connection.usable && !closing && sent < mostPerConnection && endRestMs(end) === 0) {
      waking = false
      if (end.shape.isScarce && clock.monotonicMs() > endMs) break
      if (end.shape.isPaced && queue.size > 0) {
        await end.shape.turn()
        if (!connection.usable || closing) break
      }
      const job = queue.take()
      if (!job) {
        if (running.size > 0) await wait(chaining, running)
        else {
          await wait(resting, [], idleMs)
          if (queue.size === 0) break
        }
        continue
      }
      if (end.warmUp && !(await keepAllowed(job, end.warmUp))) continue
      if (!job.body || running.size + 1 >= mostChained()) press()
      const prepared = await deps.prepare(job)
      if (!prepared) continue
      if (!connection.usable) {
        queue.push(job.tenantId, job)
        press()
        break
      }
      sent += await sendParts(connection, job, prepared, running)
    }
    await Promise.all(running)
  }

  /** Leaves as many recipients in the job as the warm-up allows; false when that is none. */
  const keepAllowed = async (job: Job, warmUp: WarmUp): Promise<boolean> => {
    const granted = await warmUp.take(job.recipients.length, queue.size)
    const later = job.recipients.slice(granted)
    if (later.length === 0) return true
    if (granted === 0) {
      deps.surplus([job], Math.max(surplusMs, lane.restMs))
      return false
    }
    job.recipients = job.recipients.slice(0, granted)
    deps.surplus([{ ...job, recipients: later }], Math.max(surplusMs, lane.restMs))
    return true
  }

  /** The job's transactions, chained behind those that are `running`; returns how many the connection took. */
  const sendParts = async (connection: SmtpConnection, job: Job, message: PreparedMessage, running: Set<Promise<void>>) => {
    const parts = transactionsOf(job, message)
    const turns: Promise<void>[] = []
    for (const [index, part] of parts.entries()) {
      if (index > 0 && !connection.usable) {
        queue.push(job.tenantId, { ...job, recipients: job.recipients.slice(index) })
        press()
        break
      }
      const turn = transact(connection, part, message).finally(() => running.delete(turn))
      turns.push(turn)
      running.add(turn)
      if (running.size < mostChained()) continue
      if (parts.length > 1) press()
      await Promise.race(running)
    }
    void Promise.allSettled(turns).then(() => deps.release(job))
    return turns.length
  }

  const mostChained = () => (lastMs < fastMs ? depthOfFast : depth)

  const transact = async (connection: SmtpConnection, job: Job, message: PreparedMessage) => {
    const sevenBit = connection.extensions.eightBitMime ? undefined : message.sevenBit
    const transaction: Transaction = {
      returnPath: message.returnPathOf?.(job.recipients[0] as Claimed) ?? '',
      recipients: job.recipients.map((one) => one.recipient),
      data: sevenBit?.() ?? message.data,
      needs8bit: message.needs8bit && !sevenBit,
      needsSmtpUtf8: message.needsSmtpUtf8 || job.needsSmtpUtf8,
      mayFinish: () => deps.mayFinish(job),
    }
    const result = await connection.transact(transaction)
    lastMs = result.durationMs
    const [first] = result.recipients
    if (first?.state === 'failed' && first.failure.kind === 'aborted') {
      deps.abandoned(job)
      return
    }
    // A connection that breaks before anything of the message was said says nothing about the message: another one takes it.
    const untouched = first?.state === 'failed' && first.failure.kind === 'dropped' && first.failure.stage === 'mail' && !job.again
    if (untouched) {
      job.again = true
      queue.push(job.tenantId, job)
      press()
      return
    }
    const { shape, source } = open.get(connection) ?? anyEnd
    const throttled = result.recipients.find((one) => one.state === 'refused' && shape.isThrottle(one.reply))
    if (throttled?.state === 'refused') shape.throttled(throttled.reply.text)
    else if (first?.state === 'accepted' || first?.state === 'refused') shape.accepted(1)
    if (result.recipients.some((one) => one.state === 'accepted')) allowed = Math.min(mostConnections, allowed + 1)
    deps.done({
      job,
      findings: result.recipients.map(findingOf),
      remote: { ...remoteOf(connection.peer, result.secure), source },
      durationMs: result.durationMs,
      conversation: result.transcript,
    })
  }

  return {
    add(job, newWay) {
      way = newWay
      if (queue.size >= lane.mostWaiting) return deps.surplus([job], surplusMs)
      queue.push(job.tenantId, job)
      press()
    },
    get hasRoom() {
      return queue.size < lane.mostWaiting && lane.restMs === 0
    },
    get idle() {
      return queue.size === 0 && working === 0
    },
    takeBack: () => queue.takeAll(),
    close() {
      closing = true
      for (const wake of [...chaining, ...resting]) wake()
    },
    destroy() {
      for (const connection of open.keys()) connection.destroy()
    },
  }
}

interface Unopened {
  ok: false
  finding: Finding
  remote: RemoteEnd
  conversation: string
  end: End | undefined
}

type Opened = { ok: true; connection: SmtpConnection; end: End } | Unopened

/** How long each of the lane's ends rests. */
const restsOf = ({ four, six }: Lane) => [four, six].flatMap((end) => (end ? [endRestMs(end)] : []))

/**
 * Tries hosts in order of preference, and of their addresses the first that answers; a host that says 5xx at the door is passed over for
 * the next. `left out`: it has addresses only of a family that has no place for a connection now.
 */
async function openConnection(way: Way, places: ReadonlyMap<End, Slot>, deps: DestinationDeps): Promise<Opened | 'left out'> {
  const { lane, clock } = deps
  let last: Unopened | undefined
  let wasLeftOut = false
  for (const { host } of way.hosts) {
    const found = await findAddresses(host, deps.resolver, way.guard)
    if (found.kind !== 'addresses') {
      last = gentler(last, unopened(unreachable(host, found), { ...nowhere, host }))
      continue
    }
    const peers = found.addresses.map((address) => ({ host, address, port: way.port }))
    const targets = targetsOf(lane, places, peers)
    if (targets.length === 0 && isLeftOut(lane, peers)) wasLeftOut = true
    else if (targets.length === 0) last = gentler(last, unopened(ofOtherFamily(host), { ...nowhere, host }))
    for await (const reached of reach(targets, { clock })) {
      const { peer, end } = reached.target
      const told = (failure: Failure) =>
        unopened(findingOfFailure(failure), { ...remoteOf(peer, false), source: end.source }, failure.transcript, end)
      if ('failure' in reached) {
        last = gentler(last, told(reached.failure))
        continue
      }
      const options: ConnectOptions = {
        peer,
        ehloName: end.ehloName,
        localAddress: end.source,
        socket: reached.socket,
        tls: way.tls,
        auth: way.auth,
        clock,
      }
      let result = await connect(options)
      // Opportunistic TLS: a handshake that fails must not cost the mail (RFC 7435), so it goes in the clear over a new connection.
      if (!result.ok && result.failure.kind === 'tls' && way.tls === 'opportunistic')
        result = await connect({ ...options, socket: undefined, tls: 'none' })
      if (result.ok) return { ...result, end }
      last = gentler(last, told(result.failure))
    }
  }
  if (!last && wasLeftOut) return 'left out'
  return last ?? unopened(unreachable('the domain', { kind: 'none' }), nowhere)
}

const unopened = (finding: Finding, remote: RemoteEnd, conversation = finding.message, end?: End): Unopened => ({
  ok: false,
  finding,
  remote,
  conversation,
  end,
})

const ofOtherFamily = (host: string): Finding => ({
  kind: 'temporary',
  reply: null,
  classification: 'connection_error',
  enhanced: '4.4.4',
  message: `${host} has no address of the family that this mail is sent from`,
})

/** Only when every host says a permanent no is it one (RFC 5321 section 5.1); of several reasons to wait, the last one is told. */
const gentler = (before: Unopened | undefined, now: Unopened): Unopened =>
  before && before.finding.kind !== 'permanent' && now.finding.kind === 'permanent' ? before : now

/** A host without an address to connect to. One that names only refused networks will not change its mind (contract section 7.2). */
function unreachable(host: string, found: Exclude<AddressesResult, { kind: 'addresses' }>): Finding {
  const facts = { reply: null, classification: 'dns_error' as const }
  switch (found.kind) {
    case 'refused':
      return { ...facts, kind: 'permanent', enhanced: '5.4.4', message: found.message }
    case 'none':
      return { ...facts, kind: 'temporary', enhanced: '4.4.4', message: `${host} has no address` }
    case 'trouble':
      return { ...facts, kind: 'temporary', enhanced: '4.4.3', message: `the address of ${host} could not be looked up (${found.code})` }
    default:
      return impossible(found)
  }
}
