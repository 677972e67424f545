/**
 * A job: the recipients of one submission at one site that get the same octets, built and signed once and sent over one connection. A
 * recipient with its own envelope sender gets its own transaction; without envelope senders the recipients share one. Building the message
 * shows whether it is the same for all.
 */
import type { Claimed } from '#spool'
import type { EgressPoolMembers } from './sources/egress-sources.ts'
import type { WarmUp } from './sources/warm-up.ts'

/** RFC 5321 section 4.5.3.1.8: a server must accept at least 100 recipients. */
const maxRecipientsPerJob = 100

export interface Job {
  tenantId: string
  contentId: string
  recipients: Claimed[]
  sizeOctets: number
  needsSmtpUtf8: boolean
  /** A connection that had closed has returned the job once. */
  retriedOnce: boolean
  /** The pool whose addresses the job must be sent from; undefined: the operating system chooses. */
  pool: EgressPoolMembers | undefined
  /** How often the job was passed on to another egress path of the pool. */
  poolHops: number
  /** The warm-up day that its recipients were counted against, however often the job returns to the queue. */
  warmUpGrant: WarmUp | undefined
  /** Compressed content, if it was small enough to be loaded with the claim. */
  body: Buffer | undefined
}

export interface PreparedMessage {
  /** The envelope sender for one recipient; null: the null reverse-path for all. */
  returnPathOf: ((recipient: Claimed) => string) | null
  /** With angle brackets. */
  messageId: string
  /** For test mail, by the tenant's test clock. */
  acceptedAtMs: number
  signed: SignedMessage
  /** The header fields that identify this recipient's email; they stand above the signatures. */
  traceHeaderOf(recipient: Claimed): string
  needs8bit: boolean
  needsSmtpUtf8: boolean
  /** Used instead of `signed` for a server without 8BITMIME, if the message has a 7-bit form. */
  sevenBit?: () => Promise<SignedMessage>
}

/** The same for all recipients of a job. */
export interface SignedMessage {
  /** Header fields that stand above `data`. */
  signatures: string
  /** Dot-stuffed. */
  data: Buffer
}

/** The parts of a job, one for each transaction. */
export const transactionsOf = (job: Job, { returnPathOf }: PreparedMessage): Job[] =>
  returnPathOf && job.recipients.length > 1 ? job.recipients.map((one) => ({ ...job, recipients: [one] })) : [job]

const notAscii = /[^\u0000-\u007f]/

/** Groups claimed recipients by submission and recipient domain, in the order of the claim. */
export function jobsOf(claimed: readonly Claimed[]): Job[] {
  const jobs: Job[] = []
  const open = new Map<string, Job>()
  for (const one of claimed) {
    const key = `${one.contentId} ${one.recipientDomain} ${one.epoch}`
    let job = open.get(key)
    if (!job || job.recipients.length >= maxRecipientsPerJob) {
      job = {
        tenantId: one.tenantId,
        contentId: one.contentId,
        recipients: [],
        sizeOctets: one.sizeOctets,
        needsSmtpUtf8: false,
        retriedOnce: false,
        pool: undefined,
        poolHops: 0,
        warmUpGrant: undefined,
        body: undefined,
      }
      open.set(key, job)
      jobs.push(job)
    }
    job.recipients.push(one)
    if (notAscii.test(one.recipient)) job.needsSmtpUtf8 = true
  }
  return jobs
}

/** Leaves the job its first recipient; returns a job for each of the others. */
export function splitOff(job: Job): Job[] {
  const others = job.recipients.slice(1)
  job.recipients = job.recipients.slice(0, 1)
  const needsSmtpUtf8 = (one: Claimed) => notAscii.test(one.recipient)
  job.needsSmtpUtf8 = job.recipients.some(needsSmtpUtf8)
  return others.map((one) => ({ ...job, recipients: [one], needsSmtpUtf8: needsSmtpUtf8(one), retriedOnce: false }))
}
