/**
 * Loads, rebuilds and signs messages when a connection is ready for them. Large messages are not loaded with the claim, and their total
 * size in memory is limited.
 */
import { type Clock, type Log, openCollector, type Secrets } from '#base'
import { CommitUnknown, DatabaseUnreachable, type Db } from '#db'
import { type SigningKey, signatureFieldsOf } from '#dkim'
import type { Domains } from '#domains'
import { type Content, findContentBody, openReturnPaths, type ReturnPaths } from '#emails'
import type { Claimed, QueuePause } from '#spool'
import type { Tenants } from '#tenants'
import { type AttemptResult, cancelled, noRemote } from './attempt-outcome.ts'
import { ContentReader } from './content-reader.ts'
import { type DeliveryState, type Job, type JobResult, jobPerRecipient, type PreparedMessage, type SignedMessage } from './job.ts'
import { isPausedSince } from './pre-send-checks.ts'
import type { UnsignedMessage } from './read-content.ts'
import { keysFor, needsOnly8bit, traceHeaderOf } from './render-message.ts'
import { openWaiters, type Waiters } from './waiters.ts'

/** Counted by submitted size, not stored size: the built message and the work of building it take several times as much memory. */
const largeOctetsAtOnce = 64 * 1_048_576

export interface MessagePreparerDeps {
  db: Db
  clock: Clock
  log: Log
  secrets: Secrets
  domains: Domains
  tenants: Tenants
  /** The active queue pauses. */
  pauses: () => Promise<readonly QueuePause[]>
}

export interface ReadyMessage {
  kind: 'ready'
  /** The given job, or the same for its first recipient if each recipient's message differs. */
  job: Job
  /** If each recipient's message differs: jobs for the recipients after the first, to be prepared for themselves. */
  others: readonly Job[]
  message: PreparedMessage
}

/** `cancelled`: there is no longer a message to send. `retry`: preparing it failed, which counts as an attempt. Both for every recipient. */
interface UnpreparedMessage {
  kind: 'cancelled' | 'retry'
  attemptResult: AttemptResult
}

/**
 * Without an attempt: `requeue`, the job returns to the spool, because it was paused or the database did not answer; `postpone`, there is no memory for a large
 * message now.
 */
export type PrepareResult = ReadyMessage | UnpreparedMessage | { kind: 'requeue' } | { kind: 'postpone'; forMs: number; reason: string }

/** Finishes a job that has no message to send. */
export function finishUnprepared(
  job: Job,
  prepared: Exclude<PrepareResult, ReadyMessage>,
  deps: { done(result: JobResult): void; requeue(job: Job): void; postponeUnprepared(job: Job, forMs: number, reason: string): void },
): void {
  if (prepared.kind === 'requeue') return deps.requeue(job)
  if (prepared.kind === 'postpone') return deps.postponeUnprepared(job, prepared.forMs, prepared.reason)
  const results = job.recipients.map(() => prepared.attemptResult)
  deps.done({ job, results, remote: noRemote, durationMs: 0, conversation: '' })
}

/** Prepares the messages of one process. Each job that was given to `prepare` must come back to `release`. */
export class MessagePreparer {
  readonly #deps: MessagePreparerDeps
  readonly #contents: ContentReader
  readonly #returnPaths: ReturnPaths
  readonly #largeMessages: LargeMessages

  constructor(deps: MessagePreparerDeps) {
    this.#deps = deps
    this.#contents = new ContentReader(deps)
    this.#returnPaths = openReturnPaths(deps.secrets)
    this.#largeMessages = new LargeMessages(deps.clock)
  }

