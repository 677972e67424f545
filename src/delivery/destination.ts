/**
 * One destination: the mail servers that domains share, a small pool of reused connections, and the jobs that wait for one. It never
 * holds up another destination; a host that cannot be reached fails what waits for it now and is asked again a little later.
 */
import type { Clock, Log } from '#base'
import type { Resolver } from '#net'
import type { Dial, SmtpConnection, SmtpLimits, Transaction, TransactionResult } from '#smtp'
import type { Claimed } from '#spool'
import { shapeBy } from './distrust.ts'
import { fairQueue } from './fair-queue.ts'
import { type Job, type PreparedMessage, transactionsOf } from './job.ts'
import { type End, endRestMs, type Lane, takeSlots } from './lane.ts'
import { openConnection, type Unopened, type Way } from './open-connection.ts'
import { type Finding, findingOf, nowhere, type RemoteEnd } from './outcome.ts'
import type { Slot } from './slots.ts'
import { openStumbles } from './stumbles.ts'
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
/** After no slot for a connection was to be had; and between connections that processes take turns with. */
const deniedMs = 100
/** By then what a refusal means has been learnt. */
const refusedMs = 700
const scarceLifeMs = 5000
/** How often an idle connection of few asks whether another process wants it. */
const askWantedMs = 100
const surplusMs = 1000

export interface FindingFor {
  job: Job
  findings: Finding[]
  remote: RemoteEnd
  durationMs: number
  repliedMs?: TransactionResult['repliedMs']
  conversation: string
}

export interface DestinationDeps {
  clock: Clock
  log: Log
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
  /** From which of our addresses, and how much the provider takes from them, over all processes. */
  lane: Lane
  /** Not begun, and not to be claimed again for so long: the provider takes no more now. */
  surplus(jobs: Job[], forMs: number): void
  smtpLimits?: Partial<SmtpLimits> | undefined
  dial?: Dial | undefined
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
  /** With where each comes from and leads. */
  const open = new Map<SmtpConnection, { end: End; remote: RemoteEnd }>()
  const stumbles = openStumbles(clock)
  /** Those on which a message was answered: what breaks then is the connection, and each such break had its progress. */
  const carried = new WeakSet<SmtpConnection>()
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
    const slots = await takeSlots(lane, queue.size)
    if (slots.size === 0) return denied()
    try {
      await workOn(slots)
    } finally {
      for (const slot of slots.values()) slot.release()
      if (lane.isScarce && clock.monotonicMs() >= deniedUntilMs) denied()
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
      if (open.size === 0) deps.surplus(queue.takeAll(), Math.max(surplusMs, ...restsOf(lane)))
      return
    }
    if (!opened.ok) return notOpened(opened, clock.monotonicMs() - beganMs)
    const { connection, end, remote } = opened
    for (const [other, slot] of slots) if (other !== end) slot.release()
    open.set(connection, { end, remote })
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

