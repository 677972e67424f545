/**
 * Builds an event's payload (contract 13.9) from the log entry and the facts of its email. Real events and test samples use the same
 * functions. Data that is no longer stored is empty, never missing.
 */
import { emailIdTimeMs } from '#base'
import { classification } from '#bounces'
import type { Queryable } from '#db'
import { findWebhookFields, type WebhookFields } from '#emails'
import { type LoggedEvent, simulatedMs } from '#events'
import { findReceived, type ReceivedMail } from '#received-mail'
import { allEventNames, namedEvents } from './manage-webhooks.ts'
import { bodiesInEvents, receivedPayload } from './received-payload.ts'

/** Events that a webhook or a stream may get: those of contract 13.1, and those that are sent only by name. */
export const webhookEmailEvents = [...allEventNames, ...namedEvents] as const
export type WebhookEmailEvent = (typeof webhookEmailEvents)[number]

/** A complete body except its uuid, which differs for each receiver. */
export interface PreparedBody {
  event: WebhookEmailEvent
  /** The tenant's id, or the organisation's for an event without tenant. */
  tenantId: string
  /** Seconds since the epoch. */
  timestamp: number
  payload: Record<string, unknown>
  /** The id of the email's message, as other vendors' formats have it. */
  messageId?: string | undefined
  /** The email was for the simulator; absent: unknown. */
  isTest?: boolean | undefined
  /** Of a MessageHeld, for other vendors' formats; absent: not recorded. */
  holdReason?: string | undefined
  /** The event suppressed the email's recipient. */
  isSuppressed?: boolean | undefined
}

/** In the order of the events; undefined for an event that webhooks never get. */
export type Bodies = (events: readonly LoggedEvent[]) => Promise<(PreparedBody | undefined)[]>

/** Loads the emails of all the events in one query, and the received messages in another. `publicUrl`: for links to received messages. */
export function openPayloadBodies({ db, publicUrl = '' }: { db: Queryable; publicUrl?: string | undefined }): Bodies {
  return async (events) => {
    const wanted = new Map<string, { tenantId: string; id: string }>()
    for (const { kind, tenantId, emailId } of events) {
      if (emailId !== null && isWebhookEmailEvent(kind)) wanted.set(emailId, { tenantId, id: emailId })
    }
    const facts = await findWebhookFields(db, [...wanted.values()])
    const received = await findReceived(db, events.flatMap(receivedIn), bodiesInEvents)
    return events.map((logged) => {
      const { kind, tenantId, emailId } = logged
      const at = simulatedMs(logged)
      const event = { ...logged, at }
      if (!isWebhookEmailEvent(kind)) return undefined
      const fields = facts.get(emailId ?? '')
      const message = messageOf(emailId ?? '', fields, at)
      const payload = payloadOf(kind, event, message, { message: received.get(textOf(event.data.received)), publicUrl })
      const body = { event: kind, tenantId, timestamp: secondsOf(at), payload }
      const holdReason = textOf(event.data.holdReason) || undefined
      return { ...body, messageId: fields?.contentId, isTest: fields?.test, holdReason, isSuppressed: hasSuppressed(kind, event.data) }
    })
  }
}

const receivedIn = ({ kind, tenantId, data }: LoggedEvent) =>
  kind === 'MessageReceived' && typeof data.received === 'string' ? [{ tenantId, id: data.received }] : []

const webhookEventNames: ReadonlySet<string> = new Set(webhookEmailEvents)
const isWebhookEmailEvent = (name: string): name is WebhookEmailEvent => webhookEventNames.has(name)

/** The events of a comma-separated list; `unknown`: the first name in it that is not one of `webhookEmailEvents`. */
export function parseEventNames(text: string): { names: ReadonlySet<WebhookEmailEvent> } | { unknown: string } {
  const names = text.split(',').map((name) => name.trim())
  const unknown = names.find((name) => !isWebhookEmailEvent(name))
  return unknown === undefined ? { names: new Set(names.filter(isWebhookEmailEvent)) } : { unknown }
}

