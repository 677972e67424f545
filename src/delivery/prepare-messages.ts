/**
 * Loads, rebuilds and signs messages when a connection is ready for them. Large messages are not loaded with the claim, and their total
 * size in memory is limited.
 */
import { type Clock, type Log, openCollector, type Secrets } from '#base'
import { CommitUnknown, DatabaseUnreachable, type Db } from '#db'
import { type SigningKey, signatureFields } from '#dkim'
import type { Domains } from '#domains'
import { type Content, decodeContent, findContentBody, openReturnPaths } from '#emails'
import { dotStuff } from '#mail'
import type { Claimed } from '#spool'
import { openTokens } from '#tracking'
import { type AttemptResult, cancelled } from './attempt-outcome.ts'
import { type Job, type PreparedMessage, type SignedMessage, splitOff } from './job.ts'
import { keysFor, needsOnly8bit, rebuildMessage, traceHeaderOf } from './render-message.ts'

/** Counted by submitted size, not stored size: the built message and the work of building it take several times as much memory. */
const largeOctetsAtOnce = 64 * 1_048_576

export interface MessagesDeps {
  db: Db
  clock: Clock
  log: Log
  secrets: Secrets
  domains: Domains
  /** There is no message to send: every recipient ends, or is retried, with this result. */
  report(job: Job, attemptResult: AttemptResult): void
  /** The message is fine, but the job returns to the spool. */
  requeue(job: Job): void
}

export interface Messages {
  /**
   * Undefined when there is no longer a message to send, which has been reported. When each recipient's message differs, the job keeps its
   * first recipient, and `others` receives jobs for the rest.
   */
  prepare(job: Job, others: (jobs: readonly Job[]) => void): Promise<PreparedMessage | undefined>
  /** Frees the job's message. */
  release(job: Job): void
}

export function openMessages(deps: MessagesDeps): Messages {
  const { clock } = deps
  const tokens = openTokens(deps.secrets)
  const returnPaths = openReturnPaths(deps.secrets)
  /** Jobs whose message was loaded separately and is still in memory. */
  const large = new Set<Job>()
  let largeOctets = 0
  let largeWaiters: (() => void)[] = []
  const collector = openCollector(clock)

  const build = async (job: Job, others: (jobs: readonly Job[]) => void): Promise<PreparedMessage | undefined> => {
    const body = job.body ?? (await findContentBody(deps.db, job))
    if (!body) {
      deps.report(job, cancelled('the content has passed its retention period'))
      return undefined
    }
    const content = decodeContent(body)
    const keys = await keysFor(content, job.tenantId, deps.domains)
    if (!keys) {
      deps.report(job, cancelled('the sending domain was deleted'))
      return undefined
    }
    const recipient = job.recipients[0] as Claimed
    const { octets, needs8bit, needsSmtpUtf8, personal } = rebuildMessage(content, recipient, tokens)
    if (personal && job.recipients.length > 1) others(splitOff(job))
    job.body = undefined
    const { returnPathDomain: domain, messageId, acceptedAtMs, marked } = content
    return {
      messageId,
      acceptedAtMs,
      traceHeaderOf: traceHeaderOfEach(marked ? { marked, acceptedAtMs } : { acceptedAtMs }),
      returnPathOf: domain === null ? null : returnPathOfEach(domain),
      signed: await signed(octets, keys, acceptedAtMs),
      needs8bit,
      needsSmtpUtf8,
      ...(needsOnly8bit({ needs8bit, needsSmtpUtf8 }) ? { sevenBit: sevenBitOf(content, recipient, keys) } : {}),
    }
  }

  // A separate function: a closure created beside `content` would keep it in memory as long as the message.
  const traceHeaderOfEach = (given: Pick<Content, 'marked' | 'acceptedAtMs'>) => (claimed: Claimed) =>
    traceHeaderOf(given, claimed.emailId, returnPaths)
  const returnPathOfEach = (domain: string) => (claimed: Claimed) => returnPaths.make(claimed.emailId, domain, clock.nowMs())
  const sevenBitOf = (content: Content, recipient: Claimed, keys: SigningKey[]) => {
    let written: Promise<SignedMessage> | undefined
    return () => {
      written ??= signed(rebuildMessage(content, recipient, tokens, 'sevenBit').octets, keys, content.acceptedAtMs)
      return written
    }
  }

  const prepare = async (job: Job, others: (jobs: readonly Job[]) => void): Promise<PreparedMessage | undefined> => {
    try {
      if (!job.body && !large.has(job)) await takeLarge(job)
      return await build(job, others)
    } catch (error) {
      if (error instanceof DatabaseUnreachable || error instanceof CommitUnknown) {
        deps.requeue(job)
        return undefined
      }
      deps.log.error({ err: error, email: job.contentId }, 'failed to prepare a message; retrying')
      deps.report(job, {
        kind: 'temporary',
        reply: null,
        classification: 'temporarily_unavailable',
        enhanced: null,
        message: 'failed to prepare the message',
      })
      return undefined
    }
  }

  const takeLarge = async (job: Job) => {
    while (largeOctets > 0 && largeOctets + job.sizeOctets > largeOctetsAtOnce) {
      await new Promise<void>((resolve) => largeWaiters.push(resolve))
    }
    large.add(job)
    collector.busy()
    largeOctets += job.sizeOctets
  }

  const release = (job: Job) => {
    if (!large.delete(job)) return
    largeOctets -= job.sizeOctets
    if (large.size === 0) collector.rest()
    const woken = largeWaiters
    largeWaiters = []
    for (const wake of woken) wake()
  }

  return { prepare, release }
}

async function signed(message: Buffer, keys: SigningKey[], acceptedAtMs: number): Promise<SignedMessage> {
  return { signatures: await signatureFields(message, keys, acceptedAtMs), data: dotStuff(message) }
}
