/**
 * The input and the result types of acceptance.
 */
import type { Refusal } from '#base'
import type { SendLimitUsage } from '#limits'
import type { ScheduledTime } from './scheduled-time.ts'

export interface SubmittedAttachment {
  /** Base64, padding optional. */
  content: string
  contentType: string
  filename: string
  contentId?: string | null | undefined
}

/** The entry point has checked shapes and lengths; this module checks the content. Absent and null mean the same. */
export interface Submission {
  from: string
  to: readonly string[]
  cc?: readonly string[] | null | undefined
  bcc?: readonly string[] | null | undefined
  replyTo?: string | null | undefined
  /** In place of `replyTo`: makes the address to which the recipient of an email replies. Needs exactly one recipient. */
  replyAddress?: ((emailId: string, nowMs: number) => string) | undefined
  subject: string
  html?: string | null | undefined
  text?: string | null | undefined
  tag?: string | null | undefined
  headers?: Readonly<Record<string, string>> | null | undefined
  attachments?: readonly SubmittedAttachment[] | null | undefined
  metadata?: Readonly<Record<string, string>> | null | undefined
  /** true: adds the header fields for one-click unsubscription (RFC 8058). */
  unsubscribe?: boolean | null | undefined
  /** When the email is to leave; absent: now. */
  scheduledAt?: ScheduledTime | null | undefined
  /** Set by the APIs of other vendors, which allow more forms than /v1. */
  vendor?: VendorForms | undefined
}

/**
 * Recipients may have display names, and To and the subject may be empty. Metadata may have more and longer names. `replyTo` of the
 * submission is then not used.
 */
export interface VendorForms {
  /** Mailboxes of the Reply-To field, with or without display names. */
  replyTo: readonly string[]
  /** true: sent with the null reverse-path. */
  bounce: boolean
  /** Absent members: as the sender's track domain is set. true is refused without a track domain whose DNS was found. */
  tracking?: TrackingWish | undefined
  /** Addresses in each of to, cc and bcc; absent: 50. */
  recipientsPerField?: number
}

export interface TrackingWish {
  opens?: boolean | undefined
  clicks?: boolean | undefined
}

export interface RawSubmission {
  from: string
  to: readonly string[]
  /** Base64 of an RFC 5322 message. */
  rawMessage: string
  /** Octets of a trace field that Postrider has added to it; they do not count toward the largest size. */
  traceOctets?: number | undefined
  /** true: sent with the null reverse-path. */
  bounce?: boolean | null | undefined
  tag?: string | null | undefined
  metadata?: Readonly<Record<string, string>> | null | undefined
  /** When the email is to leave; absent: now. */
  scheduledAt?: ScheduledTime | null | undefined
  /** As in a submission in parts, except that `replyTo` and `bounce` have no effect. */
  vendor?: VendorForms | undefined
}

export interface Caller {
  credentialId: number
  /** The tenant that the key is scoped to; null for an organisation-level key. */
  tenantId: string | null
  mode: 'live' | 'test'
  /** The sending domains and addresses that the key is bound to; absent or null: all of the tenant. */
  allowedFrom?: readonly string[] | null | undefined
}

/** The emails that a request may change. */
export interface MailScope extends Pick<Caller, 'allowedFrom'> {
  /** null: those of any tenant. */
  tenantId: string | null
}

export interface AcceptedSubmission {
  /** The id of the first recipient's email. */
  id: string
  tenantId: string
  /** With angle brackets. */
  messageId: string
  /** As given. */
  to: readonly string[]
  sandbox: boolean
  /** For test mail, by the tenant's test clock; null: sent at once. */
  scheduledAt: Date | null
  /** One for each envelope recipient, in the order given, without duplicates. */
  emails: readonly { id: string; recipient: string }[]
}

/** One element of a batch: accepted, or refused with the reason. */
export type BatchResult = { accepted: AcceptedSubmission } | { refused: Refusal }

export interface AcceptedBatch {
  tenantId: string
  sandbox: boolean
  results: readonly BatchResult[]
}

/** Renders an entry point's response before the commit, because the response is stored with the idempotency key in the same transaction. */
export interface ResponseRenderer<Result> {
  /** A refusal that it throws is the answer, without a commit. */
  render: (result: Result) => Buffer
  /** The caller's Idempotency-Key, and the SHA-256 over method, path and canonical body. */
  idempotency?: { key: string; fingerprint: Buffer } | undefined
}

export interface SubmissionResponse {
  body: Buffer
  /** The response is the stored one of an earlier request with the same key. */
  replayed: boolean
  sendLimitUsage: SendLimitUsage
  /** The emails created by this request; empty if replayed. */
  emailIds: readonly string[]
}
