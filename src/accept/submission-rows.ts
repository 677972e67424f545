/**
 * Converts a validated submission to the rows of acceptance: one content, and one email for each envelope recipient.
 */

import { type Ids, wrongField } from '#base'
import type { Content, ContentCodec, PartsContent, Tracking } from '#emails'
import type { Address, Mailbox } from '#mail'
import type { Tenant } from '#tenants'
import type { Sender } from './authorize-sender.ts'
import { feedbackIdOf } from './feedback-id.ts'
import { type CheckedRaw, storableSubject } from './raw-submission.ts'
import { resolveScheduledTime, type ScheduledWish } from './scheduled-time.ts'
import type { AcceptedSubmission, RawSubmission, TrackingWish } from './submission.ts'
import { type CheckedRecipient, type CheckedSubmission, checkSender, type Recipients } from './validate-submission.ts'

export interface NewEmail {
  id: string
  recipient: Address
}

interface SubmittedEmail extends NewEmail {
  recipient: CheckedRecipient
}

/** One submission, ready to be written. */
export interface Prepared {
  tenantId: string
  contentId: string
  body: Buffer
  sizeOctets: number
  fromHeader: string
  sender: string
  subject: string
  tag: string | null
  metadata: Record<string, string> | null
  messageId: string
  test: boolean
  /** null: submitted by Postrider itself. */
  credentialId: number | null
  acceptedAtMs: number
  /** Clock offset of the tenant's test clock, for test mail, used for the email's times; otherwise 0. */
  clockOffsetMs: number
  /** When the emails are to leave, by the same clock as their other times; null: at once. */
  scheduledAtMs: number | null
  emails: NewEmail[]
  /** Sent without regard to the TLS policies of the recipients' domains. */
  ignoresTlsPolicies?: true
}

/** With the facts for the caller's response. */
export interface PreparedSubmission extends Prepared {
  accepted: AcceptedSubmission
}

export interface PrepareFacts {
  tenant: Tenant
  sender: Sender
  test: boolean
  credentialId: number
  nowMs: number
  clockOffsetMs: number
  ids: Ids
  publicUrl: string
  /** The pattern of Feedback-ID. */
  feedbackId?: string | undefined
  codec: ContentCodec
}

/** The rows of a submission whose content is given in parts; `given`: its addresses as the caller wrote them. */
export function prepareSubmission(
  checked: CheckedSubmission,
  given: { from: string; to: readonly string[] },
  facts: PrepareFacts,
): Promise<PreparedSubmission> {
  const scheduledAtMs = scheduledMs(checked.scheduled, facts)
  const emails = newEmails(checked.recipients, facts)
  const id = (emails[0] as NewEmail).id
  const messageId = `<${id}@${facts.sender.messageIdDomain}>`
  const content: Content = {
    message: partsContent({ ...checked, headers: headersOf(checked, facts), replyTo: replyToOf(checked, id, facts) }, given.from),
    messageId,
    acceptedAtMs: scheduledAtMs ?? facts.nowMs + facts.clockOffsetMs,
    returnPathDomain: checked.bounce ? null : facts.sender.returnPathDomain,
    ...(checked.bounce ? {} : { marked: true }),
    signing: facts.sender.signing,
    ...(checked.html && !checked.bounce ? trackingFor(facts.sender, checked.tracking) : {}),
    ...(checked.unsubscribe ? { unsubscribe: unsubscribeOrigin(facts) } : {}),
  }
  return finish(content, checked.from, {
    ...facts,
    emails,
    messageId,
    to: given.to,
    fromHeader: given.from,
    subject: checked.subject,
    tag: checked.tag,
    metadata: checked.metadata,
    scheduledAtMs,
    sizeOctets: checked.sizeOctets,
  })
}

/** The caller's headers, and Feedback-ID if the operator wants one and the caller did not set it. */
function headersOf({ headers, tag, from }: CheckedSubmission, { feedbackId, tenant }: PrepareFacts): CheckedSubmission['headers'] {
  if (feedbackId === undefined || headers.some(([name]) => name.toLowerCase() === 'feedback-id')) return headers
  return [...headers, ['Feedback-ID', feedbackIdOf(feedbackId, { tag, tenantId: tenant.id, domain: from.address.domain })]]
}

const replyToOf = ({ replyTo, replyAddress }: CheckedSubmission, emailId: string, { nowMs }: PrepareFacts) =>
  replyAddress ? replyAddress(emailId, nowMs) : replyTo

const partsContent = (
  { recipients, replyTo, subject, html, text, headers, attachments }: CheckedSubmission,
  from: string,
): PartsContent => ({
  kind: 'parts',
  from,
  to: recipients.to,
  cc: recipients.cc,
  ...(replyTo ? { replyTo } : {}),
  subject,
  ...(html === undefined ? {} : { html }),
  ...(text === undefined ? {} : { text }),
  headers,
  attachments: attachments.map(({ content, contentType, filename, contentId }) => ({
    filename,
    contentType,
    content,
    ...(contentId == null ? {} : { contentId }),
  })),
})