  /** What is said of us is the outcome of one email only, and the others wait; what is said of the destination is that of all. */
  const notOpened = (opened: Unopened, durationMs: number) => {
    const { finding, remote, conversation, end, distrust } = opened
    allowed = Math.max(1, open.size)
    const spendOne = () => {
      // With another connection alive, no email has to tell what was said.
      const job = open.size === 0 ? queue.take() : undefined
      if (job) deps.done({ job, findings: job.recipients.map(() => finding), remote, durationMs, conversation })
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
    failAll(finding, remote, conversation, durationMs)
  }

  /** Until there is mail again, and false when the connection is to be left: nothing came for long, or others have mail for it. */
  const restFor = async (connection: SmtpConnection, { shape }: End): Promise<boolean> => {
    const untilMs = clock.monotonicMs() + idleMs
    for (let leftMs = idleMs; leftMs > 0; leftMs = untilMs - clock.monotonicMs()) {
      await wait(resting, [], shape.isScarce ? Math.min(askWantedMs, leftMs) : leftMs)
      if (queue.size > 0 || closing || !connection.usable) return true
      if (shape.isScarce && (await shape.isWanted().catch(() => false))) return false
    }
    return false
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
          if (!(await restFor(connection, end))) break
        }
        continue
      }
      if (!job.body || running.size + 1 >= mostChained()) press()
      const prepared = await deps.prepare(job, addAll)
      if (!prepared) continue
      // Not before, because what is split off waits in the queue, which is emptied when the allowance is used up.
      if (end.warmUp && !(await keepAllowed(job, end.warmUp))) continue
      if (!connection.usable) {
        deps.release(job)
        addAll([job])
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

  /** Leaves as many recipients in the job as the warm-up allows; false when that is none. */
  const keepAllowed = async (job: Job, warmUp: WarmUp): Promise<boolean> => {
    // It comes back from a connection that broke.
    if (job.allowedBy === warmUp) return true
    const granted = await warmUp.take(job.recipients.length, queue.size)
    if (granted === 0) {
      deps.surplus([job], Math.max(surplusMs, lane.restMs))
      return false
    }
    const later = job.recipients.slice(granted)
    if (later.length > 0) deps.surplus([{ ...job, recipients: later }], Math.max(surplusMs, lane.restMs))
    job.recipients = job.recipients.slice(0, granted)
    job.allowedBy = warmUp
    return true
  }

  /** The job's transactions, chained behind those that are `running`; returns how many the connection took. */
  const sendParts = async (connection: SmtpConnection, job: Job, message: PreparedMessage, running: Set<Promise<void>>) => {
    const parts = transactionsOf(job, message)
    const turns: Promise<void>[] = []
    for (const [index, part] of parts.entries()) {
      if (index > 0 && !connection.usable) {
        addAll([{ ...job, recipients: job.recipients.slice(index) }])
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
    const { signatures, data } = sevenBit ? await sevenBit() : message.signed
    const first = job.recipients[0] as Claimed
    const transaction: Transaction = {
      returnPath: message.returnPathOf?.(first) ?? '',
      recipients: job.recipients.map((one) => one.recipient),
      fieldsOnTop: Buffer.from(message.markOf(first) + signatures),
      data,
      needs8bit: message.needs8bit && !sevenBit,
      needsSmtpUtf8: message.needsSmtpUtf8 || job.needsSmtpUtf8,
      mayFinish: () => deps.mayFinish(job),
    }
    const result = await connection.transact(transaction)
    lastMs = result.durationMs
    const [outcome] = result.recipients
    if (outcome?.state === 'failed' && outcome.failure.kind === 'aborted') {
      deps.abandoned(job)
      return
    }
    const stumbled = outcome?.state === 'failed' && stumbles.note(connection, outcome.failure, !carried.has(connection))
    // A connection that breaks before anything of the message was said says nothing about the message: another one takes it. So it
    // does when the peer was confused by several commands at once; it is then told one at a time.
    const untouched = outcome?.state === 'failed' && outcome.failure.kind === 'dropped' && outcome.failure.stage === 'mail'
    if ((untouched || stumbled) && (!job.again || carried.has(connection))) {
      job.again ||= !carried.has(connection)
      addAll([job])
      return
    }
    if (outcome?.state !== 'failed') carried.add(connection)
    const { end, remote } = open.get(connection) ?? { end: anyEnd, remote: nowhere }
    shapeBy(end.shape, result.recipients)
    if (result.recipients.some((one) => one.state === 'accepted')) allowed = Math.min(mostConnections, allowed + 1)
    deps.done({
      job,
      findings: result.recipients.map(findingOf),
      remote,
      durationMs: result.durationMs,
      repliedMs: result.repliedMs,
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

/** How long each of the lane's ends rests. */
const restsOf = ({ four, six }: Lane) => [four, six].flatMap((end) => (end ? [endRestMs(end)] : []))
