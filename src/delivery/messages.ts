/**
 * Messages on their way to a connection: loaded, rebuilt and signed when one is ready for them. Large ones are not loaded with the claim,
 * and together weigh no more than a fixed amount.
 */
import type { Clock, Log, Secrets } from '#base'
import { CommitUnknown, DatabaseUnreachable, type Db } from '#db'
import { signatureFields } from '#dkim'
import type { Domains } from '#domains'
import { decodeContent, findContentBody, openReturnPaths } from '#emails'
import { dotStuff } from '#mail'
import type { Claimed } from '#spool'
import { openTokens } from '#tracking'
import { type Job, type PreparedMessage, type SignedMessage, splitOff } from './job.ts'
import { cancelled, type Finding } from './outcome.ts'
import { keysFor, markOf, needsOnly8bit, rebuildMessage } from './prepare.ts'

const largeOctetsAtOnce = 64 * 1_048_576

export interface MessagesDeps {
  db: Db
  clock: Clock
  log: Log
  secrets: Secrets
  domains: Domains
  /** There is nothing to send: every recipient ends, or waits, with this. */
  report(job: Job, finding: Finding): void
  /** Not for want of the message: it goes back to the spool. */
  abandoned(job: Job): void
}

export interface Messages {
  /**
   * Undefined when there is nothing to send any more, which has been reported. When each recipient's message is its own, the job keeps
   * its first recipient, and `others` takes jobs for the rest.
   */
  prepare(job: Job, others: (jobs: readonly Job[]) => void): Promise<PreparedMessage | undefined>
  /** The message is not needed any more. */
  release(job: Job): void
}

export function openMessages(deps: MessagesDeps): Messages {
  const { clock } = deps
  const tokens = openTokens(deps.secrets)
  const returnPaths = openReturnPaths(deps.secrets)
  /** Jobs whose message was loaded on its own and is still in memory. */
  const large = new Set<Job>()
  let largeOctets = 0
  let largeWaiters: (() => void)[] = []

  const build = async (job: Job, others: (jobs: readonly Job[]) => void): Promise<PreparedMessage | undefined> => {
    const body = job.body ?? (await findContentBody(deps.db, job))
    if (!body) {
      deps.report(job, cancelled('the content is past its retention'))
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
    const { returnPathDomain: domain, messageId } = content
    const signed = async (message: Buffer) => ({
      signatures: await signatureFields(message, keys, content.acceptedAtMs),
      data: dotStuff(message),
    })
    let written: Promise<SignedMessage> | undefined
    const sevenBit = () => {
      written ??= signed(rebuildMessage(content, recipient, tokens, 'sevenBit').octets)
      return written
    }
    return {
      messageId,
      acceptedAtMs: content.acceptedAtMs,
      markOf: ({ emailId }) => markOf(content, emailId, returnPaths),
      returnPathOf: domain === null ? null : ({ emailId }) => returnPaths.make(emailId, domain, clock.nowMs()),
      signed: await signed(octets),
      needs8bit,
      needsSmtpUtf8,
      ...(needsOnly8bit({ needs8bit, needsSmtpUtf8 }) ? { sevenBit } : {}),
    }
  }

  const prepare = async (job: Job, others: (jobs: readonly Job[]) => void): Promise<PreparedMessage | undefined> => {
    try {
      if (!job.body && !large.has(job)) await takeLarge(job)
      return await build(job, others)
    } catch (error) {
      if (error instanceof DatabaseUnreachable || error instanceof CommitUnknown) {
        deps.abandoned(job)
        return undefined
      }
      deps.log.error({ err: error, email: job.contentId }, 'a message could not be prepared; it is tried again later')
      deps.report(job, {
        kind: 'temporary',
        reply: null,
        classification: 'temporarily_unavailable',
        enhanced: null,
        message: 'the message could not be prepared',
      })
      return undefined
    }
  }

  const takeLarge = async (job: Job) => {
    while (largeOctets > 0 && largeOctets + job.sizeOctets > largeOctetsAtOnce) {
      await new Promise<void>((resolve) => largeWaiters.push(resolve))
    }
    large.add(job)
    largeOctets += job.sizeOctets
  }

  const release = (job: Job) => {
    if (!large.delete(job)) return
    largeOctets -= job.sizeOctets
    const woken = largeWaiters
    largeWaiters = []
    for (const wake of woken) wake()
  }

  return { prepare, release }
}