  /** Never rejects. May wait a second until enough large messages have been released. */
  async prepare(job: Job): Promise<PrepareResult> {
    try {
      // It may have waited for a connection for a long time.
      if (await isPausedSince(job, this.#deps)) return { kind: 'requeue' }
      if (!job.state.body && !(await this.#largeMessages.acquire(job))) return withoutMemory
      return await this.#build(job)
    } catch (error) {
      return unpreparedBy(error, job, this.#deps.log)
    }
  }

  /** Frees the job's message. */
  release(job: Job): void {
    this.#largeMessages.release(job)
  }

  async #build(job: Job): Promise<ReadyMessage | UnpreparedMessage> {
    const { db, domains } = this.#deps
    const body = job.state.body ?? (await findContentBody(db, job))
    if (!body) return { kind: 'cancelled', attemptResult: cancelled('the content has passed its retention period') }
    const [recipient] = job.recipients
    const unsigned = await this.#contents.readToSend(body, recipient)
    const keys = await keysFor(unsigned, job.tenantId, domains)
    if (!keys) return { kind: 'cancelled', attemptResult: cancelled('the sending domain was deleted') }
    const { needs8bit, needsSmtpUtf8, personal, messageId, acceptedAtMs, marked, returnPathDomain: domain } = unsigned
    const [first, ...others] = personal && job.recipients.length > 1 ? jobPerRecipient(job) : [job]
    job.state.body = undefined
    const message: PreparedMessage = {
      messageId,
      acceptedAtMs,
      traceHeaderOf: this.#traceHeaderOfEach(marked ? { marked, acceptedAtMs } : { acceptedAtMs }),
      returnPathOf: domain === null ? null : this.#returnPathOfEach(domain),
      signed: await signed(unsigned, keys),
      needs8bit,
      needsSmtpUtf8,
      ...(needsOnly8bit({ needs8bit, needsSmtpUtf8 }) ? { sevenBit: this.#sevenBitOf(body, recipient, keys) } : {}),
    }
    return { kind: 'ready', job: first, others, message }
  }

  // A separate function: a closure created beside `body` would keep it in memory as long as the message.
  #traceHeaderOfEach(given: Pick<Content, 'marked' | 'acceptedAtMs'>): PreparedMessage['traceHeaderOf'] {
    return (claimed) => traceHeaderOf(given, claimed.emailId, this.#returnPaths)
  }

  #returnPathOfEach(domain: string): (claimed: Claimed) => string {
    return (claimed) => this.#returnPaths.make(claimed.emailId, domain, this.#deps.clock.nowMs())
  }

  #sevenBitOf(body: Buffer, recipient: Claimed, keys: SigningKey[]): () => Promise<SignedMessage> {
    let written: Promise<SignedMessage> | undefined
    return () => {
      written ??= this.#contents
        .readToSend(body, recipient, 'sevenBit')
        .then((unsigned) => signed(unsigned, keys))
        .catch((error) => {
          written = undefined
          throw error
        })
      return written
    }
  }
}

/** Also for an error of `sevenBit`. */
export function unpreparedBy(error: unknown, { contentId }: Pick<Job, 'contentId'>, log: Log): Exclude<PrepareResult, ReadyMessage> {
  if (error instanceof DatabaseUnreachable || error instanceof CommitUnknown) return { kind: 'requeue' }
  log.error({ err: error, email: contentId }, 'failed to prepare a message; retrying')
  return { kind: 'retry', attemptResult: failedToPrepare }
}

const failedToPrepare: AttemptResult = {
  kind: 'temporary',
  reply: null,
  classification: 'temporarily_unavailable',
  enhanced: null,
  message: 'failed to prepare the message',
  isOwnFault: true,
}

/** Short, because the job waits on an open connection, which could send other mail. */
const maxMemoryWaitMs = 1000
const withoutMemory: PrepareResult = { kind: 'postpone', forMs: 5000, reason: 'waits for memory: other large messages are being sent' }

interface Share {
  keys: string[]
  octets: number
}

/**
 * The messages that were not loaded with the claim and are in memory: a semaphore over their octets. A tenant gets three quarters of it, because
 * a slow server keeps them for as long as it likes. A smaller message passes one that does not fit: if room were reserved for that, a tenant whose
 * messages wait for slow servers would delay those of others, and it would still be postponed after a second.
 */
class LargeMessages {
  readonly #clock: Clock
  readonly #collector: ReturnType<typeof openCollector>
  readonly #held = new Map<DeliveryState, Share>()
  /** By `tenant` and an id, and of all messages. */
  readonly #octets = new Map<string, number>()
  readonly #waiters: Waiters

  constructor(clock: Clock) {
    this.#clock = clock
    this.#collector = openCollector(clock)
    this.#waiters = openWaiters(clock)
  }

  /** Returns at once if the job holds its message already; false if there is no room. A message alone may exceed the limits. */
  async acquire(job: Job): Promise<boolean> {
    if (this.#held.has(job.state)) return true
    const untilMs = this.#clock.monotonicMs() + maxMemoryWaitMs
    while (!this.#hasRoom(job)) {
      const leftMs = untilMs - this.#clock.monotonicMs()
      if (leftMs <= 0) return false
      await this.#waiters.wait([], leftMs)
    }
    const share = { keys: limitsOf(job).map(([key]) => key), octets: job.sizeOctets }
    this.#held.set(job.state, share)
    this.#collector.busy()
    this.#add(share, 1)
    return true
  }

  release({ state }: Job): void {
    const share = this.#held.get(state)
    if (!share) return
    this.#held.delete(state)
    this.#add(share, -1)
    if (this.#held.size === 0) this.#collector.rest()
    this.#waiters.wakeAll()
  }

  #hasRoom(job: Job): boolean {
    return limitsOf(job).every(([key, most]) => {
      const octets = this.#octets.get(key) ?? 0
      return octets === 0 || octets + job.sizeOctets <= most
    })
  }

  #add({ keys, octets }: Share, sign: 1 | -1): void {
    for (const key of keys) {
      const sum = (this.#octets.get(key) ?? 0) + sign * octets
      if (sum === 0) this.#octets.delete(key)
      else this.#octets.set(key, sum)
    }
  }
}

const limitsOf = ({ tenantId }: Job): [key: string, most: number][] => [
  ['all', largeOctetsAtOnce],
  [`tenant ${tenantId}`, (largeOctetsAtOnce * 3) / 4],
]

const signed = async ({ signable, octets, acceptedAtMs }: UnsignedMessage, keys: SigningKey[]): Promise<SignedMessage> => ({
  signatures: signable ? await signatureFieldsOf(signable, keys, acceptedAtMs) : '',
  data: octets,
})
