/** Messages as Resend's emails. */
import type { Email, EmailStatus, PartsContent } from '#emails'

/** The facts of one message; the first email has the message's id. */
export interface ResendMessage {
  emails: readonly [Email, ...Email[]]
  /** As submitted; undefined: no longer stored, or not in parts. */
  content: PartsContent | undefined
  /** Whether any recipient opened it, followed a link or complained. */
  marks: { opened: boolean; clicked: boolean; complained: boolean }
}

const eventOf: Readonly<Record<EmailStatus, string>> = {
  pending: 'queued',
  softfail: 'delivery_delayed',
  held: 'suppressed',
  sent: 'delivered',
  hardfail: 'bounced',
  bounced: 'bounced',
}

/** The state of a scheduled message that has not left; undefined: of any other. */
function scheduledEvent({ scheduledAt, cancelledAt }: Email, statuses: readonly EmailStatus[]): string | undefined {
  if (cancelledAt !== null && statuses.every((one) => one === 'hardfail')) return 'canceled'
  return scheduledAt !== null && statuses.every((one) => one === 'pending') ? 'scheduled' : undefined
}

/** The first of these that a recipient has is the message's. */
const order: readonly EmailStatus[] = ['bounced', 'hardfail', 'held', 'softfail', 'pending', 'sent']

const worstOf = (statuses: readonly EmailStatus[]) => eventOf[order.find((one) => statuses.includes(one)) ?? 'pending']

/** A date as Resend writes it: `2026-11-23 10:00:00.000000+00`. */
const dateOf = (at: Date) => at.toISOString().replace('T', ' ').replace('Z', '000+00')

const orNull = (list: readonly string[]) => (list.length === 0 ? null : [...list])
const unique = (list: readonly string[]) => [...new Set(list)]
const addressIn = (mailbox: string) => (/<([^<>]*)>$/.exec(mailbox)?.[1] ?? mailbox).toLowerCase()

/** `GET /emails/:id`. Without stored content all recipients are in `to`. */
export function resendEmail({ emails, content, marks }: ResendMessage) {
  const [first] = emails
  const shown = new Set([...(content?.to ?? []), ...(content?.cc ?? [])].map(addressIn))
  const recipients = unique(emails.map((one) => one.recipient))
  const statuses = emails.map((one) => one.status)
  const status = scheduledEvent(first, statuses) ?? worstOf(statuses)
  const read = marks.clicked ? 'clicked' : marks.opened ? 'opened' : status
  return {
    object: 'email',
    id: first.contentId,
    message_id: first.messageId,
    to: content ? content.to : recipients,
    from: first.fromHeader,
    created_at: dateOf(first.acceptedAt),
    subject: first.subject,
    html: content?.html ?? null,
    text: content?.text ?? null,
    bcc: content ? orNull(recipients.filter((one) => !shown.has(one.toLowerCase()))) : null,
    cc: content ? orNull(content.cc) : null,
    reply_to: content?.replyTo ? content.replyTo.split(',\r\n ') : null,
    last_event: marks.complained ? 'complained' : status === 'delivered' ? read : status,
    scheduled_at: first.scheduledAt && dateOf(first.scheduledAt),
    tags: Object.entries(first.metadata ?? {}).map(([name, value]) => ({ name, value })),
  }
}

/** An element of `GET /emails`: `to` has all recipients, because the list reads no content. */
export function resendEmailItem(email: Email, recipients: readonly { recipient: string; status: EmailStatus }[]) {
  const statuses = recipients.map((one) => one.status)
  return {
    id: email.contentId,
    message_id: email.messageId,
    to: unique(recipients.map((one) => one.recipient)),
    from: email.fromHeader,
    created_at: dateOf(email.acceptedAt),
    subject: email.subject,
    bcc: null,
    cc: null,
    reply_to: null,
    last_event: scheduledEvent(email, statuses) ?? worstOf(statuses),
    scheduled_at: email.scheduledAt && dateOf(email.scheduledAt),
  }
}
