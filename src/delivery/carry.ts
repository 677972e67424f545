/**
 * One connection's share of a destination's mail: it takes messages from the queue as long as there are any, chains them behind each
 * other, rests for more, and leaves when nothing comes or others want its place.
 */
import type { Clock } from '#base'
import type { SmtpConnection, Transaction, TransactionResult } from '#smtp'
import type { Claimed } from '#spool'
import type { FairQueue } from './fair-queue.ts'
import { type Job, type PreparedMessage, type SignedMessage, transactionsOf } from './job.ts'
import { type Finding, findingOf, type RemoteEnd } from './outcome.ts'
import { type End, endRestMs, type Outlet, surplusMs } from './outlet.ts'
import { shapeBy } from './shaping/distrust.ts'
import type { WarmUp } from './sources/warm-up.ts'
import type { Stumbles } from './stumbles.ts'
import type { Waiters } from './waiters.ts'

/** A connection is kept this long for the next message. */
const idleMs = 3000
/** Transactions on one connection before it is renewed; polite towards servers that count. */
const mostPerConnection = 1000
/** A connection of few is renewed after so long, so that processes take turns with it. */
const scarceLifeMs = 5000
/** How often an idle connection of few asks whether another process wants it. */
const askWantedMs = 100

/** What a try came to, for each recipient of the job. */
export interface FindingFor {
  job: Job
  findings: Finding[]
  remote: RemoteEnd
  durationMs: number
  repliedMs?: TransactionResult['repliedMs']
  conversation: string
}

export interface CarryDeps {
  clock: Clock
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
  outlet: Outlet
  /** Not begun, and not to be claimed again for so long: the provider takes no more now. */
  surplus(jobs: Job[], forMs: number): void
}

/** What the connections of one destination share. */
export interface Supply {
  queue: FairQueue<Job>
  stumbles: Stumbles
  /** Connections with room behind what they are sending, and connections with nothing to send. */
  chaining: Waiters
  resting: Waiters
  readonly isClosing: boolean
  /** Into the queue, and to whoever takes it. */
  add: (jobs: readonly Job[]) => void
  /** Somebody takes what waits. */
  press(): void
  /** Whoever was woken has come to the queue. */
  arrived(): void
  answered(result: TransactionResult): void
  /** Transactions given to one connection at a time. */
  mostChained(): number
}

export interface Carrier {
  connection: SmtpConnection
  end: End
  remote: RemoteEnd
}

