/**
 * Sends one connection's share of a site's mail: takes messages from the queue while there are any, pipelines them, idles for more, and
 * ends when no mail arrives or another process wants the connection.
 */
import { type Clock, type Log, metrics } from '#base'
import type { SmtpConnection, Transaction, TransactionResult } from '#smtp'
import { type RemoteMta, resultOf } from './attempt-outcome.ts'
import type { WarmUp } from './egress/warm-up.ts'
import { type EgressPath, type EgressPaths, pathBackoffMs, pathRetryMs } from './egress-path.ts'
import type { FairQueue } from './fair-queue.ts'
import { type Job, type JobResult, type PreparedMessage, type SignedMessage, separateJob, transactionsOf, withRecipients } from './job.ts'
import type { OpenedConnection } from './open-connection.ts'
import type { PipeliningFallback } from './pipelining-fallback.ts'
import { finishUnprepared, type PrepareResult, unpreparedBy } from './prepare-messages.ts'
import { isConnectionSpent } from './shaping/providers.ts'
import { applyReplies } from './shaping/reputation-block.ts'
import type { Waiters } from './waiters.ts'

/** An idle connection stays open this long for the next message. */
const idleMs = 3000
/** Lifetime of a connection when only few are allowed, so that processes take turns. */
const fewConnectionsLifeMs = 5000
/** How often an idle connection, when only few are allowed, checks whether another process wants it. */
const askContendedMs = 100

export interface ConnectionWorkerDeps {
  clock: Clock
  log: Log
  /** Loads, builds and signs the message. */
  prepare(job: Job): Promise<PrepareResult>
  /** Frees the message prepared for the job. */
  release(job: Job): void
  /** Whether this process still owns the lease of the job's shard. */
  leaseStillHeld(job: Job): boolean
  done(result: JobResult): void
  /** The lease was lost before the final dot, so the message was not sent. */
  requeue(job: Job): void
  /** Not sent, and not to be claimed again for `forMs`. */
  postponeUnprepared(job: Job, forMs: number, reason: string): void
  /** The egress path, with its limits toward the provider over all processes. */
  paths: EgressPaths
  /** Jobs that were not started and must not be claimed again for `forMs`: the provider accepts no more now. */
  postponeJobs(jobs: Job[], forMs: number): void
}

/** The part of a site that its connections share. */
export interface SiteQueue {
  /** Jobs that no connection has started. */
  readonly queue: FairQueue<Job>
  readonly pipeliningFallback: PipeliningFallback
  /** Connections that can pipeline another transaction, and idle connections. */
  readonly busyWorkers: Waiters
  readonly idleWorkers: Waiters
  readonly isClosing: boolean
  /** Transactions given to one connection at a time. */
  readonly pipelineDepth: number
  /** Transactions on one connection before it is renewed. */
  readonly maxPerConnection: number
  /** The server takes no more than this number of messages over one connection. */
  learnMaxPerConnection(messages: number): void
  /** Queues jobs that a connection returns, or that it split off another job. */
  enqueue(jobs: readonly Job[]): void
  /** Makes sure that a connection takes the queued jobs. */
  maintain(): void
  /** The woken connection has looked at the queue. */
  workerAwake(): void
  answered(result: TransactionResult): void
}

/**
 * `idle`: waits for mail. `waiting_for_permit`: there is mail, and the message rate does not allow it yet. `sending`: prepares messages or
 * waits for their replies. `draining`: takes no more mail and waits for the last replies.
 */
type WorkerPhase = 'idle' | 'waiting_for_permit' | 'sending' | 'draining'

export class ConnectionWorker {
  readonly #connection: SmtpConnection
  readonly #path: EgressPath
  readonly #remote: RemoteMta
  readonly #site: SiteQueue
  readonly #deps: ConnectionWorkerDeps
  readonly #running = new Set<Promise<void>>()
  #phase: WorkerPhase | undefined
  /** Transactions that the connection took, and those of them that the server answered, also with a refusal: it counts MAIL commands. */
  #sent = 0
  #answered = 0
  /**
   * The connection has answered at least one message. A later break is therefore the connection's, and each such break follows progress.
   */
  #hasAnswered = false

