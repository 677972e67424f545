/**
 * Sends one connection's share of a site's mail: takes messages from the queue while there are any, pipelines them, idles for more, and
 * ends when no mail arrives or another process wants the connection.
 */
import type { Clock } from '#base'
import type { SmtpConnection, Transaction, TransactionResult } from '#smtp'
import { type RemoteMta, resultOf } from './attempt-outcome.ts'
import { type EgressPath, type Outlet, pathBackoffMs, pathRetryMs } from './egress-path.ts'
import type { FairQueue } from './fair-queue.ts'
import { type Job, type JobResult, type PreparedMessage, type SignedMessage, separateJob, transactionsOf, withRecipients } from './job.ts'
import type { PipeliningFallback } from './pipelining-fallback.ts'
import { finishUnprepared, type PrepareResult } from './prepare-messages.ts'
import { applyReplies } from './shaping/reputation-block.ts'
import type { WarmUp } from './sources/warm-up.ts'
import type { Waiters } from './waiters.ts'

/** An idle connection stays open this long for the next message. */
const idleMs = 3000
/** Transactions on one connection before it is renewed, out of regard for servers that count them. */
const maxPerConnection = 1000
/** Lifetime of a connection when only few are allowed, so that processes take turns. */
const fewConnectionsLifeMs = 5000
/** How often an idle connection, when only few are allowed, checks whether another process wants it. */
const askContendedMs = 100

export interface ConnectionWorkerDeps {
  clock: Clock
  /** Loads, builds and signs the message. */
  prepare(job: Job): Promise<PrepareResult>
  /** Frees the message prepared for the job. */
  release(job: Job): void
  /** Whether this process still owns the lease of the job's shard. */
  leaseStillHeld(job: Job): boolean
  done(result: JobResult): void
  /** The lease was lost before the final dot, so the message was not sent. */
  requeue(job: Job): void
  /** The egress path, with its limits toward the provider over all processes. */
  paths: Outlet
  /** Jobs that were not started and must not be claimed again for `forMs`: the provider accepts no more now. */
  postponeJobs(jobs: Job[], forMs: number): void
}

/** State shared by the connections of one site. */
export interface SiteQueue {
  queue: FairQueue<Job>
  pipeliningFallback: PipeliningFallback
  /** Connections that can pipeline another transaction, and idle connections. */
  busyWorkers: Waiters
  idleWorkers: Waiters
  readonly isClosing: boolean
  /** Adds jobs to the queue and wakes a connection for them. */
  add: (jobs: readonly Job[]) => void
  /** Makes sure that a connection takes the queued jobs. */
  wakeWorker(): void
  /** The woken connection has looked at the queue. */
  workerAwake(): void
  answered(result: TransactionResult): void
  /** Transactions given to one connection at a time. */
  maxPipelined(): number
}

export interface ConnectionWorker {
  connection: SmtpConnection
  path: EgressPath
  remote: RemoteMta
}

