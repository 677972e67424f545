/**
 * A job: the recipients of one submission at one destination, whose message is the same octets: built and signed once, sent over one
 * connection. Each recipient has an envelope sender of its own and so a transaction of its own; without envelope senders they share one.
 * Whether their message is the same shows when it is built.
 */
import type { Claimed } from '#spool'
import type { Pool } from './sources/sources.ts'
import type { WarmUp } from './sources/warm-up.ts'

/** RFC 5321 section 4.5.3.1.8: a server must take at least 100. */
const mostRecipientsPerJob = 100

export interface Job {
  tenantId: string
  contentId: string
  recipients: Claimed[]
  sizeOctets: number
  needsSmtpUtf8: boolean
  /** It was given back once by a connection that had closed. */
  again: boolean
  /** The only addresses that it may go from; undefined: the system's choice. */
  pool: Pool | undefined
  /** How often it was passed on to another outlet of the pool. */
  moves: number
  /** It has its recipients counted there, however often it comes back to the queue. */
  allowedBy: WarmUp | undefined
  /** Compressed content, when it was small enough to be loaded with the claim. */
  body: Buffer | undefined
}

export interface PreparedMessage {
  /** The envelope sender for one recipient; null: the null reverse-path for all. */
  returnPathOf: ((recipient: Claimed) => string) | null
  /** With angle brackets. */
  messageId: string
  /** Of test mail by its tenant's test clock. */
  acceptedAtMs: number
  signed: SignedMessage
  /** The fields that name this recipient's email; they stand above the signatures. */
  markOf(recipient: Claimed): string
  needs8bit: boolean
  needsSmtpUtf8: boolean
  /** Instead of `signed`, for a server without 8BITMIME; where there is such a form. */
  sevenBit?: () => Promise<SignedMessage>
}

/** The same for all recipients of a job. */
export interface SignedMessage {
  /** Fields that stand above `data`. */
  signatures: string
  /** Dot-stuffed. */
  data: Buffer
}

/** The parts of a job that take a transaction each. */
export const transactionsOf = (job: Job, { returnPathOf }: PreparedMessage): Job[] =>
  returnPathOf && job.recipients.length > 1 ? job.recipients.map((one) => ({ ...job, recipients: [one] })) : [job]

const notAscii = /[^\u0000-\u007f]/

/** Groups claimed recipients by submission and destination, in the order of the claim. */
export function jobsOf(claimed: readonly Claimed[]): Job[] {
  const jobs: Job[] = []
  const open = new Map<string, Job>()
  for (const one of claimed) {
    const key = `${one.contentId} ${one.destination} ${one.epoch}`
    let job = open.get(key)
    if (!job || job.recipients.length >= mostRecipientsPerJob) {
      job = {
        tenantId: one.tenantId,
        contentId: one.contentId,
        recipients: [],
        sizeOctets: one.sizeOctets,
        needsSmtpUtf8: false,
        again: false,
        pool: undefined,
        moves: 0,
        allowedBy: undefined,
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

/** Leaves the job its first recipient; the others get jobs of their own. */
export function splitOff(job: Job): Job[] {
  const others = job.recipients.slice(1)
  job.recipients = job.recipients.slice(0, 1)
  const needsSmtpUtf8 = (one: Claimed) => notAscii.test(one.recipient)
  job.needsSmtpUtf8 = job.recipients.some(needsSmtpUtf8)
  return others.map((one) => ({ ...job, recipients: [one], needsSmtpUtf8: needsSmtpUtf8(one), again: false }))
}
