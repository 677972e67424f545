/**
 * One site: the MX hosts that several recipient domains share, a small pool of reused connections, and the jobs queued for them. A site
 * never blocks another site. An unreachable host fails the queued jobs at once and is tried again after `downForMs`.
 */
import type { Log } from '#base'
import type { Resolver } from '#net'
import type { Dial, SmtpConnection, SmtpLimits } from '#smtp'
import { type CarryDeps, carry, type Supply } from './carry.ts'
import { fairQueue } from './fair-queue.ts'
import type { Job } from './job.ts'
import { openConnection, type Unopened, type Way } from './open-connection.ts'
import { type Finding, notOffered, otherConnection, type RemoteEnd } from './outcome.ts'
import { type End, endRestMs, type Outlet, surplusMs, takeSlots } from './outlet.ts'
import type { Slot } from './shaping/slots.ts'
import { openStumbles } from './stumbles.ts'
import { openWaiters } from './waiters.ts'

const mostConnections = 10
/** How long a failed connection counts for the whole site. */
const usualDownForMs = 15_000
/**
 * Pipeline depth: transactions given to one connection at a time, the current one included. A fast peer gets a deeper pipeline before a
 * second connection is woken: a pipelined message costs one round trip and one write instead of two.
 */
const depth = 2
const depthOfFast = 3
const fastMs = 50
/** Delay before asking for another connection lease after one was denied, and between connections when processes take turns. */
const deniedMs = 100
/** After this time the traffic limits have been adapted to the refusal. */
const refusedMs = 700

/** Consecutive connections that may end unused before the site counts as down. A single one may be chance. */
const mostFruitless = 2
const cutOff: Finding = {
  kind: 'temporary',
  reply: null,
  classification: 'connection_error',
  enhanced: null,
  message: 'the connection ended before anything could be sent over it',
}

export interface DestinationDeps extends CarryDeps {
  log: Log
  resolver: Resolver
  smtpLimits?: Partial<SmtpLimits> | undefined
  dial?: Dial | undefined
  /** How long a failed connection counts for the whole site. */
  downForMs?: number | undefined
  /** The next failure is permanent. */
  isLastTry(job: Job): boolean
  /** Not offered to the server and not to be claimed again for `forMs`; counts as no attempt. */
  putOff(job: Job, forMs: number, waitsFor: string): void
}

export interface Destination {
  add(job: Job, way: Way): void
  /** More jobs may be added: the egress path is not backing off, and the queue is not full. */
  readonly hasRoom: boolean
  /** The queue is empty and no connection is open. */
  readonly idle: boolean
  /** Removes and returns the jobs that no connection has started. */
  takeBack(): Job[]
  /** Closes idle connections at once and the others when their transactions end. */
  close(): void
  destroy(): void
}

