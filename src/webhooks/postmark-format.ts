/** Webhook requests in the form of Postmark, which does not sign them: Postrider's own signatures remain. */
import type { WebhookEvent } from './manage-webhooks.ts'
import {
  type PostmarkBounceKind,
  postmarkBounceKind,
  postmarkMetadataOf,
  postmarkReason,
  postmarkStreamOf,
  unsentPostmarkKind,
} from './postmark-facts.ts'
import { isUnsent, type OwnBody, ownBodyOf, textAt, timeAt } from './vendor-body.ts'

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

/**
 * `messageId`: the id of the event's message; `isSuppressed`: the event suppressed its recipient. Events without a trigger, and bodies already
 * in the form, stay as they are.
 */
export function postmarkBody(body: Buffer, messageId: string | undefined, isSuppressed: boolean): Buffer {
  const own = ownBodyOf(body)
  const trigger = own && postmarkTriggers[own.event as WebhookEvent]
  if (!own || trigger === undefined) return body
  return Buffer.from(JSON.stringify({ RecordType: trigger, ...membersOf(trigger, own, isSuppressed), ...commonOf(own, messageId) }))
}

const commonOf = ({ message, metadata }: OwnBody, messageId: string | undefined): Fields => ({
  MessageID: messageId ?? textAt(message, 'token'),
  ServerID: 0,
  MessageStream: postmarkStreamOf(metadata),
  Tag: textAt(message, 'tag'),
  Metadata: postmarkMetadataOf(metadata),
})

function membersOf(trigger: string, own: OwnBody, isSuppressed: boolean): Fields {
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
  return trigger === 'SpamComplaint' ? bounceOf(own, complaint, true) : bounceOf(own, kindOf(own, isSuppressed), isSuppressed)
}

const complaint = {
  Type: 'SpamComplaint',
  TypeCode: 100_001,
  Name: 'Spam complaint',
  Description: 'The subscriber explicitly marked this message as spam.',
}

/** A report has no class in its event. */
function kindOf(own: OwnBody, isSuppressed: boolean): PostmarkBounceKind {
  if (isUnsent(own)) return unsentPostmarkKind
  if (own.event === 'MessageBounced') return postmarkBounceKind(isSuppressed ? 'no_mailbox' : 'temporarily_unavailable')
  return postmarkBounceKind(textAt(own.payload, 'classification'))
}

function bounceOf({ event, payload, message, at }: OwnBody, kind: PostmarkBounceKind, isInactive: boolean): Fields {
  const report = event === 'MessageBounced' ? (payload.bounce as Fields) : {}
  return {
    ID: message.id ?? 0,
    ...kind,
    Details: textAt(payload, 'output').trim() || textAt(payload, 'details') || textAt(report, 'subject'),
    Email: textAt(message, 'to'),
    From: textAt(message, 'from'),
    BouncedAt: (timeAt(report, 'timestamp') ?? at).toISOString(),
    DumpAvailable: false,
    Inactive: isInactive,
    CanActivate: isInactive,
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