/** Part of the content only if opens or clicks are counted. */
function trackingFor({ tracking }: Sender, { opens, clicks }: TrackingWish = {}): { tracking?: Tracking } {
  if (!tracking && (opens || clicks))
    throw wrongField(
      'tracking',
      'needs a track domain of the sending domain, with its DNS record',
      'validation_error',
      'Add a track domain, or send without tracking',
    )
  const wanted = tracking && { ...tracking, opens: opens ?? tracking.opens, clicks: clicks ?? tracking.clicks }
  return wanted && (wanted.clicks || wanted.opens) ? { tracking: wanted } : {}
}

/** The sender's own track domain if it has one; but RFC 8058 section 3.1 requires https, if either origin offers it. */
function unsubscribeOrigin({ sender, publicUrl }: PrepareFacts): string {
  const own = sender.tracking?.origin ?? publicUrl
  return [own, publicUrl].find((origin) => origin.startsWith('https:')) ?? own
}

/** The rows of a submission that is a complete message. */
export function prepareRawSubmission(
  submission: RawSubmission,
  checked: CheckedRaw,
  recipients: Recipients,
  facts: PrepareFacts,
): Promise<PreparedSubmission> {
  const scheduledAtMs = scheduledMs(checked.scheduled, facts)
  const emails = newEmails(recipients, facts)
  const id = (emails[0] as NewEmail).id
  const messageId = checked.messageId ?? `<${id}@${facts.sender.messageIdDomain}>`
  const content: Content = {
    message: { kind: 'raw', raw: submission.rawMessage },
    messageId,
    acceptedAtMs: scheduledAtMs ?? facts.nowMs + facts.clockOffsetMs,
    returnPathDomain: submission.bounce ? null : facts.sender.returnPathDomain,
    signing: facts.sender.signing,
    ...(submission.bounce ? {} : { marked: true, ...trackingFor(facts.sender, submission.vendor?.tracking) }),
    ...feedbackOf(checked, facts),
  }
  const from = checkSender(submission.from)
  return finish(content, from, {
    ...facts,
    emails,
    messageId,
    to: submission.to,
    fromHeader: submission.from,
    subject: storableSubject(checked.subject),
    tag: checked.tag,
    metadata: checked.metadata,
    scheduledAtMs,
    sizeOctets: checked.octets,
  })
}

/** Not added where the caller's own signature or header would be affected. */
function feedbackOf({ takesFeedbackId, originators, tag }: CheckedRaw, { feedbackId, tenant }: PrepareFacts): { feedbackId?: string } {
  const [from] = originators
  if (feedbackId === undefined || !takesFeedbackId || !from) return {}
  return { feedbackId: feedbackIdOf(feedbackId, { tag, tenantId: tenant.id, domain: from.address.domain }) }
}

const newEmails = (recipients: Recipients, facts: PrepareFacts): SubmittedEmail[] =>
  recipients.envelope.map((recipient) => ({ id: facts.ids.emailId(facts.nowMs), recipient }))

/** By the tenant's test clock for test mail. Refuses a time that is not ahead. */
const scheduledMs = (scheduled: ScheduledWish | null, { nowMs, clockOffsetMs }: PrepareFacts): number | null =>
  scheduled && resolveScheduledTime(scheduled, nowMs + clockOffsetMs)

interface FinishFacts extends PrepareFacts {
  emails: SubmittedEmail[]
  messageId: string
  to: readonly string[]
  fromHeader: string
  subject: string
  tag: string | null
  metadata: Record<string, string> | null
  scheduledAtMs: number | null
  sizeOctets: number
}

async function finish(content: Content, from: Mailbox, facts: FinishFacts): Promise<PreparedSubmission> {
  const { tenant, sender, test, credentialId, nowMs, clockOffsetMs, scheduledAtMs, emails, messageId } = facts
  const contentId = (emails[0] as NewEmail).id
  return {
    tenantId: tenant.id,
    contentId,
    body: await facts.codec.encode(content, { tenantId: tenant.id, sizeOctets: facts.sizeOctets }),
    sizeOctets: facts.sizeOctets,
    fromHeader: facts.fromHeader,
    sender: from.address.text.toLowerCase(),
    subject: facts.subject,
    tag: facts.tag,
    metadata: facts.metadata,
    messageId,
    test,
    credentialId,
    acceptedAtMs: nowMs,
    clockOffsetMs,
    scheduledAtMs,
    emails,
    accepted: {
      id: contentId,
      tenantId: tenant.id,
      messageId,
      to: facts.to,
      sandbox: sender.sandbox,
      scheduledAt: scheduledAtMs === null ? null : new Date(scheduledAtMs),
      emails: emails.map((email) => ({ id: email.id, recipient: email.recipient.given })),
    },
  }
}