/** Of a failure by its class, or by a last attempt that failed as the ones before it: with a temporary reply, or without one. */
function hasSuppressed(kind: WebhookEmailEvent, data: LoggedEvent['data']): boolean {
  if (kind !== 'MessageDeliveryFailed' && kind !== 'MessageBounced') return false
  // Events of earlier versions and samples do not say it.
  if (typeof data.suppressed === 'boolean') return data.suppressed
  const { classification: name, classificationCode: code } = data
  if (typeof name !== 'string' || typeof code !== 'number') return false
  if (code <= classification('not_accepting_mail')) return true
  const reply = textOf(data.enhanced) || textOf(data.output)
  return kind === 'MessageDeliveryFailed' && name !== 'unclassified' && (reply === '' || reply.startsWith('4'))
}

const maxDetailsLength = 250
const maxOutputLength = 512

export interface Message {
  id: number
  token: string
  direction: 'outgoing' | 'incoming'
  message_id: string
  to: string
  from: string
  subject: string
  timestamp: number
  spam_status: 'NotChecked' | 'NotSpam' | 'Spam'
  tag: string | null
  metadata: Record<string, string> | null
}

/** `at` stands in for the acceptance time if the id does not contain it. */
export function messageOf(id: string, facts: Omit<WebhookFields, 'tenantId' | 'id' | 'contentId' | 'test'> | undefined, at: Date): Message {
  return {
    id: facts?.number ?? 0,
    token: id,
    direction: 'outgoing',
    message_id: bare(facts?.messageId ?? ''),
    to: facts?.recipient ?? '',
    from: facts?.sender ?? '',
    subject: facts?.subject ?? '',
    timestamp: secondsOf(facts?.acceptedAt ?? new Date(emailIdTimeMs(id) ?? at)),
    spam_status: 'NotChecked',
    tag: facts?.tag ?? null,
    metadata: facts?.metadata ?? null,
  }
}

type Logged = Pick<LoggedEvent, 'id' | 'at' | 'data'>

interface Received {
  /** undefined: deleted. */
  message: ReceivedMail | undefined
  publicUrl: string
}

/** `message`: the event's email; ignored for an event without one. `received`: the message of a MessageReceived. */
export function payloadOf(event: WebhookEmailEvent, logged: Logged, message: Message, received?: Received): Record<string, unknown> {
  const { data } = logged
  const { metadata } = message
  switch (event) {
    case 'MessageSent':
      return { ...attemptOf('Sent', logged, message), metadata }
    case 'MessageHeld':
      return { ...attemptOf('Held', logged, message), metadata }
    case 'MessageDelayed':
      return { ...attemptOf('SoftFail', logged, message), ...failureOf(data), metadata }
    case 'MessageDeliveryFailed':
      return { ...attemptOf('HardFail', logged, message), ...failureOf(data), metadata }
    case 'MessageBounced':
      return { original_message: message, bounce: bounceOf(logged, message), metadata }
    case 'MessageLoaded':
      return { message, ...visitOf(data), metadata }
    case 'MessageLinkClicked':
      return { message, url: textOf(data.url), token: textOf(data.token), ...visitOf(data), metadata }
    case 'DomainDNSError':
      return dnsErrorOf(data)
    case 'ComplaintReceived':
      return { message, matched_by: textOf(data.matchedBy), dkim: textOf(data.dkim), metadata }
    case 'RecipientUnsubscribed':
      return { message, metadata }
    case 'SuppressionAdded':
    case 'SuppressionRemoved':
      return listChangeOf(data, message)
    case 'MessageReceived':
      return receivedPayload(textOf(data.received), received?.message, received?.publicUrl ?? '')
    case 'ReputationWarning':
      return findingOf(data)
    case 'SendLimitApproaching':
    case 'SendLimitExceeded':
      return { server: serverOf(data.server), volume: numberOf(data.volume), limit: numberOf(data.limit) }
  }
}

