/**
 * Webhook requests in the form of Mailgun: an event, and a signature in the body. The events are also those of Mailgun's list of events.
 */
import { createHmac } from 'node:crypto'
import type { WebhookEvent } from './manage-webhooks.ts'
import type { PreparedBody } from './payload.ts'
import { shownSecret } from './sign-request.ts'
import {
  isHeldBySuppression,
  isPassingBounce,
  isUnsent,
  membersOf,
  type OwnBody,
  ownBodyFrom,
  ownBodyOf,
  textAt,
  type VendorFacts,
} from './vendor-body.ts'

/** The names of Mailgun's events, and of the webhooks that get them. */
interface MailgunName {
  event: string
  severity?: 'permanent' | 'temporary'
  /** The id of the webhook. */
  webhook: string
}

const permanent = { event: 'failed', severity: 'permanent', webhook: 'permanent_fail' } as const
const temporary = { event: 'failed', severity: 'temporary', webhook: 'temporary_fail' } as const

export const mailgunEvents: Readonly<Partial<Record<WebhookEvent, MailgunName>>> = {
  MessageSent: { event: 'delivered', webhook: 'delivered' },
  MessageDelayed: temporary,
  MessageDeliveryFailed: permanent,
  MessageBounced: permanent,
  MessageHeld: permanent,
  MessageLoaded: { event: 'opened', webhook: 'opened' },
  MessageLinkClicked: { event: 'clicked', webhook: 'clicked' },
  ComplaintReceived: { event: 'complained', webhook: 'complained' },
  RecipientUnsubscribed: { event: 'unsubscribed', webhook: 'unsubscribed' },
}

/** The Message-ID that the answer to a request for several messages names, in the metadata of their emails, without angle brackets. */
export const mailgunMessageKey = 'mailgun-message-id'
/** The name in the metadata of the second tag and those after it. */
export const mailgunTagKey = (nth: number): string => `tag_${nth}`
const tagForm = /^tag_(\d+)$/

/** Whether metadata of this name is not one of the caller's variables. */
export const isMailgunKey = (name: string): boolean => name === mailgunMessageKey || tagForm.test(name)

function mailgunTagsOf(tag: string | null, metadata: Readonly<Record<string, string>>): string[] {
  const others = Object.entries(metadata).flatMap(([key, value]) => {
    const nth = tagForm.exec(key)?.[1]
    return nth === undefined ? [] : [{ nth: Number(nth), value }]
  })
  return [...(tag ? [tag] : []), ...others.sort((one, other) => one.nth - other.nth).map(({ value }) => value)]
}

interface EventFacts extends VendorFacts {
  isTest: boolean
}

/** undefined: Mailgun has no such event. */
function mailgunEvent(own: OwnBody, facts: EventFacts): Record<string, unknown> | undefined {
  const isHeld = isHeldBySuppression(own, facts.holdReason)
  // Programs unsubscribe an address after a permanent failure, so one that does not concern the address is temporary.
  const isPassing = (own.event === 'MessageHeld' && !isHeld) || isPassingBounce(own, facts)
  const name = isPassing ? temporary : mailgunEvents[own.event as WebhookEvent]
  if (name === undefined) return undefined
  const { message, metadata, uuid, at } = own
  const recipient = textAt(message, 'to')
  return {
    id: uuid,
    event: name.event,
    timestamp: at.getTime() / 1000,
    'log-level': name.severity === 'permanent' ? 'error' : name.severity === 'temporary' ? 'warn' : 'info',
    recipient,
    'recipient-domain': recipient.slice(recipient.lastIndexOf('@') + 1),
    tags: mailgunTagsOf(textAt(message, 'tag'), metadata),
    campaigns: [],
    'user-variables': Object.fromEntries(Object.entries(metadata).filter(([key]) => !isMailgunKey(key))),
    flags: { 'is-routed': false, 'is-authenticated': true, 'is-system-test': false, 'is-test-mode': facts.isTest },
    envelope: { transport: 'smtp', sender: textAt(message, 'from'), targets: recipient },
    message: {
      headers: {
        to: recipient,
        'message-id': metadata[mailgunMessageKey] ?? textAt(message, 'message_id'),
        from: textAt(message, 'from'),
        subject: textAt(message, 'subject'),
      },
      attachments: [],
    },
    ...detailsOf(name, own, isHeld),
  }
}

