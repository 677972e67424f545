/**
 * One destination: the mail servers that domains share, a small pool of reused connections, and the jobs that wait for one. It never
 * holds up another destination; a host that cannot be reached fails what waits for it now and is asked again a little later.
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
/** How long a failed connection speaks for the whole destination. */
const usualDownForMs = 15_000
/**
 * Transactions given to one connection at a time: the one under way and those chained behind it. A peer that answers fast is given
 * more before a second connection is woken, because a chained message costs one round trip and one write instead of two.
 */
const depth = 2
const depthOfFast = 3
const fastMs = 50
/** After no slot for a connection was to be had; and between connections that processes take turns with. */
const deniedMs = 100
/** By then what a refusal means has been learnt. */
const refusedMs = 700

/** The first may be chance. */
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
  /** How long a failed connection speaks for the whole destination. */
  downForMs?: number | undefined
  /** When it fails once more, that is for good. */
  isLastTry(job: Job): boolean
  /** Not offered, and not to be claimed again for so long; no attempt. */
  putOff(job: Job, forMs: number, waitsFor: string): void
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
  const { clock, outlet, downForMs = usualDownForMs } = deps
  const queue = fairQueue<Job>()
  const open = new Set<SmtpConnection>()
  const stumbles = openStumbles(clock)
  let way: Way | undefined
  let working = 0
  /** Grows with every success, so that a destination which answers nobody costs one connection. */
  let allowed = 1
  let down: { untilMs: number; why: Unopened } | undefined
  /** No slot for a connection is asked for before. */
  let deniedUntilMs = 0
  let closing = false
  /** How long the last transaction took. */
  let lastMs = Infinity
  const chaining = openWaiters(clock)
  const resting = openWaiters(clock)
  /** Connections in a row that ended by themselves before anything was sent, though there was mail. */
  let fruitless = 0
  /** A connection has been woken and has not looked at the queue yet. */
  let waking = false

  const fail = (job: Job, finding: Finding, remote: RemoteEnd, conversation: string, durationMs: number) =>
    deps.done({ job, findings: job.recipients.map(() => finding), remote, durationMs, conversation })

  /**
   * What DNS or a policy says of the destination is the outcome of all that waits. A connection was made for one email: the others were
   * not offered, no reply is theirs, and none of them has its last try by it.
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
      // One is offered at a time, so that the next one's turn comes as much later.
      if (deps.isLastTry(job)) deps.putOff(job, ++nth * downForMs, otherConnection(finding, remote))
      else fail(job, others, remote, others.message, 0)
    }
  }

  /**
   * Sees to it that somebody takes what waits: a connection that can chain it, else an idle one, else a new one. Whoever has its fill
   * calls again, so that a few connections are kept busy rather than many woken.
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

  /** One connection's life: open, send what there is, wait a little for more, quit. */
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
      // A timer may be early by a part of a millisecond, and nobody else presses when nothing new comes.
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

  /** What is said of us or on a connection is the outcome of one email only, and the others wait. */
  const notOpened = (opened: Unopened, durationMs: number) => {
    const { finding, remote, conversation, end, distrust } = opened
    allowed = Math.max(1, open.size)
    const spendOne = () => {
      // With another connection alive, no email has to tell what was said.
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
    // With another connection alive, this is its limit and not the destination's end.
    if (open.size > 0) return
    down = { untilMs: clock.monotonicMs() + downForMs, why: opened }
    spendOne()
    failWaiting(opened)
  }

  const addAll = (jobs: readonly Job[]) => {
    for (const job of jobs) {
      // Nobody looks at the queue any more.
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

/** How long each of the outlet's ends rests. */
const restsOf = ({ four, six }: Outlet) => [four, six].flatMap((end) => (end ? [endRestMs(end)] : []))
