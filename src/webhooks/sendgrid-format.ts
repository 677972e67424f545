/** Webhook requests in the form of SendGrid's event webhook: an array with one event, signed with a key of the webhook's own. */
import type { WebhookEvent } from './manage-webhooks.ts'
import {
  isHeldBySuppression,
  isPassingBounce,
  isUnsent,
  membersOf,
  type OwnBody,
  ownBodyOf,
  textAt,
  type VendorFacts,
} from './vendor-body.ts'

/** SendGrid's name of each event that has one. */
export const sendgridEvents: Readonly<Partial<Record<WebhookEvent, string>>> = {
  MessageSent: 'delivered',
  MessageDelayed: 'deferred',
  MessageDeliveryFailed: 'bounce',
  MessageBounced: 'bounce',
  MessageHeld: 'dropped',
  MessageLoaded: 'open',
  MessageLinkClicked: 'click',
  ComplaintReceived: 'spamreport',
  RecipientUnsubscribed: 'unsubscribe',
}

/** The id of a request with several personalizations, in the metadata of its emails. */
export const sendgridRequestKey = 'X-Message-Id'
/** The name in the metadata of the second category and those after it. */
export const sendgridCategoryKey = (nth: number): string => `category_${nth}`
const categoryForm = /^category_(\d+)$/

/** Whether metadata of this name is not one of the caller's arguments. */
export const isSendGridKey = (name: string): boolean =>
  name.toLowerCase() === sendgridRequestKey.toLowerCase() || categoryForm.test(name.toLowerCase())

/** `messageId`: the id of the event's message. Events without a name of SendGrid's, and bodies already in its form, stay as they are. */
export function sendgridBody(body: Buffer, messageId: string | undefined, facts: VendorFacts = {}): Buffer {
  const own = ownBodyOf(body)
  const name = own && nameOf(own, facts.holdReason)
  if (!own || name === undefined) return body
  const { message, metadata, uuid, at } = own
  const token = textAt(message, 'token')
  const args = Object.entries(metadata).filter(([key]) => !isSendGridKey(key))
  const categories = categoriesOf(own)
  const event = {
    ...Object.fromEntries(args),
    email: textAt(message, 'to'),
    timestamp: Math.floor(at.getTime() / 1000),
    event: name,
    'smtp-id': `<${textAt(message, 'message_id')}>`,
    sg_event_id: uuid,
    sg_message_id: `${metadata[sendgridRequestKey] ?? messageId ?? token}.${token}`,
    ...(categories.length === 0 ? {} : { category: categories }),
    ...detailsOf(name, own, facts),
  }
  return Buffer.from(JSON.stringify([event]))
}

/** Receivers unsubscribe an address after `dropped`, so a hold that does not concern the address is a delay. */
function nameOf(own: OwnBody, holdReason: string | undefined): string | undefined {
  if (own.event === 'MessageHeld' && !isHeldBySuppression(own, holdReason)) return sendgridEvents.MessageDelayed
  // SendGrid's event of mail that it did not attempt.
  return isUnsent(own) ? 'dropped' : sendgridEvents[own.event as WebhookEvent]
}

function categoriesOf({ message, metadata }: OwnBody): string[] {
  const tag = textAt(message, 'tag')
  const others = Object.entries(metadata).flatMap(([key, value]) => {
    const nth = categoryForm.exec(key)?.[1]
    return nth === undefined ? [] : [{ nth: Number(nth), value }]
  })
  return [...(tag === '' ? [] : [tag]), ...others.sort((one, other) => one.nth - other.nth).map(({ value }) => value)]
}

/** Failures that concern the message or its sender; the others concern the address. */
const blocks: readonly string[] = ['spam_block', 'policy_violation', 'message_too_large', 'tls_required', 'dns_error']

/** The members of one kind of event. */
function detailsOf(name: string, own: OwnBody, facts: VendorFacts): object {
  const { event, payload } = own
  const output = textAt(payload, 'output').trim()
  const reason = output || textAt(payload, 'details')
  switch (name) {
    case 'delivered':
      return { response: output }
    case 'deferred':
      return { response: reason }
    case 'dropped':
      return { reason }
    case 'bounce':
      return event === 'MessageBounced'
        ? { reason: textAt(membersOf(payload.bounce), 'subject'), status: '', type: isPassingBounce(own, facts) ? 'blocked' : 'bounce' }
        : {
            reason,
            status: textAt(payload, 'smtp_enhanced_code'),
            type: blocks.includes(textAt(payload, 'classification')) ? 'blocked' : 'bounce',
          }
    case 'open':
      return visitOf(payload)
    case 'click':
      return { ...visitOf(payload), url: textAt(payload, 'url') }
    default:
      return {}
  }
}

const visitOf = (payload: OwnBody['payload']) => ({ useragent: textAt(payload, 'user_agent'), ip: textAt(payload, 'ip_address') })
