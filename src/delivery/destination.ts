/**
 * One destination: the mail servers that domains share, a small pool of reused connections, and the jobs that wait for one. It never
 * holds up another destination; a host that cannot be reached fails what waits for it now and is asked again a little later.
 */
import { type Clock, type Config, impossible, type Log } from '#base'
import { classify } from '#bounces'
import { type AddressesResult, type AddressGuard, findAddresses, type Resolver } from '#net'
import {
  type ConnectOptions,
  type ConnectResult,
  connect,
  type RecipientResult,
  type SmtpConnection,
  type SmtpLimits,
  type Transaction,
} from '#smtp'
import type { Claimed } from '#spool'
import { fairQueue } from './fair-queue.ts'
import { type Job, type PreparedMessage, transactionsOf } from './job.ts'
import { type Finding, findingOf, findingOfFailure, nowhere, type RemoteEnd, remoteOf } from './outcome.ts'
import type { Shape } from './shaping.ts'
import { openStumbles, type Stumbles } from './stumbles.ts'
import type { GuardedHost } from './tls-policy.ts'

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
  /**
   * Loads, builds and signs; undefined when there is nothing to send any more. When each recipient's message is its own, the job
   * keeps its first recipient, and `others` takes jobs for the rest.
   */
  prepare(job: Job, others: (jobs: readonly Job[]) => void): Promise<PreparedMessage | undefined>
  /** What was prepared for the job is not needed any more. */
  release(job: Job): void
  /** Whether the lease of the job's shard is still held. */
  mayFinish(job: Job): boolean
  done(result: FindingFor): void
  /** The lease was lost before the final dot: nothing was sent. */
  abandoned(job: Job): void
  /** How much the provider takes, over all processes. */
  shape: Shape
  /** Not begun, and not to be claimed again for so long: the provider takes no more now. */
  surplus(jobs: Job[], forMs: number): void
  smtpLimits?: Partial<SmtpLimits> | undefined
}

/** How a destination is reached: MX hosts, or the operator's relay. */
export interface Way {
  hosts: readonly GuardedHost[]
  port: number
  auth: ConnectOptions['auth']
  guard: AddressGuard
}