/** The same for an event of the log; `id` is then that of the list. */
export const mailgunEventOf = (prepared: PreparedBody, id: string): Record<string, unknown> | undefined =>
  mailgunEvent({ ...ownBodyFrom(prepared), uuid: id }, { ...prepared, isTest: prepared.isTest ?? false })

const unknownClient = { 'client-name': 'unknown', 'client-type': 'unknown', 'client-os': 'unknown', 'device-type': 'unknown' }

/** The members of one kind of event. */
function detailsOf({ event, severity }: MailgunName, own: OwnBody, isHeld: boolean): object {
  const { payload } = own
  switch (event) {
    case 'delivered':
      return { 'delivery-status': statusOf(own, isHeld) }
    case 'failed':
      return { severity, reason: reasonOf(own, isHeld), 'delivery-status': statusOf(own, isHeld) }
    case 'opened':
    case 'clicked':
      return {
        ip: textAt(payload, 'ip_address'),
        'client-info': { ...unknownClient, 'user-agent': textAt(payload, 'user_agent') },
        geolocation: { country: '', region: '', city: '' },
        ...(event === 'clicked' ? { url: textAt(payload, 'url') } : {}),
      }
    default:
      return {}
  }
}

/** Mailgun's code of a message that it did not attempt, because the address is suppressed. */
const suppressedCode = 605

function reasonOf(own: OwnBody, isHeld: boolean): string {
  if (isHeld) return 'suppress-bounce'
  return own.event === 'MessageDelayed' || own.event === 'MessageHeld' || isUnsent(own) ? 'generic' : 'bounce'
}

function statusOf({ event, payload }: OwnBody, isHeld: boolean): object {
  const output = textAt(payload, 'output').trim()
  const text = output || textAt(payload, 'details') || textAt(membersOf(payload.bounce), 'subject')
  const code = Number(/^\d{3}(?=[ -]|$)/.exec(output)?.[0] ?? Number.NaN)
  const enhanced = textAt(payload, 'smtp_enhanced_code')
  return {
    tls: payload.sent_with_ssl === true,
    'mx-host': textAt(payload, 'remote_host'),
    code: isHeld ? suppressedCode : Number.isNaN(code) ? (event === 'MessageSent' ? 250 : 0) : code,
    ...(enhanced === '' ? {} : { 'enhanced-code': enhanced }),
    message: text,
    description: event === 'MessageSent' ? '' : textAt(payload, 'details'),
    'session-seconds': typeof payload.time === 'number' ? payload.time : 0,
  }
}

interface MailgunSigning extends EventFacts {
  /** The webhook's current one. */
  secret: Buffer
  nowMs: number
}

/** 50 characters, the same for every attempt of one event, so that a receiver knows a repetition. */
const tokenOf = (id: unknown, secret: Buffer) =>
  createHmac('sha256', secret)
    .update(`token ${String(id)}`)
    .digest('hex')
    .slice(0, 50)

/**
 * Mailgun signs the time and a token, not the event; Postrider's own signatures in the headers cover the body. The key is the text of the
 * webhook's secret as it is shown. A body that is already in the form gets a new signature. Events without a name of Mailgun's stay as they are.
 */
export function mailgunBody(body: Buffer, { secret, nowMs, ...facts }: MailgunSigning): Buffer {
  const own = ownBodyOf(body)
  const given = own ? undefined : membersOf(membersOf(JSON.parse(body.toString()))['event-data'])
  const event = own ? mailgunEvent(own, facts) : given
  if (event === undefined || typeof event.event !== 'string') return body
  const timestamp = String(Math.floor(nowMs / 1000))
  const token = tokenOf(event.id, secret)
  const signature = createHmac('sha256', shownSecret(secret))
    .update(timestamp + token)
    .digest('hex')
  return Buffer.from(JSON.stringify({ signature: { timestamp, token, signature }, 'event-data': event }))
}