const attemptOf = (status: 'Sent' | 'SoftFail' | 'HardFail' | 'Held', { at, data }: Logged, message: Message) => ({
  message,
  status,
  details: textOf(data.details, maxDetailsLength),
  output: textOf(data.output, maxOutputLength),
  sent_with_ssl: data.secure === true,
  timestamp: secondsOf(at),
  time: numberOf(data.seconds),
})

/** A failure without a reply of the remote MTA is unclassified. */
const failureOf = (data: Logged['data']) => ({
  classification: textOf(data.classification) || 'unclassified',
  classification_code: typeof data.classificationCode === 'number' ? data.classificationCode : classification('unclassified'),
  smtp_enhanced_code: nullableTextOf(data.enhanced),
  remote_host: nullableTextOf(data.remoteHost),
})

const visitOf = (data: Logged['data']) => ({ ip_address: textOf(data.ipAddress), user_agent: textOf(data.userAgent) })

/** The bounce message from `data.bounce`: {token, messageId, from, to, subject, timestamp}. */
function bounceOf({ id, at, data }: Logged, original: Message): Message {
  const report = recordOf(data.bounce)
  return {
    id,
    token: textOf(report.token),
    direction: 'incoming',
    message_id: bare(textOf(report.messageId)),
    to: textOf(report.to) || original.from,
    from: textOf(report.from),
    subject: textOf(report.subject),
    timestamp: numberOf(report.timestamp) || secondsOf(at),
    spam_status: 'NotChecked',
    tag: null,
    metadata: null,
  }
}

const dnsErrorOf = (data: Logged['data']) => ({
  domain: textOf(data.domain),
  uuid: textOf(data.uuid),
  dns_checked_at: numberOf(data.dns_checked_at),
  spf_status: nullableTextOf(data.spf_status),
  spf_error: nullableTextOf(data.spf_error),
  dkim_status: nullableTextOf(data.dkim_status),
  dkim_error: nullableTextOf(data.dkim_error),
  mx_status: null,
  mx_error: null,
  return_path_status: nullableTextOf(data.return_path_status),
  return_path_error: nullableTextOf(data.return_path_error),
  server: serverOf(data.server),
})

function serverOf(value: unknown) {
  const { uuid, name, permalink, organization } = recordOf(value)
  return { uuid: textOf(uuid), name: textOf(name), permalink: textOf(permalink), organization: textOf(organization) }
}

/** `message` is the email that caused the change; null: a request caused it. */
const listChangeOf = (data: Logged['data'], message: Message) => ({
  address: textOf(data.address),
  reason: nullableTextOf(data.reason),
  source: textOf(data.source),
  message: message.token === '' ? null : message,
  metadata: message.metadata,
})

/** A change of reputation: its kind, its place, and the shares before and now. */
const findingOf = (data: Logged['data']) => ({
  kind: textOf(data.kind),
  severity: textOf(data.severity),
  day: textOf(data.day),
  domain: nullableTextOf(data.domain),
  source: nullableTextOf(data.source),
  provider: nullableTextOf(data.provider),
  blocklist: nullableTextOf(data.blocklist),
  before: nullableNumberOf(data.before),
  now: nullableNumberOf(data.now),
  text: textOf(data.text),
})

const secondsOf = (at: Date) => at.getTime() / 1000
const bare = (messageId: string) => messageId.replace(/^<|>$/g, '')
const numberOf = (value: unknown) => (typeof value === 'number' ? value : 0)
const nullableNumberOf = (value: unknown) => (typeof value === 'number' ? value : null)
const nullableTextOf = (value: unknown) => (typeof value === 'string' ? value : null)
const recordOf = (value: unknown) => (typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {})

/** At most `longest` characters, in UTF-16 units or code points, without splitting one. */
function textOf(value: unknown, longest = Number.MAX_SAFE_INTEGER): string {
  if (typeof value !== 'string') return ''
  return value.length <= longest ? value : value.slice(0, longest).replace(/[\ud800-\udbff]$/, '')
}
