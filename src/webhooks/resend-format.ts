/** Webhook requests in the form of Resend: its members of the body, and its signature headers beside Postrider's own. */
import type { WebhookEvent } from './manage-webhooks.ts'
import { isHeldBySuppression, isPassingBounce, isUnsent, type OwnBody, ownBodyOf, textAt, timeAt, type VendorFacts } from './vendor-body.ts'

/** Resend's type of each event that has one. */
export const resendTypes: Readonly<Partial<Record<WebhookEvent, string>>> = {
  MessageSent: 'email.delivered',
  MessageDelayed: 'email.delivery_delayed',
  MessageDeliveryFailed: 'email.bounced',
  MessageBounced: 'email.bounced',
  MessageHeld: 'email.suppressed',
  MessageLoaded: 'email.opened',
  MessageLinkClicked: 'email.clicked',
  ComplaintReceived: 'email.complained',
  SuppressionAdded: 'suppression.added',
  SuppressionRemoved: 'suppression.removed',
}

/** `messageId`: the id of the event's message. Events without a type of Resend's, and bodies already in its form, stay as they are. */
export function resendBody(body: Buffer, messageId: string | undefined, facts: VendorFacts = {}): Buffer {
  const own = ownBodyOf(body)
  const type = own && typeOf(own, facts.holdReason)
  if (!own || type === undefined) return body
  const data = type.startsWith('suppression.')
    ? suppressionOf(own, messageId)
    : { ...emailOf(own, messageId), ...detailsOf(type, own, facts) }
  return Buffer.from(JSON.stringify({ type, created_at: own.at.toISOString(), data }))
}

/**
 * Mail that is held for another reason than a suppression leaves when the hold ends. Receivers suppress after `email.bounced`; an email that no
 * server refused has failed.
 */
function typeOf(own: OwnBody, holdReason: string | undefined): string | undefined {
  if (own.event === 'MessageHeld' && !isHeldBySuppression(own, holdReason)) return resendTypes.MessageDelayed
  return isUnsent(own) ? 'email.failed' : resendTypes[own.event as WebhookEvent]
}

const emailOf = ({ message, metadata, at }: OwnBody, messageId: string | undefined) => ({
  email_id: messageId ?? textAt(message, 'token'),
  message_id: `<${textAt(message, 'message_id')}>`,
  created_at: (timeAt(message, 'timestamp') ?? at).toISOString(),
  from: textAt(message, 'from'),
  to: [textAt(message, 'to')],
  subject: textAt(message, 'subject'),
  tags: metadata,
})

const bounce = (message: string, type = 'Permanent') => ({ bounce: { message, type, subType: 'General' } })

/** The members of one kind of event. */
function detailsOf(type: string, own: OwnBody, facts: VendorFacts): object {
  const { event, payload, at } = own
  switch (event) {
    case 'MessageDeliveryFailed':
      if (isUnsent(own)) return { failed: { reason: textAt(payload, 'details') } }
      return bounce(textAt(payload, 'output').trim() || textAt(payload, 'details'))
    case 'MessageBounced':
      return bounce(textAt(payload.bounce as Record<string, unknown>, 'subject'), isPassingBounce(own, facts) ? 'Transient' : 'Permanent')
    case 'MessageHeld':
      if (type !== resendTypes.MessageHeld) return {}
      return { suppressed: { message: textAt(payload, 'details'), type: 'OnAccountSuppressionList' } }
    case 'MessageLinkClicked':
      return {
        click: {
          ipAddress: textAt(payload, 'ip_address'),
          link: textAt(payload, 'url'),
          timestamp: at.toISOString(),
          userAgent: textAt(payload, 'user_agent'),
        },
      }
    default:
      return {}
  }
}

/** The id is the address, because Resend's API takes either. */
function suppressionOf({ payload, message, at }: OwnBody, messageId: string | undefined) {
  const reason = textAt(payload, 'reason')
  const isAutomatic = textAt(payload, 'source') === 'automatic'
  return {
    id: textAt(payload, 'address'),
    email: textAt(payload, 'address'),
    origin: !isAutomatic || reason === 'unsubscribe' ? 'manual' : reason === 'complaint' ? 'complaint' : 'bounce',
    source_id: messageId ?? (textAt(message, 'token') || null),
    created_at: at.toISOString(),
  }
}

/** Standard Webhooks under the names that Svix gave them. */
export const resendHeaders = (headers: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(['id', 'timestamp', 'signature'].map((name) => [`svix-${name}`, headers[`webhook-${name}`] ?? '']))
