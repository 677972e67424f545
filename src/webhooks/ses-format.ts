/** Webhook requests with SES's events as their body, in the form of SNS's messages without their envelope, which only Amazon can sign. */
import type { WebhookEvent } from './manage-webhooks.ts'
import {
  isHeldBySuppression,
  isPassingBounce,
  isUnsent,
  membersOf,
  type OwnBody,
  ownBodyOf,
  textAt,
  timeAt,
  type VendorFacts,
} from './vendor-body.ts'

/** SES's type of each event that has one. */
const types: Readonly<Partial<Record<WebhookEvent, string>>> = {
  MessageSent: 'Delivery',
  MessageDelayed: 'DeliveryDelay',
  MessageDeliveryFailed: 'Bounce',
  MessageBounced: 'Bounce',
  MessageHeld: 'Bounce',
  MessageLoaded: 'Open',
  MessageLinkClicked: 'Click',
  ComplaintReceived: 'Complaint',
}

/** `messageId`: the id of the event's message. Events without a type of SES's, and bodies already in its form, stay as they are. */
export function sesBody(body: Buffer, messageId: string | undefined, facts: VendorFacts = {}): Buffer {
  const own = ownBodyOf(body)
  const type = own && typeOf(own, facts.holdReason)
  if (!own || type === undefined) return body
  return Buffer.from(JSON.stringify({ eventType: type, mail: mailOf(own, messageId), ...detailsOf(type, own, facts) }))
}

/** SES does not hold mail: mail of a paused tenant leaves later, and has its events then. */
const typeOf = (own: OwnBody, holdReason: string | undefined): string | undefined =>
  own.event === 'MessageHeld' && !isHeldBySuppression(own, holdReason) ? undefined : types[own.event as WebhookEvent]

function mailOf({ message, metadata, at }: OwnBody, messageId: string | undefined) {
  const [from, to, subject] = ['from', 'to', 'subject'].map((name) => textAt(message, name))
  const set = textAt(message, 'tag')
  const tags = Object.entries(metadata).map(([name, value]): [string, string[]] => [name, [value]])
  return {
    timestamp: (timeAt(message, 'timestamp') ?? at).toISOString(),
    source: from,
    sendingAccountId: '000000000000',
    messageId: messageId ?? textAt(message, 'token'),
    destination: [to],
    headersTruncated: false,
    headers: [
      { name: 'From', value: from },
      { name: 'Subject', value: subject },
      { name: 'Message-ID', value: `<${textAt(message, 'message_id')}>` },
    ],
    commonHeaders: { from: [from], to: [to], messageId: `<${textAt(message, 'message_id')}>`, subject },
    tags: { ...Object.fromEntries(tags), ...(set === '' ? {} : { 'ses:configuration-set': [set] }) },
  }
}

/** The members of one kind of event. */
function detailsOf(type: string, own: OwnBody, facts: VendorFacts): object {
  const { payload, message, at, uuid } = own
  const timestamp = at.toISOString()
  const emailAddress = textAt(message, 'to')
  const output = textAt(payload, 'output').trim()
  switch (type) {
    case 'Delivery':
      return { delivery: { timestamp, processingTimeMillis: millisOf(own), recipients: [emailAddress], smtpResponse: output } }
    case 'DeliveryDelay': {
      const delayed = { emailAddress, status: statusOf(own, '4.0.0'), diagnosticCode: diagnosisOf(own) }
      return { deliveryDelay: { timestamp, delayType: delayTypeOf(own), delayedRecipients: [delayed] } }
    }
    case 'Bounce':
      return { bounce: { feedbackId: uuid, timestamp, ...bounceOf(own, facts) } }
    case 'Complaint':
      return {
        complaint: {
          feedbackId: uuid,
          timestamp,
          complainedRecipients: [{ emailAddress }],
          complaintFeedbackType: 'abuse',
          arrivalDate: timestamp,
        },
      }
    case 'Open':
      return { open: { timestamp, ...visitOf(own) } }
    default:
      return { click: { timestamp, ...visitOf(own), link: textAt(payload, 'url'), linkTags: null } }
  }
}

const visitOf = ({ payload }: OwnBody) => ({ ipAddress: textAt(payload, 'ip_address'), userAgent: textAt(payload, 'user_agent') })

/** From acceptance to the end of the attempt. */
function millisOf({ message, at }: OwnBody): number {
  const accepted = timeAt(message, 'timestamp') ?? at
  return Math.max(0, at.getTime() - accepted.getTime())
}

const statusOf = ({ payload }: OwnBody, usual: string) => textAt(payload, 'smtp_enhanced_code') || usual

const diagnosisOf = ({ payload }: OwnBody) => {
  const output = textAt(payload, 'output').trim()
  return output === '' ? textAt(payload, 'details') : `smtp; ${output}`
}

/** SES's types of a delay by Postrider's classification. */
const delayTypes: Readonly<Record<string, string>> = {
  mailbox_full: 'MailboxFull',
  spam_block: 'SpamDetected',
  dns_error: 'RecipientServerError',
}
const delayTypeOf = ({ payload }: OwnBody) => delayTypes[textAt(payload, 'classification')] ?? 'TransientCommunicationFailure'

interface KindOfBounce {
  bounceType: 'Permanent' | 'Transient'
  bounceSubType: string
}
const permanent: KindOfBounce = { bounceType: 'Permanent', bounceSubType: 'General' }
const noEmail: KindOfBounce = { bounceType: 'Permanent', bounceSubType: 'NoEmail' }
const transient = (bounceSubType = 'General'): KindOfBounce => ({ bounceType: 'Transient', bounceSubType })
/** By Postrider's classification. Failures that do not concern the address are transient, because receivers suppress after permanent ones. */
const kindsOfBounce: Readonly<Record<string, KindOfBounce>> = {
  invalid_recipient: noEmail,
  no_mailbox: noEmail,
  mailbox_full: transient('MailboxFull'),
  message_too_large: transient('MessageTooLarge'),
  spam_block: transient('ContentRejected'),
  policy_violation: transient(),
  tls_required: transient(),
  connection_error: transient(),
  dns_error: transient(),
  temporarily_unavailable: transient(),
  protocol_error: transient(),
}

function bounceOf(own: OwnBody, facts: VendorFacts) {
  const { event, payload, message } = own
  const emailAddress = textAt(message, 'to')
  if (event === 'MessageHeld') {
    const diagnosticCode = textAt(payload, 'details')
    return {
      bounceType: 'Permanent',
      bounceSubType: 'OnAccountSuppressionList',
      bouncedRecipients: [{ emailAddress, action: 'failed', status: '5.1.1', diagnosticCode }],
    }
  }
  const isReport = event === 'MessageBounced'
  const isPassing = isUnsent(own) || isPassingBounce(own, facts)
  const kind = isPassing ? transient() : isReport ? permanent : (kindsOfBounce[textAt(payload, 'classification')] ?? permanent)
  const diagnosticCode = isReport ? textAt(membersOf(payload.bounce), 'subject') : diagnosisOf(own)
  return {
    ...kind,
    bouncedRecipients: [{ emailAddress, action: 'failed', status: statusOf(own, '5.0.0'), diagnosticCode }],
  }
}
