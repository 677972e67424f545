/**
 * Converts a validated submission to the rows of acceptance: one content, and one email for each envelope recipient.
 */

import { type Ids, Refusal, wrongField } from '#base'
import type { Content, ContentEncoder, PartsContent, Tracking } from '#emails'
import { type Address, type Mailbox, type Originator, readRaw } from '#mail'
import type { Tenant } from '#tenants'
import type { Sender } from './authorize-sender.ts'
import { feedbackIdOf } from './feedback-id.ts'
import { checkScheduledTime, resolveScheduledTime, type ScheduledWish } from './scheduled-time.ts'
import type { AcceptedSubmission, RawSubmission, TrackingWish } from './submission.ts'
import {
  base64Octets,
  type CheckedRecipient,
  type CheckedSubmission,
  checkMetadata,
  checkSender,
  checkTag,
  largestMessageOctets,
  type Recipients,
} from './validate-submission.ts'

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
  encoder: ContentEncoder
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

export interface CheckedRaw {
  octets: number
  /** The fields that identify the sender, From first; `field` is the name. */
  originators: Originator[]
  subject: string
  messageId: string | undefined
  takesFeedbackId: boolean
  tag: string | null
  metadata: Record<string, string> | null
  /** null: sent at once. */
  scheduled: ScheduledWish | null
}

const originatorForms =
  'Write the header once, with one address: name@example.com or "Name" <name@example.com>. Quote names that contain , : ; or @'

const carriageReturn = 0x0d
const lineFeed = 0x0a

/** By index, because millions of regular expression matches or iterator steps take seconds; undefined if it is not ASCII. */
function withoutLineEnds(text: string): string | undefined {
  if (!text.includes('\n') && !text.includes('\r')) return text
  const octets = Buffer.from(text)
  if (octets.length !== text.length) return undefined
  let length = 0
  for (let at = 0; at < octets.length; at++) {
    const octet = octets[at] as number
    if (octet !== carriageReturn && octet !== lineFeed) octets[length++] = octet
  }
  return octets.toString('latin1', 0, length)
}

const rawProblems: Record<Extract<ReturnType<typeof readRaw>, string>, string> = {
  'no-header-block': 'has no header block',
  'no-from': 'has no From header',
  'several-from': 'has more than one From header',
  'bad-from': 'has a From header that is ambiguous or not exactly one address',
  'header-line-malformed': 'has a malformed line in its header block',
}

const refuseRaw = (message: string, suggestion?: string): never => {
  throw new Refusal('invalid_raw_message', {
    field: 'rawMessage',
    message: `rawMessage ${message}`,
    ...(suggestion === undefined ? {} : { suggestion }),
  })
}

function rawOctets({ rawMessage, traceOctets = 0 }: RawSubmission): Buffer {
  const compact = withoutLineEnds(rawMessage)
  const tooLarge = () => new Refusal('payload_too_large', { field: 'rawMessage', message: 'rawMessage is larger than 14 MB' })
  if (compact === undefined) return refuseRaw('is not standard base64')
  // Longer base64 is refused without decoding.
  if (compact.length > largestMessageOctets * 1.5) throw tooLarge()
  const octets = base64Octets(compact) ?? refuseRaw('is not standard base64')
  if (octets > largestMessageOctets + traceOctets) throw tooLarge()
  return Buffer.from(compact, 'base64')
}

/** The facts in a raw message; refuses `invalid_raw_message` and `payload_too_large`. */
export function checkRaw(submission: RawSubmission): CheckedRaw {
  checkSender(submission.from)
  const octets = rawOctets(submission)
  const facts = readRaw(octets)
  if (typeof facts === 'string') return refuseRaw(rawProblems[facts], facts === 'bad-from' ? originatorForms : undefined)
  if ('unreadable' in facts.originators)
    return refuseRaw(`has an ambiguous ${facts.originators.unreadable} header: programs read it differently`, originatorForms)
  return {
    octets: octets.length,
    originators: [{ field: 'From', address: facts.from.address }, ...facts.originators],
    subject: facts.subject,
    messageId: facts.messageId,
    takesFeedbackId: facts.takesFeedbackId,
    tag: checkTag(submission.tag),
    metadata: checkMetadata(submission.metadata, submission.vendor),
    scheduled: checkScheduledTime(submission.scheduledAt),
  }
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

/** A raw message's subject may contain characters that a text column cannot store. */
export const storableSubject = (text: string) => text.toWellFormed().replaceAll('\0', '').slice(0, 998)

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
    body: await facts.encoder.encode(content, { tenantId: tenant.id, sizeOctets: facts.sizeOctets }),
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