/** Resolves when all that the connection took has been answered: with how many transactions that were. */
export async function carry({ connection, end, remote }: Carrier, supply: Supply, deps: CarryDeps): Promise<number> {
  const { clock, outlet } = deps
  const { shape, warmUp } = end
  const { queue, stumbles } = supply
  const running = new Set<Promise<void>>()
  /** A message was answered: what breaks from then on is the connection, and each such break had its progress. */
  let hasCarried = false

  /** Until there is mail again, and false when the connection is to be left: nothing came for long, or others have mail for it. */
  const rest = async (): Promise<boolean> => {
    const untilMs = clock.monotonicMs() + idleMs
    for (let leftMs = idleMs; leftMs > 0; leftMs = untilMs - clock.monotonicMs()) {
      await supply.resting.wait([], shape.isScarce ? Math.min(askWantedMs, leftMs) : leftMs)
      if (queue.size > 0 || supply.isClosing || !connection.usable) return true
      if (shape.isScarce && (await shape.isWanted().catch(() => false))) return false
    }
    return false
  }

  /** Leaves as many recipients in the job as the warm-up allows; false when that is none. */
  const keepAllowed = async (job: Job, allowance: WarmUp): Promise<boolean> => {
    // It comes back from a connection that broke.
    if (job.allowedBy === allowance) return true
    const granted = await allowance.take(job.recipients.length, queue.size)
    if (granted === 0) {
      deps.surplus([job], Math.max(surplusMs, outlet.restMs))
      return false
    }
    const later = job.recipients.slice(granted)
    if (later.length > 0) deps.surplus([{ ...job, recipients: later }], Math.max(surplusMs, outlet.restMs))
    job.recipients = job.recipients.slice(0, granted)
    job.allowedBy = allowance
    return true
  }

  /** The job's transactions, chained behind those that are `running`; returns how many the connection took. */
  const sendParts = async (job: Job, message: PreparedMessage): Promise<number> => {
    const parts = transactionsOf(job, message)
    const turns: Promise<void>[] = []
    for (const [index, part] of parts.entries()) {
      if (index > 0 && !connection.usable) {
        supply.add([{ ...job, recipients: job.recipients.slice(index) }])
        break
      }
      const turn = transact(part, message).finally(() => running.delete(turn))
      turns.push(turn)
      running.add(turn)
      if (running.size < supply.mostChained()) continue
      if (parts.length > 1) supply.press()
      await Promise.race(running)
    }
    void Promise.allSettled(turns).then(() => deps.release(job))
    return turns.length
  }

  const transact = async (job: Job, message: PreparedMessage) => {
    const sevenBit = connection.extensions.eightBitMime ? undefined : message.sevenBit
    const signed = sevenBit ? await sevenBit() : message.signed
    const result = await connection.transact(transactionOf(job, message, signed))
    supply.answered(result)
    const [outcome] = result.recipients
    const failure = outcome?.state === 'failed' ? outcome.failure : undefined
    if (failure?.kind === 'aborted') return deps.abandoned(job)
    const stumbled = failure && stumbles.note(connection, failure, !hasCarried)
    // A connection that breaks before anything of the message was said says nothing about the message: another one takes it. So it
    // does when the peer was confused by several commands at once; it is then told one at a time.
    const untouched = failure?.kind === 'dropped' && failure.stage === 'mail'
    if ((untouched || stumbled) && (!job.again || hasCarried)) {
      job.again ||= !hasCarried
      return supply.add([job])
    }
    if (!failure) hasCarried = true
    shapeBy(shape, result.recipients)
    deps.done({
      job,
      findings: result.recipients.map(findingOf),
      remote,
      durationMs: result.durationMs,
      repliedMs: result.repliedMs,
      conversation: result.transcript,
    })
  }

  const transactionOf = (job: Job, message: PreparedMessage, signed: SignedMessage): Transaction => {
    const first = job.recipients[0] as Claimed
    return {
      returnPath: message.returnPathOf?.(first) ?? '',
      recipients: job.recipients.map((one) => one.recipient),
      fieldsOnTop: Buffer.from(message.markOf(first) + signed.signatures),
      data: signed.data,
      needs8bit: message.needs8bit && signed === message.signed,
      needsSmtpUtf8: message.needsSmtpUtf8 || job.needsSmtpUtf8,
      mayFinish: () => deps.mayFinish(job),
    }
  }

  const renewAtMs = clock.monotonicMs() + scarceLifeMs
  let sent = 0
  while (connection.usable && !supply.isClosing && sent < mostPerConnection && endRestMs(end) === 0) {
    supply.arrived()
    if (shape.isScarce && clock.monotonicMs() > renewAtMs) break
    if (shape.isPaced && queue.size > 0) {
      await shape.turn()
      if (!connection.usable || supply.isClosing) break
    }
    const job = queue.take()
    if (!job) {
      if (running.size > 0) await supply.chaining.wait(running)
      else if (!(await rest())) break
      continue
    }
    if (!job.body || running.size + 1 >= supply.mostChained()) supply.press()
    const prepared = await deps.prepare(job, supply.add)
    if (!prepared) continue
    // Not before, because what is split off waits in the queue, which is emptied when the allowance is used up.
    if (warmUp && !(await keepAllowed(job, warmUp))) continue
    if (!connection.usable) {
      deps.release(job)
      supply.add([job])
      break
    }
    sent += await sendParts(job, prepared)
  }
  await Promise.all(running)
  return sent
}