export interface Destination {
  add(job: Job, way: Way): void
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
  /** With where each leads. */
  const open = new Map<SmtpConnection, RemoteEnd>()
  const stumbles = openStumbles(clock)
  /** Those on which a message was answered: what breaks then is the connection, and each such break had its progress. */
  const carried = new WeakSet<SmtpConnection>()
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
    if (deps.shape.restMs > 0) return deps.surplus(queue.takeAll(), deps.shape.restMs)
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
    const slot = await deps.shape.connect()
    if (!slot) return denied()
    try {
      await workOn()
    } finally {
      slot.release()
      if (deps.shape.isScarce && clock.monotonicMs() >= deniedUntilMs) denied()
    }
  }

  const denied = (forMs = deniedMs) => {
    deniedUntilMs = clock.monotonicMs() + forMs
    clock.after(forMs, press)
  }

  const workOn = async () => {
    const beganMs = clock.monotonicMs()
    const opened = await openConnection(way as Way, deps, stumbles)
    if (!opened.ok) {
      const { reply } = opened.finding
      if (reply && deps.shape.isThrottle(reply)) {
        deps.shape.refused(reply.text)
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
    const { connection, remote } = opened
    open.set(connection, remote)
    try {
      await sendOver(connection)
    } catch (error) {
      deps.log.error({ err: error, destination: name }, 'a delivery loop broke')
      connection.destroy()
    } finally {
      open.delete(connection)
      connection.quit()
    }
  }

  const sendOver = async (connection: SmtpConnection) => {
    const running = new Set<Promise<void>>()
    const endMs = clock.monotonicMs() + scarceLifeMs
    let sent = 0
    while (connection.usable && !closing && sent < mostPerConnection && deps.shape.restMs === 0) {
      waking = false
      if (deps.shape.isScarce && clock.monotonicMs() > endMs) break
      if (deps.shape.isPaced && queue.size > 0) {
        await deps.shape.turn()
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
      if (!job.body || running.size + 1 >= mostChained()) press()
      const prepared = await deps.prepare(job, addAll)
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

  const addAll = (jobs: readonly Job[]) => {
    for (const job of jobs) {
      // Nobody looks at the queue any more.
      if (closing) deps.abandoned(job)
      else queue.push(job.tenantId, job)
    }
    press()
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

  /** What the provider's answers say of how we may send. */
  const shapeBy = (recipients: readonly RecipientResult[]) => {
    const refusals = recipients.flatMap((one) => (one.state === 'refused' ? [one.reply] : []))
    const distrust = refusals.find((reply) => classify(reply).fault === 'reputation')
    const throttle = refusals.find((reply) => deps.shape.isThrottle(reply))
    if (distrust) deps.shape.distrusted(distrust.text)
    else if (throttle) deps.shape.throttled(throttle.text)
    else if (refusals.length > 0 || recipients[0]?.state === 'accepted') deps.shape.accepted(1)
  }

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
    const stumbled = first?.state === 'failed' && stumbles.note(connection, first.failure, !carried.has(connection))
    // A connection that breaks before anything of the message was said says nothing about the message: another one takes it. So it
    // does when the peer was confused by several commands at once; it is then told one at a time.
    const untouched = first?.state === 'failed' && first.failure.kind === 'dropped' && first.failure.stage === 'mail'
    if ((untouched || stumbled) && (!job.again || carried.has(connection))) {
      job.again ||= !carried.has(connection)
      queue.push(job.tenantId, job)
      press()
      return
    }
    if (first?.state !== 'failed') carried.add(connection)
    shapeBy(result.recipients)
    if (result.recipients.some((one) => one.state === 'accepted')) allowed = Math.min(mostConnections, allowed + 1)
    deps.done({
      job,
      findings: result.recipients.map(findingOf),
      remote: open.get(connection) ?? nowhere,
      durationMs: result.durationMs,
      conversation: result.transcript,
    })
  }

  return {
    add(job, newWay) {
      way = newWay
      if (queue.size >= deps.shape.mostWaiting) return deps.surplus([job], surplusMs)
      queue.push(job.tenantId, job)
      press()
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
}

type Opened = { ok: true; connection: SmtpConnection; remote: RemoteEnd } | Unopened

/** Tries hosts in order of preference and their addresses in turn; a host that says 5xx at the door is passed over for the next. */
async function openConnection(way: Way, deps: DestinationDeps, stumbles: Stumbles): Promise<Opened> {
  let last: Unopened | undefined
  for (const guarded of way.hosts) {
    const { host, tls } = guarded
    if (typeof tls === 'object' && 'unusable' in tls) {
      last = gentler(last, unopened(untrusted(tls.unusable), { ...nowhere, host }))
      continue
    }
    const found = await findAddresses(host, deps.resolver, way.guard)
    if (found.kind !== 'addresses') {
      last = gentler(last, unopened(unreachable(host, found), { ...nowhere, host }))
      continue
    }
    for (const address of found.addresses) {
      const options: ConnectOptions = {
        peer: { host, address, port: way.port },
        ehloName: deps.config.hostname,
        tls,
        auth: way.auth,
        pipelining: stumbles.has(address) ? 'never' : 'when offered',
        clock: deps.clock,
        limits: deps.smtpLimits ?? {},
      }
      let result = await connect(options)
      if (tls === 'opportunistic') result = await orWithLess(options, result)
      if (result.ok) return { ...result, remote: remoteOf(options.peer, result.connection, guarded) }
      const { failure } = result
      const remote = remoteOf(options.peer, { secure: false, tls: failure.tls ?? null }, guarded)
      last = gentler(last, unopened(findingOfFailure(failure), remote, failure.transcript))
    }
  }
  return last ?? unopened(unreachable('the domain', { kind: 'none' }), nowhere)
}

/**
 * Opportunistic TLS: a handshake that fails must not cost the mail (RFC 7435), so an older TLS is tried over a new connection, then none.
 */
async function orWithLess(options: ConnectOptions, first: ConnectResult): Promise<ConnectResult> {
  let result = first
  for (const tls of ['old', 'none'] as const) {
    if (result.ok || result.failure.kind !== 'tls') return result
    if (tls === 'none' || result.failure.mayBeOldTls) result = await connect({ ...options, tls })
  }
  return result
}

const untrusted = (message: string): Finding => ({
  kind: 'temporary',
  reply: null,
  classification: 'tls_required',
  enhanced: '4.7.5',
  message,
})

const unopened = (finding: Finding, remote: RemoteEnd, conversation = finding.message): Unopened => ({
  ok: false,
  finding,
  remote,
  conversation,
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
