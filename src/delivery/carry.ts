/**
 * Sends one connection's share of a site's mail: takes messages from the queue while there are any, pipelines them, idles for more, and
 * ends when no mail arrives or another process wants the connection.
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

/** An idle connection stays open this long for the next message. */
const idleMs = 3000
/** Transactions on one connection before it is renewed, out of regard for servers that count them. */
const mostPerConnection = 1000
/** Lifetime of a connection when only few are allowed, so that processes take turns. */
const scarceLifeMs = 5000
/** How often an idle connection, when only few are allowed, checks whether another process wants it. */
const askWantedMs = 100

/** The result of an attempt, for each recipient of the job. */
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
   * Loads, builds and signs the message; undefined when there is no longer a message to send. When each recipient's message differs, the
   * job keeps its first recipient, and `others` receives jobs for the rest.
   */
  prepare(job: Job, others: (jobs: readonly Job[]) => void): Promise<PreparedMessage | undefined>
  /** Frees the message prepared for the job. */
  release(job: Job): void
  /** Whether this process still owns the lease of the job's shard. */
  mayFinish(job: Job): boolean
  done(result: FindingFor): void
  /** The lease was lost before the final dot, so the message was not sent. */
  abandoned(job: Job): void
  /** The egress path, with its limits toward the provider over all processes. */
  outlet: Outlet
  /** Jobs that were not started and must not be claimed again for `forMs`: the provider accepts no more now. */
  surplus(jobs: Job[], forMs: number): void
}

/** State shared by the connections of one site. */
export interface Supply {
  queue: FairQueue<Job>
  stumbles: Stumbles
  /** Connections that can pipeline another transaction, and idle connections. */
  chaining: Waiters
  resting: Waiters
  readonly isClosing: boolean
  /** Adds jobs to the queue and wakes a connection for them. */
  add: (jobs: readonly Job[]) => void
  /** Makes sure that a connection takes the queued jobs. */
  press(): void
  /** The woken connection has looked at the queue. */
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

/** Resolves with the number of transactions when all that the connection took have been answered. */
export async function carry({ connection, end, remote }: Carrier, supply: Supply, deps: CarryDeps): Promise<number> {
  const { clock, outlet } = deps
  const { shape, warmUp } = end
  const { queue, stumbles } = supply
  const running = new Set<Promise<void>>()
  /**
   * The connection has answered at least one message. A later break is therefore the connection's, and each such break follows progress.
   */
  let hasCarried = false

  /**
   * Waits until there is mail. Returns false when the connection should close: no mail arrived within `idleMs`, or another process wants
   * it.
   */
  const rest = async (): Promise<boolean> => {
    const untilMs = clock.monotonicMs() + idleMs
    for (let leftMs = idleMs; leftMs > 0; leftMs = untilMs - clock.monotonicMs()) {
      await supply.resting.wait([], shape.isScarce ? Math.min(askWantedMs, leftMs) : leftMs)
      if (queue.size > 0 || supply.isClosing || !connection.usable) return true
      if (shape.isScarce && (await shape.isWanted().catch(() => false))) return false
    }
    return false
  }

  /** Keeps as many recipients in the job as the warm-up allows; returns false when that is zero. */
  const keepAllowed = async (job: Job, allowance: WarmUp): Promise<boolean> => {
    // The job was already counted against this warm-up day before its connection failed.
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

  /** Pipelines the job's transactions behind those in `running`; returns how many the connection took. */
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
    // A connection that breaks before any command of the message does not concern the message, so another connection takes it. The same
    // applies if pipelining confused the peer; the peer then receives one command at a time.
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
    // Not earlier: the recipients split off wait in the queue, which is emptied when the allowance is used up.
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