/** Resolves with the number of transactions when all that the connection took have been answered. */
export async function runConnectionWorker(
  { connection, path, remote }: ConnectionWorker,
  siteQueue: SiteQueue,
  deps: ConnectionWorkerDeps,
): Promise<number> {
  const { clock, paths } = deps
  const { limiter, warmUp } = path
  const { queue, pipeliningFallback } = siteQueue
  const running = new Set<Promise<void>>()
  /**
   * The connection has answered at least one message. A later break is therefore the connection's, and each such break follows progress.
   */
  let hasCarried = false

  /**
   * Waits until there is mail. Returns false when the connection should close: no mail arrived within `idleMs`, or another process wants
   * it.
   */
  const waitForWork = async (): Promise<boolean> => {
    const untilMs = clock.monotonicMs() + idleMs
    for (let leftMs = idleMs; leftMs > 0; leftMs = untilMs - clock.monotonicMs()) {
      await siteQueue.idleWorkers.wait([], limiter.hasFewConnections ? Math.min(askContendedMs, leftMs) : leftMs)
      if (queue.size > 0 || siteQueue.isClosing || !connection.usable) return true
      if (limiter.hasFewConnections && (await limiter.isContended().catch(() => false))) return false
    }
    return false
  }

  /** The job for as many recipients as the warm-up allows; undefined when that is zero. Postpones the others. */
  const keepAllowed = async (job: Job, allowance: WarmUp): Promise<Job | undefined> => {
    // The job was already counted against this warm-up day before its connection failed.
    if (job.state.warmUpGrant === allowance) return job
    const granted = await allowance.take(job.recipients.length, queue.size)
    if (granted === 0) {
      deps.postponeJobs([job], Math.max(pathRetryMs, paths.backoffMs))
      return undefined
    }
    const postponed = separateJob(job, job.recipients.slice(granted))
    if (postponed) deps.postponeJobs([postponed], Math.max(pathRetryMs, paths.backoffMs))
    job.state.warmUpGrant = allowance
    return withRecipients(job, job.recipients.slice(0, granted))
  }

  /** Pipelines the job's transactions behind those in `running`; returns how many the connection took. */
  const sendParts = async (job: Job, message: PreparedMessage): Promise<number> => {
    const parts = transactionsOf(job, message)
    const transactions: Promise<void>[] = []
    for (const [index, part] of parts.entries()) {
      if (index > 0 && !connection.usable) {
        const unsent = separateJob(job, job.recipients.slice(index))
        if (unsent) siteQueue.add([unsent])
        break
      }
      const transaction = transact(part, message).finally(() => running.delete(transaction))
      transactions.push(transaction)
      running.add(transaction)
      if (running.size < siteQueue.maxPipelined()) continue
      if (parts.length > 1) siteQueue.wakeWorker()
      await Promise.race(running)
    }
    void Promise.allSettled(transactions).then(() => deps.release(job))
    return transactions.length
  }

  const transact = async (job: Job, message: PreparedMessage) => {
    const sevenBit = connection.extensions.eightBitMime ? undefined : message.sevenBit
    const signed = sevenBit ? await sevenBit() : message.signed
    const result = await connection.transact(transactionOf(job, message, signed))
    siteQueue.answered(result)
    const [outcome] = result.recipients
    const failure = outcome?.state === 'failed' ? outcome.failure : undefined
    if (failure?.kind === 'aborted') return deps.requeue(job)
    const fellBack = failure && pipeliningFallback.record(connection, failure, !hasCarried)
    // A connection that breaks before any command of the message does not concern the message, so another connection takes it. The same
    // applies if pipelining confused the peer; the peer then receives one command at a time.
    const untouched = failure?.kind === 'dropped' && failure.stage === 'mail'
    if ((untouched || fellBack) && (!job.state.retriedOnce || hasCarried)) {
      job.state.retriedOnce ||= !hasCarried
      return siteQueue.add([job])
    }
    if (!failure) hasCarried = true
    applyReplies(limiter, result.recipients)
    deps.done({
      job,
      results: result.recipients.map(resultOf),
      remote,
      durationMs: result.durationMs,
      repliedMs: result.repliedMs,
      conversation: result.transcript,
    })
  }

  const transactionOf = (job: Job, message: PreparedMessage, signed: SignedMessage): Transaction => {
    const [first] = job.recipients
    return {
      returnPath: message.returnPathOf?.(first) ?? '',
      recipients: job.recipients.map((one) => one.recipient),
      fieldsOnTop: Buffer.from(message.traceHeaderOf(first) + signed.signatures),
      data: signed.data,
      needs8bit: message.needs8bit && signed === message.signed,
      needsSmtpUtf8: message.needsSmtpUtf8 || job.needsSmtpUtf8,
      mayCommitTransaction: () => deps.leaseStillHeld(job),
    }
  }

  const renewAtMs = clock.monotonicMs() + fewConnectionsLifeMs
  let sent = 0
  while (connection.usable && !siteQueue.isClosing && sent < maxPerConnection && pathBackoffMs(path) === 0) {
    siteQueue.workerAwake()
    if (limiter.hasFewConnections && clock.monotonicMs() > renewAtMs) break
    if (limiter.isRateLimited && queue.size > 0) {
      await limiter.acquireSendPermit()
      if (!connection.usable || siteQueue.isClosing) break
    }
    const taken = queue.take()
    if (!taken) {
      if (running.size > 0) await siteQueue.busyWorkers.wait(running)
      else if (!(await waitForWork())) break
      continue
    }
    if (!taken.state.body || running.size + 1 >= siteQueue.maxPipelined()) siteQueue.wakeWorker()
    const prepared = await deps.prepare(taken)
    if (prepared.kind !== 'ready') {
      finishUnprepared(taken, prepared, deps)
      continue
    }
    if (prepared.others.length > 0) siteQueue.add(prepared.others)
    // Not earlier: the other recipients' jobs wait in the queue, which is emptied when the allowance is used up.
    const job = warmUp ? await keepAllowed(prepared.job, warmUp) : prepared.job
    if (!job) continue
    if (!connection.usable) {
      deps.release(job)
      siteQueue.add([job])
      break
    }
    sent += await sendParts(job, prepared.message)
  }
  await Promise.all(running)
  return sent
}
