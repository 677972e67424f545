/** Webhook requests in the form of Postmark, which does not sign them: Postrider's own signatures remain. */
import type { WebhookEvent } from './manage-webhooks.ts'
import { postmarkBounceKind, postmarkMetadataOf, postmarkReason, postmarkStreamOf } from './postmark-facts.ts'
import { type OwnBody, ownBodyOf, textAt, timeAt } from './vendor-body.ts'

/** Postmark's trigger of each event that has one. */
export const postmarkTriggers: Readonly<Partial<Record<WebhookEvent, string>>> = {
  MessageSent: 'Delivery',
  MessageDeliveryFailed: 'Bounce',
  MessageBounced: 'Bounce',
  ComplaintReceived: 'SpamComplaint',
  MessageLoaded: 'Open',
  MessageLinkClicked: 'Click',
  SuppressionAdded: 'SubscriptionChange',
  SuppressionRemoved: 'SubscriptionChange',
}

type Fields = Record<string, unknown>

/** `messageId`: the id of the event's message. Events without a trigger, and bodies already in the form, stay as they are. */
export function postmarkBody(body: Buffer, messageId: string | undefined): Buffer {
  const own = ownBodyOf(body)
  const trigger = own && postmarkTriggers[own.event as WebhookEvent]
  if (!own || trigger === undefined) return body
  return Buffer.from(JSON.stringify({ RecordType: trigger, ...membersOf(trigger, own), ...commonOf(own, messageId) }))
}

const commonOf = ({ message, metadata }: OwnBody, messageId: string | undefined): Fields => ({
  MessageID: messageId ?? textAt(message, 'token'),
  ServerID: 0,
  MessageStream: postmarkStreamOf(metadata),
  Tag: textAt(message, 'tag'),
  Metadata: postmarkMetadataOf(metadata),
})

function membersOf(trigger: string, own: OwnBody): Fields {
  const { event, payload, message, at } = own
  const Recipient = textAt(message, 'to')
  if (trigger === 'Delivery') return { Recipient, DeliveredAt: at.toISOString(), Details: textAt(payload, 'output').trim() }
  if (trigger === 'Open') return { Recipient, FirstOpen: false, ...visitOf(own) }
  if (trigger === 'Click') return { Recipient, ClickLocation: 'HTML', OriginalLink: textAt(payload, 'url'), ...visitOf(own) }
  if (trigger === 'SubscriptionChange')
    return {
      Recipient: textAt(payload, 'address'),
      ChangedAt: at.toISOString(),
      SuppressSending: event === 'SuppressionAdded',
      ...postmarkReason(textAt(payload, 'reason'), textAt(payload, 'source') === 'automatic'),
    }
  return bounceOf(trigger, own)
}

const complaint = {
  Type: 'SpamComplaint',
  TypeCode: 100_001,
  Name: 'Spam complaint',
  Description: 'The subscriber explicitly marked this message as spam.',
}

function bounceOf(trigger: string, { event, payload, message, at }: OwnBody): Fields {
  const report = event === 'MessageBounced' ? (payload.bounce as Fields) : {}
  return {
    ID: message.id ?? 0,
    ...(trigger === 'SpamComplaint' ? complaint : postmarkBounceKind(textAt(payload, 'classification'))),
    Details: textAt(payload, 'output').trim() || textAt(payload, 'details') || textAt(report, 'subject'),
    Email: textAt(message, 'to'),
    From: textAt(message, 'from'),
    BouncedAt: (timeAt(report, 'timestamp') ?? at).toISOString(),
    DumpAvailable: false,
    Inactive: true,
    CanActivate: true,
    Subject: textAt(message, 'subject'),
    Content: null,
  }
}

const unknownProgram = { Name: '', Company: '', Family: '' }

const visitOf = ({ payload, at }: OwnBody): Fields => ({
  ReceivedAt: at.toISOString(),
  UserAgent: textAt(payload, 'user_agent'),
  Client: unknownProgram,
  OS: unknownProgram,
  Platform: 'Unknown',
  ReadSeconds: 0,
  Geo: { IP: textAt(payload, 'ip_address') },
})
