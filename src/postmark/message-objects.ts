/** Messages as Postmark's outbound messages. */
import type { Email, EmailStatus, PartsContent, ShownAttempt } from '#emails'
import { parseMailbox } from '#mail'
import type { StoredTrackingEvent } from '#tracking'
import { postmarkMetadataOf, postmarkStreamOf } from '#webhooks'

const isQueued = (status: EmailStatus) => status === 'pending' || status === 'softfail'

const mailboxOf = (text: string) => {
  const mailbox = parseMailbox(text)
  return { Email: mailbox?.address.text ?? text, Name: mailbox?.name ?? '' }
}
const named = (address: string) => ({ Email: address, Name: '' })

interface Recipient {
  recipient: string
  status: EmailStatus
}

/** The members that list and details share. */
const common = (email: Email, recipients: readonly Recipient[]) => ({
  Tag: email.tag ?? '',
  MessageID: email.contentId,
  Recipients: recipients.map((one) => one.recipient),
  ReceivedAt: email.acceptedAt.toISOString(),
  From: email.fromHeader,
  Subject: email.subject,
  Status: recipients.every((one) => isQueued(one.status)) ? 'Queued' : 'Sent',
  Metadata: postmarkMetadataOf(email.metadata),
  MessageStream: postmarkStreamOf(email.metadata),
  Sandboxed: email.test,
})

/** An element of `GET /messages/outbound`: all recipients are in `To`, because the list reads no content. */
export const postmarkListed = (email: Email, recipients: readonly Recipient[]) => ({
  ...common(email, recipients),
  To: recipients.map((one) => named(one.recipient)),
  Cc: [],
  Bcc: [],
  Attachments: [],
  TrackOpens: false,
  TrackLinks: 'None',
})

/** Details show this number of recipients: Postmark's messages have no more, and those of other APIs may have a thousand. */
export const maxPostmarkRecipients = 50
/** Of opens and clicks in details, for all shown recipients together. */
export const maxPostmarkVisits = 1000

/** The facts of one message; the first email has the message's id. */
export interface PostmarkMessage {
  emails: readonly [Email & { number: number }, ...(Email & { number: number })[]]
  /** As submitted; undefined: no longer stored, or not in parts. */
  content: PartsContent | undefined
  tracking: { opens: boolean; clicks: boolean }
  /** As sent to the first recipient; undefined: no longer stored. */
  raw: string | undefined
  /** By email id. */
  attempts: ReadonlyMap<string, readonly ShownAttempt[]>
  trackingEvents: ReadonlyMap<string, readonly StoredTrackingEvent[]>
}

/** `GET /messages/outbound/:id/details`. */
export function postmarkDetails({ emails, content, tracking, raw, attempts, trackingEvents }: PostmarkMessage) {
  const to = (content?.to ?? emails.map((one) => one.recipient)).slice(0, maxPostmarkRecipients).map(mailboxOf)
  const cc = (content?.cc ?? []).slice(0, maxPostmarkRecipients).map(mailboxOf)
  const shown = new Set([...to, ...cc].map((one) => one.Email.toLowerCase()))
  const events = emails.flatMap((email) => [
    ...(attempts.get(email.id) ?? []).flatMap((one) => attemptEvent(email, one)),
    ...(trackingEvents.get(email.id) ?? []).map((one) => visitEvent(email, one)),
  ])
  return {
    ...common(emails[0], emails),
    To: to,
    Cc: cc,
    Bcc: emails.filter((one) => !shown.has(one.recipient.toLowerCase())).map((one) => named(one.recipient)),
    Attachments: content?.attachments.map((one) => one.filename) ?? [],
    TrackOpens: tracking.opens,
    TrackLinks: tracking.clicks ? 'HtmlOnly' : 'None',
    TextBody: content?.text ?? null,
    HtmlBody: content?.html ?? null,
    Body: raw ?? '',
    MessageEvents: events.sort((one, other) => one.ReceivedAt.localeCompare(other.ReceivedAt)),
  }
}

interface MessageEvent {
  Recipient: string
  Type: string
  ReceivedAt: string
  Details: Record<string, unknown>
}

function attemptEvent(email: Email & { number: number }, { status, output, details, remoteHost, at }: ShownAttempt): MessageEvent[] {
  const event = { Recipient: email.recipient, ReceivedAt: at.toISOString() }
  const text = output.trim() || details
  const transmission = { DeliveryMessage: text, DestinationServer: remoteHost ?? '', DestinationIP: '' }
  if (status === 'sent') return [{ ...event, Type: 'Delivered', Details: transmission }]
  if (status === 'softfail') return [{ ...event, Type: 'Transient', Details: transmission }]
  if (status === 'hardfail' || status === 'bounced')
    return [{ ...event, Type: 'Bounced', Details: { Summary: text, BounceID: email.number } }]
  return []
}

const visitEvent = (email: Email, { kind, url, userAgent, at }: StoredTrackingEvent): MessageEvent => ({
  Recipient: email.recipient,
  ReceivedAt: at.toISOString(),
  ...(kind === 'open'
    ? { Type: 'Opened', Details: { Summary: userAgent } }
    : { Type: 'LinkClicked', Details: { Summary: url ?? '', Link: url ?? '', ClickLocation: 'HTML' } }),
})
