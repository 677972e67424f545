/** Translates emails and attempts to Postal's messages and deliveries. */
import { createHash } from 'node:crypto'
import type { AcceptedSubmission } from '#accept'
import { nextStep } from '#base'
import type { Attempt, Email, EmailStatus } from '#emails'
import { fieldText, readFields } from '#mail'
import type { Activity } from '#tracking'
import type { PostalExpansion } from './read-message-call.ts'

const statuses: Record<EmailStatus, string> = {
  pending: 'Pending',
  sent: 'Sent',
  softfail: 'SoftFail',
  hardfail: 'HardFail',
  held: 'Held',
  bounced: 'Bounced',
}

const secondsOf = (at: Date) => at.getTime() / 1000
const bare = (messageId: string) => messageId.replace(/^<|>$/g, '')

/** `numbers`: of the emails by id; an email without one is answered with its id in both places. */
export const sentToPostal = ({ messageId, emails }: AcceptedSubmission, numbers: ReadonlyMap<string, number>) => ({
  message_id: bare(messageId),
  messages: Object.fromEntries(emails.map(({ id, recipient }) => [recipient, { id: numbers.get(id) ?? id, token: id }])),
})

/** The facts of one email as far as they were wanted and are still stored. */
export interface MessageFacts {
  email: Email & { number: number }
  lastAttempt: Pick<Attempt, 'at'> | undefined
  /** As sent; undefined: no longer stored. */
  raw: Buffer | undefined
  html: string | undefined
  text: string | undefined
  attachments: readonly { filename: string; contentType: string; content: Buffer }[]
  activity: Activity | undefined
}

/** The members of `data` of `messages/message`. Content that is no longer stored is null. Other requests have a turn between large members. */
export async function messageToPostal(facts: MessageFacts, wanted: ReadonlySet<PostalExpansion>): Promise<Record<string, unknown>> {
  const { email, raw } = facts
  const members: Record<PostalExpansion, () => unknown> = {
    status: () => ({
      status: statuses[email.status],
      last_delivery_attempt: facts.lastAttempt ? secondsOf(facts.lastAttempt.at) : null,
      held: email.status === 'held',
      hold_expiry: null,
    }),
    details: () => ({
      rcpt_to: email.recipient,
      mail_from: email.sender,
      subject: email.subject,
      message_id: bare(email.messageId),
      timestamp: secondsOf(email.acceptedAt),
      direction: 'outgoing',
      size: raw ? String(raw.length) : null,
      bounce: false,
      bounce_for_id: 0,
      tag: email.tag,
      received_with_ssl: true,
    }),
    inspection: () => ({ inspected: false, spam: false, spam_score: 0, threat: false, threat_details: null }),
    plain_body: () => facts.text ?? null,
    html_body: () => facts.html ?? null,
    attachments: () => attachmentsToPostal(facts.attachments),
    headers: () => headersOf(raw),
    raw_message: () => (raw ? inLines(raw) : null),
    activity_entries: () => activityToPostal(facts.activity),
  }
  const shown: Record<string, unknown> = { id: email.number, token: email.id }
  for (const one of wanted) {
    shown[one] = await members[one]()
    await nextStep()
  }
  return shown
}

async function attachmentsToPostal(attachments: MessageFacts['attachments']): Promise<object[]> {
  const shown: object[] = []
  for (const { filename, contentType, content } of attachments) {
    const hash = createHash('sha1').update(content).digest('hex')
    shown.push({ filename, content_type: contentType, data: await inLines(content), size: content.length, hash })
  }
  return shown
}

/** Each header field's values, by its name in lower case. */
function headersOf(raw: Buffer | undefined): Record<string, string[]> {
  const headers = new Map<string, string[]>()
  for (const { name, value } of (raw && readFields(raw)) ?? []) {
    const key = name.toLowerCase()
    const values = headers.get(key) ?? []
    values.push(fieldText(value))
    headers.set(key, values)
  }
  return Object.fromEntries(headers)
}

const visitOf = ({ ipAddress, userAgent, at }: Activity['trackingEvents'][number]) => ({
  ip_address: ipAddress,
  user_agent: userAgent,
  timestamp: at.toISOString(),
})

function activityToPostal(activity: Activity | undefined) {
  const events = activity?.trackingEvents ?? []
  return {
    loads: events.filter(({ kind }) => kind === 'open').map(visitOf),
    clicks: events.filter(({ kind }) => kind === 'click').map((one) => ({ url: one.url, ...visitOf(one) })),
  }
}

/** Octets that become a line of 60 characters. */
const lineOctets = 45
/** About a millisecond. */
const linesAtOnce = 4096

/** Base64 in lines of 60 characters, each with its line end, as Ruby writes it. */
async function inLines(octets: Buffer): Promise<string> {
  let text = ''
  for (let at = 0; at < octets.length; at += lineOctets * linesAtOnce) {
    text += octets.toString('base64', at, at + lineOctets * linesAtOnce).replace(/.{1,60}/g, '$&\n')
    await nextStep()
  }
  return text
}

/** `data` of `messages/deliveries`, oldest first. */
export const deliveriesToPostal = (attempts: readonly Attempt[]) =>
  attempts.map(({ id, status, details, output, secure, conversation, durationMs, at }) => ({
    id,
    status: statuses[status],
    details,
    output: output.trim(),
    sent_with_ssl: secure,
    log_id: conversation,
    time: durationMs / 1000,
    timestamp: secondsOf(at),
  }))