export function openDestination(name: string, deps: DestinationDeps): Destination {
  const { clock, outlet, downForMs = usualDownForMs } = deps
  const queue = fairQueue<Job>()
  const open = new Set<SmtpConnection>()
  const stumbles = openStumbles(clock)
  let way: Way | undefined
  let working = 0
  /** Maximum number of connections. It grows with every success, so that an unresponsive site costs one connection. */
  let allowed = 1
  let down: { untilMs: number; why: Unopened } | undefined
  /** No connection lease is requested before this time. */
  let deniedUntilMs = 0
  let closing = false
  /** Duration of the last transaction. */
  let lastMs = Infinity
  const chaining = openWaiters(clock)
  const resting = openWaiters(clock)
  /** Consecutive connections that the peer ended before any message was sent, although mail was queued. */
  let fruitless = 0
  /** A connection has been woken and has not looked at the queue yet. */
  let waking = false

  const fail = (job: Job, finding: Finding, remote: RemoteEnd, conversation: string, durationMs: number) =>
    deps.done({ job, findings: job.recipients.map(() => finding), remote, durationMs, conversation })

  /**
   * A failure from DNS or a TLS policy applies to every queued job. A connection failure belongs to the one email the connection was
   * opened for: the others were not offered, get no reply, and do not lose their last attempt by it.
   */
  const failWaiting = ({ finding, remote, conversation }: Unopened) => {
    const waiting = queue.takeAll()
    if (remote.address === null) {
      for (const job of waiting) fail(job, finding, remote, conversation, 0)
      return
    }
    const others = notOffered(finding, remote)
    let nth = 0
    for (const job of waiting) {
      // One email is offered per `downForMs`, so each further email is postponed by that much more.
      if (deps.isLastTry(job)) deps.putOff(job, ++nth * downForMs, otherConnection(finding, remote))
      else fail(job, others, remote, others.message, 0)
    }
  }

  /**
   * Makes sure that a connection takes the queued jobs: one that can pipeline them, else an idle one, else a new one. A connection whose
   * pipeline is full calls this again, so that a few connections stay busy instead of many being woken.
   */
  const press = () => {
    if (queue.size === 0 || waking) return
    if (outlet.restMs > 0) return deps.surplus(queue.takeAll(), outlet.restMs)
    waking = chaining.wakeOne() || resting.wakeOne()
    if (waking) return
    if (down && clock.monotonicMs() < down.untilMs) {
      failWaiting(down.why)
      return
    }
    down = undefined
    if (clock.monotonicMs() < deniedUntilMs) return
    if (closing || working >= Math.min(allowed, mostConnections) || queue.size <= (working - open.size) * supply.mostChained()) return
    working++
    void work().finally(() => {
      working--
      waking = false
      press()
    })
  }

  /** Lifetime of one connection: open, send the queued jobs, idle for more, quit. */
  const work = async () => {
    const slots = await takeSlots(outlet, queue.size)
    if (slots.size === 0) return denied()
    try {
      await workOn(slots)
    } finally {
      for (const slot of slots.values()) slot.release()
      if (outlet.isScarce && clock.monotonicMs() >= deniedUntilMs) denied()
    }
  }

  const denied = (forMs = deniedMs) => {
    const untilMs = clock.monotonicMs() + forMs
    deniedUntilMs = Math.max(deniedUntilMs, untilMs)
    clock.after(forMs, () => {
      // A timer may fire a fraction of a millisecond early, and without new mail no other code calls `press`.
      if (deniedUntilMs <= untilMs) deniedUntilMs = 0
      press()
    })
  }

  const workOn = async (slots: ReadonlyMap<End, Slot>) => {
    const beganMs = clock.monotonicMs()
    const opened = await openConnection(way as Way, slots, { ...deps, stumbles })
    if (opened === 'left out') {
      if (open.size === 0) deps.surplus(queue.takeAll(), Math.max(surplusMs, ...restsOf(outlet)))
      return
    }
    if (!opened.ok) return notOpened(opened, clock.monotonicMs() - beganMs)
    const { connection, end, remote } = opened
    for (const [other, slot] of slots) if (other !== end) slot.release()
    open.add(connection)
    let sent = 0
    let wasCutOff = false
    try {
      sent = await carry({ connection, end, remote }, supply, deps)
      wasCutOff = !connection.usable && !closing
    } catch (error) {
      deps.log.error({ err: error, destination: name }, 'a delivery loop broke')
      connection.destroy()
    } finally {
      open.delete(connection)
      connection.quit()
    }
    if (sent > 0 || !wasCutOff) fruitless = 0
    else if (queue.size > 0 && ++fruitless >= mostFruitless) {
      fruitless = 0
      notOpened({ ok: false, finding: cutOff, remote, conversation: cutOff.message, end, distrust: 'none' }, clock.monotonicMs() - beganMs)
    }
  }

  /** A refusal of Postrider's address or of a connection is the outcome of one email only; the others stay queued. */
  const notOpened = (opened: Unopened, durationMs: number) => {
    const { finding, remote, conversation, end, distrust } = opened
    allowed = Math.max(1, open.size)
    const spendOne = () => {
      // While another connection is open, no email needs to record the refusal.
      const job = open.size === 0 ? queue.take() : undefined
      if (job) fail(job, finding, remote, conversation, durationMs)
    }
    if (finding.reply && end?.shape.isThrottle(finding.reply)) {
      end.shape.refused(finding.reply.text)
      spendOne()
      return denied(refusedMs)
    }
    if (distrust === 'new') spendOne()
    if (distrust !== 'none') return
    // While another connection is open, this is a connection limit and not a failure of the site.
    if (open.size > 0) return
    down = { untilMs: clock.monotonicMs() + downForMs, why: opened }
    spendOne()
    failWaiting(opened)
  }

  const addAll = (jobs: readonly Job[]) => {
    for (const job of jobs) {
      // No connection reads the queue any more.
      if (closing) deps.abandoned(job)
      else queue.push(job.tenantId, job)
    }
    press()
  }

  const supply: Supply = {
    queue,
    stumbles,
    chaining,
    resting,
    get isClosing() {
      return closing
    },
    add: addAll,
    press,
    arrived() {
      waking = false
    },
    answered({ durationMs, recipients }) {
      lastMs = durationMs
      if (recipients.some((one) => one.state === 'accepted')) allowed = Math.min(mostConnections, allowed + 1)
    },
    mostChained: () => (lastMs < fastMs ? depthOfFast : depth),
  }

  return {
    add(job, newWay) {
      way = newWay
      if (queue.size >= outlet.mostWaiting) return deps.surplus([job], surplusMs)
      queue.push(job.tenantId, job)
      press()
    },
    get hasRoom() {
      return queue.size < outlet.mostWaiting && outlet.restMs === 0
    },
    get idle() {
      return queue.size === 0 && working === 0
    },
    takeBack: () => queue.takeAll(),
    close() {
      closing = true
      chaining.wakeAll()
      resting.wakeAll()
    },
    destroy() {
      for (const connection of open) connection.destroy()
    },
  }
}

/** The backoff in ms of each address of the egress path. */
const restsOf = ({ four, six }: Outlet) => [four, six].flatMap((end) => (end ? [endRestMs(end)] : []))