  constructor({ connection, path, remote }: OpenedConnection, site: SiteQueue, deps: ConnectionWorkerDeps) {
    this.#connection = connection
    this.#path = path
    this.#remote = remote
    this.#site = site
    this.#deps = deps
  }

  /** Resolves with the number of transactions when all that the connection took have been answered. Runs once. */
  async run(): Promise<number> {
    const { limiter } = this.#path
    const { queue, busyWorkers } = this.#site
    const { clock } = this.#deps
    const renewAtMs = clock.monotonicMs() + fewConnectionsLifeMs
    try {
      while (this.#mayTakeMail()) {
        this.#site.workerAwake()
        if (limiter.hasFewConnections && clock.monotonicMs() > renewAtMs) break
        if (limiter.isRateLimited && queue.size > 0) {
          this.#enter('waiting_for_permit')
          await limiter.acquireSendPermit()
          if (!this.#connection.usable || this.#site.isClosing) break
        }
        const job = queue.take()
        if (job) {
          this.#enter('sending')
          await this.#send(job)
        } else if (this.#running.size > 0) {
          this.#enter('sending')
          await busyWorkers.wait(this.#running)
        } else {
          this.#enter('idle')
          if (!(await this.#waitForMail())) break
        }
      }
      this.#enter('draining')
      // The worker may have been woken for mail that it does not take, for example because its source address backs off.
      this.#site.workerAwake()
      this.#site.maintain()
      await Promise.all(this.#running)
    } finally {
      this.#enter(undefined)
    }
    return this.#sent
  }

  #mayTakeMail(): boolean {
    return this.#mayTransact() && !this.#site.isClosing && pathBackoffMs(this.#path) === 0
  }

  #mayTransact(): boolean {
    return this.#connection.usable && this.#sent < this.#site.maxPerConnection
  }

  /** Counts the connection under its phase; undefined: the connection ends. */
  #enter(phase: WorkerPhase | undefined): void {
    if (phase === this.#phase) return
    if (this.#phase) metrics.deliveryConnections.dec({ phase: this.#phase })
    if (phase) metrics.deliveryConnections.inc({ phase })
    this.#phase = phase
  }

  /**
   * Waits until there is mail. Returns false when the connection should close: no mail arrived within `idleMs`, or another process wants
   * it.
   */
  async #waitForMail(): Promise<boolean> {
    const { limiter } = this.#path
    const { queue, idleWorkers } = this.#site
    const { clock } = this.#deps
    const untilMs = clock.monotonicMs() + idleMs
    for (let leftMs = idleMs; leftMs > 0; leftMs = untilMs - clock.monotonicMs()) {
      await idleWorkers.wait([], limiter.hasFewConnections ? Math.min(askContendedMs, leftMs) : leftMs)
      if (queue.size > 0 || this.#site.isClosing || !this.#connection.usable) return true
      if (limiter.hasFewConnections && (await limiter.isContended().catch(() => false))) return false
    }
    return false
  }

  /** Prepares the job's message and sends it, unless the job is not to be sent now. */
  async #send(taken: Job): Promise<void> {
    const { warmUp } = this.#path
    if (!taken.state.body || this.#running.size + 1 >= this.#site.pipelineDepth) this.#site.maintain()
    const prepared = await this.#deps.prepare(taken)
    if (prepared.kind !== 'ready') return finishUnprepared(taken, prepared, this.#deps)
    if (prepared.others.length > 0) this.#site.enqueue(prepared.others)
    // Not earlier: the other recipients' jobs wait in the queue, which is emptied when the allowance is used up.
    const job = warmUp ? await this.#keepAllowed(prepared.job, warmUp) : prepared.job
    if (!job) return
    if (this.#connection.usable) return this.#pipeline(job, prepared.message)
    this.#deps.release(job)
    this.#site.enqueue([job])
  }

  /** Pipelines the job's transactions behind those in `#running`. */
  async #pipeline(job: Job, message: PreparedMessage): Promise<void> {
    const parts = transactionsOf(job, message)
    const transactions: Promise<void>[] = []
    try {
      for (const [index, part] of parts.entries()) {
        if (index > 0 && !this.#mayTransact()) {
          const unsent = separateJob(job, job.recipients.slice(index))
          if (unsent) this.#site.enqueue([unsent])
          break
        }
        const transaction = this.#transact(part, message).finally(() => this.#running.delete(transaction))
        transactions.push(transaction)
        this.#running.add(transaction)
        this.#sent++
        if (this.#running.size < this.#site.pipelineDepth) continue
        if (parts.length > 1) this.#site.maintain()
        await Promise.race(this.#running)
      }
    } finally {
      void Promise.allSettled(transactions).then(() => this.#deps.release(job))
    }
  }

  /** The job for as many recipients as the warm-up allows; undefined when that is zero. Postpones the others. */
  async #keepAllowed(job: Job, allowance: WarmUp): Promise<Job | undefined> {
    // The job was already counted against this warm-up day before its connection failed.
    if (job.state.warmUpGrant === allowance) return job
    const granted = await allowance.take(job.recipients.length, this.#site.queue.size)
    const forMs = Math.max(pathRetryMs, this.#deps.paths.backoffMs)
    if (granted === 0) {
      this.#deps.release(job)
      this.#deps.postponeJobs([job], forMs)
      return undefined
    }
    const postponed = separateJob(job, job.recipients.slice(granted))
    if (postponed) this.#deps.postponeJobs([postponed], forMs)
    job.state.warmUpGrant = allowance
    return withRecipients(job, job.recipients.slice(0, granted))
  }

  async #transact(job: Job, message: PreparedMessage): Promise<void> {
    const connection = this.#connection
    const sevenBit = connection.extensions.eightBitMime ? undefined : message.sevenBit
    let signed: SignedMessage
    try {
      signed = sevenBit ? await sevenBit() : message.signed
    } catch (error) {
      // The server has received nothing of it.
      return finishUnprepared(job, unpreparedBy(error, job, this.#deps.log), this.#deps)
    }
    const result = await connection.transact(this.#transactionOf(job, message, signed))
    this.#site.answered(result)
    const [outcome] = result.recipients
    const failure = outcome?.state === 'failed' ? outcome.failure : undefined
    if (failure?.kind === 'aborted') return this.#deps.requeue(job)
    const fellBack = failure && this.#site.pipeliningFallback.record(connection, failure, !this.#hasAnswered)
    // A connection that breaks before any command of the message does not concern the message, so another connection takes it. The same
    // applies if pipelining confused the peer; the peer then receives one command at a time.
    const untouched = failure?.kind === 'dropped' && failure.stage === 'mail'
    if ((untouched || fellBack) && (!job.state.retriedOnce || this.#hasAnswered)) {
      job.state.retriedOnce ||= !this.#hasAnswered
      return this.#site.enqueue([job])
    }
    if (!failure) this.#hasAnswered = true
    const isSpent = result.recipients.every(isConnectionSpent)
    if (isSpent && this.#answered > 0) {
      this.#site.learnMaxPerConnection(this.#answered)
      this.#connection.quit()
      return this.#site.enqueue([job])
    }
    if (!failure && !isSpent) this.#answered++
    applyReplies(this.#path.limiter, result.recipients)
    this.#deps.done({
      job,
      results: result.recipients.map(resultOf),
      remote: this.#remote,
      durationMs: result.durationMs,
      repliedMs: result.repliedMs,
      conversation: result.transcript,
    })
  }

  #transactionOf(job: Job, message: PreparedMessage, signed: SignedMessage): Transaction {
    const [first] = job.recipients
    return {
      returnPath: message.returnPathOf?.(first) ?? '',
      recipients: job.recipients.map((one) => one.recipient),
      fieldsOnTop: Buffer.from(message.traceHeaderOf(first) + signed.signatures),
      data: signed.data,
      needs8bit: message.needs8bit && signed === message.signed,
      needsSmtpUtf8: message.needsSmtpUtf8 || job.needsSmtpUtf8,
      mayCommitTransaction: () => this.#deps.leaseStillHeld(job),
    }
  }
}
