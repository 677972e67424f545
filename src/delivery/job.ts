/**
 * A job: the recipients of one submission at one site that get the same octets, built and signed once and sent over one connection. A
 * recipient with its own envelope sender gets its own transaction; without envelope senders the recipients share one. Building the message
 * shows whether it is the same for all.
 */
import type { TransactionResult } from '#smtp'
import type { Claimed, Lane } from '#spool'
import type { AttemptResult, RemoteMta } from './attempt-outcome.ts'
import type { EgressPoolMembers } from './egress/egress-sources.ts'
import type { WarmUp } from './egress/warm-up.ts'
import type { Transport } from './transports/transport-records.ts'

/** RFC 5321 section 4.5.3.1.8: a server must accept at least 100 recipients. */
const maxRecipientsPerJob = 100

/** Immutable: a job for other recipients is another object. */
export interface Job {
  readonly tenantId: string
  readonly contentId: string
  readonly recipients: readonly [Claimed, ...Claimed[]]
  readonly sizeOctets: number
  /** The same for all recipients. */
  readonly needsSmtpUtf8: boolean
  /** The pool whose addresses the job must be sent from; undefined: the operating system chooses. */
  readonly pool: EgressPoolMembers | undefined
  /** undefined: the installation has no transport rules, and the job takes the default. */
  readonly transport: JobTransport | undefined
  readonly state: DeliveryState
}

/** The way that a job takes. */
export interface JobTransport {
  /** For the record of the attempt. */
  name: string
  /** undefined: the way of the name `mx` or `relay`. */
  server: Transport | undefined
  /** The transports to try after `server`, before the default. */
  fallbacks: readonly Transport[]
  /** No rule concerns mail of the tenant: all of it takes the default. */
  isOnlyWay?: boolean
}

/** The changes of a job on its way to a connection. Its identity stands for the job's message in memory. */
export interface DeliveryState {
  /** A connection that had closed has returned the job once. */
  retriedOnce: boolean
  /** How often the job was passed on to another egress path of the pool. */
  poolHops: number
  /** The warm-up day that its recipients were counted against, however often the job returns to the queue. */
  warmUpGrant: WarmUp | undefined
  /** Compressed content, if it was small enough to be loaded with the claim and the message has not been built yet. */
  body: Buffer | undefined
}

/** The result of an attempt, for each recipient of the job. */
export interface JobResult {
  job: Job
  results: AttemptResult[]
  remote: RemoteMta
  durationMs: number
  repliedMs?: TransactionResult['repliedMs']
  conversation: string
  /** No connection took mail, so that the results concern every message for the site. */
  isWithoutConnection?: boolean
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
  /** Used instead of `signed` for a server without 8BITMIME, if the message has a 7-bit form. Rejects as `ContentReader` does. */
  sevenBit?: () => Promise<SignedMessage>
}

/** The same for all recipients of a job. */
export interface SignedMessage {
  /** Header fields that stand above `data`. */
  signatures: string
  /** Dot-stuffed. */
  data: Buffer
}

const notAscii = /[^\u0000-\u007f]/

/**
 * Groups claimed recipients by submission and recipient domain, in the order of the claim. Addresses that need SMTPUTF8 (RFC 6531) have
 * their own job: a server without it gets the others.
 */
export function jobsOf(claimed: readonly Claimed[]): Job[] {
  type Open = Job & { recipients: [Claimed, ...Claimed[]] }
  const jobs: Open[] = []
  const open = new Map<string, Open>()
  for (const one of claimed) {
    const needsSmtpUtf8 = notAscii.test(one.recipient)
    const key = `${one.contentId} ${one.recipientDomain} ${one.epoch}${needsSmtpUtf8 ? ' utf8' : ''}`
    const job = open.get(key)
    if (job && job.recipients.length < maxRecipientsPerJob) {
      job.recipients.push(one)
      continue
    }
    const begun: Open = {
      tenantId: one.tenantId,
      contentId: one.contentId,
      recipients: [one],
      sizeOctets: one.sizeOctets,
      needsSmtpUtf8,
      pool: undefined,
      transport: undefined,
      state: { retriedOnce: false, poolHops: 0, warmUpGrant: undefined, body: undefined },
    }
    open.set(key, begun)
    jobs.push(begun)
  }
  return jobs
}

export const laneKey = ({ tenantId, recipientDomain }: Lane): string => `${tenantId} ${recipientDomain}`

export const laneOf = ({ recipients: [{ tenantId, recipientDomain }] }: Job): Lane => ({ tenantId, recipientDomain })

/** The same job, with its state and its message in memory, for some of its recipients; undefined if the list is empty. */
export function withRecipients(job: Job, [first, ...others]: readonly Claimed[]): Job | undefined {
  return first && { ...job, recipients: [first, ...others] }
}

/** A job of its own for some of the recipients, with a copy of the state and no message in memory; undefined if the list is empty. */
export function separateJob(job: Job, recipients: readonly Claimed[]): Job | undefined {
  return withRecipients({ ...job, state: { ...job.state } }, recipients)
}

/** The parts of a job, one for each transaction. */
export const transactionsOf = (job: Job, { returnPathOf }: PreparedMessage): Job[] =>
  returnPathOf && job.recipients.length > 1 ? job.recipients.map((one) => ({ ...job, recipients: [one], state: { ...job.state } })) : [job]

/** For a message that differs for each recipient: the same job for its first recipient, and a job of its own for each of the others. */
export function jobPerRecipient(job: Job): [Job, ...Job[]] {
  const [first, ...others] = job.recipients
  const jobFor = (one: Claimed, state: DeliveryState): Job => ({
    ...job,
    recipients: [one],
    state,
  })
  return [jobFor(first, job.state), ...others.map((one) => jobFor(one, { ...job.state, retriedOnce: false }))]
}
