/** Builds webhook request bodies (contract 13.9), and for `test` sample bodies of a fictitious email. */

import type { ReceivedMail } from '#received-mail'
import type { WebhookEvent } from './manage-webhooks.ts'
import { messageOf, payloadOf } from './payload.ts'

export interface WebhookBody {
  event: string
  /** Seconds since the epoch, when the event was queued. */
  timestamp: number
  tenantId: string
  payload: Record<string, unknown>
}

/** As in the event stream: the contract's names, in its order. */
export const webhookBody = ({ event, timestamp, uuid, tenantId, payload }: WebhookBody & { uuid: string }) => ({
  event,
  timestamp,
  uuid,
  tenant_id: tenantId,
  payload,
})

/** The bytes that are signed and sent, for the uuid of an event and a webhook. */
export type BodyFor = (uuid: string) => Buffer

/** Everything but the uuid is serialised once for all webhooks. `isTest` marks a sample in the platform view. */
export function bodyFor({ event, timestamp, tenantId, payload }: WebhookBody, isTest = false): BodyFor {
  const head = JSON.stringify({ event, timestamp }).slice(0, -1)
  const tail = JSON.stringify({ tenant_id: tenantId, payload, ...(isTest ? { _test: true } : {}) }).slice(1)
  return (uuid) => Buffer.from(`${head},"uuid":${JSON.stringify(uuid)},${tail}`)
}

export interface SampleFacts {
  nowMs: number
  emailId: string
  uuid: string
  tenant: { id: string; name: string }
  organisationSlug: string
}

const recipient = 'ann@example.org'
const sender = 'shop@mail.example.com'

export function samplePayload(event: WebhookEvent, facts: SampleFacts): Record<string, unknown> {
  const { nowMs, emailId } = facts
  const at = new Date(nowMs)
  const message = messageOf(
    emailId,
    {
      number: 9301,
      messageId: `<${emailId}@mail.example.com>`,
      recipient,
      sender,
      subject: 'Your order',
      acceptedAt: new Date(nowMs - 2000),
      tag: 'order',
      metadata: { order_id: '4711' },
    },
    at,
  )
  const received = { message: sampleReceived(emailId, facts), publicUrl: '' }
  return payloadOf(event, { id: 9302, at, data: sampleData(event, facts) }, message, received)
}

const sampleReceived = (emailId: string, { nowMs, tenant }: SampleFacts): ReceivedMail => ({
  tenantId: tenant.id,
  id: emailId,
  sender: recipient,
  recipients: [{ address: 'orders@mail.example.com', routeId: 'route_Jk3vQ9xTwB5mZ0aLr7Yd' }],
  client: '203.0.113.9',
  sizeOctets: 4_711,
  facts: {
    from: recipient,
    fromName: 'Ann',
    to: 'orders@mail.example.com',
    cc: '',
    replyTo: '',
    subject: 'Re: Your order',
    messageId: '4bXq2p1M@mx.example.org',
    date: 'Sat, 21 Nov 2026 08:00:00 +0000',
    headers: [{ name: 'Subject', value: 'Re: Your order' }],
    attachments: [{ filename: 'photo.jpg', contentType: 'image/jpeg', sizeOctets: 3_500 }],
    attachmentCount: 1,
    hops: 1,
    autoSubmitted: '',
    truncated: false,
    authentication: {
      spf: { result: 'pass', domain: 'example.org' },
      dkim: [{ result: 'pass', domain: 'example.org', selector: 's1' }],
      dmarc: { result: 'pass', domain: 'example.org', policy: 'reject' },
    },
  },
  text: 'It arrived, thank you.',
  html: null,
  isCut: false,
  replyToEmail: emailId,
  receivedAt: new Date(nowMs),
  forwarded: [],
})

const attempt = (details: string, output: string) => ({ details, output, secure: true, seconds: 0.418 })
const failure = (classification: string, classificationCode: number, enhanced: string) => ({
  classification,
  classificationCode,
  enhanced,
  remoteHost: 'mx.example.org',
})
const visit = { ipAddress: '203.0.113.45', userAgent: 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0' }

const finding = {
  kind: 'block_rate_up',
  severity: 'problem',
  domain: 'mail.example.com',
  source: null,
  provider: 'gmail',
  blocklist: null,
  before: 0.01,
  now: 0.12,
  text: "mail.example.com at gmail: 12% of today's attempts are blocked, 1% yesterday",
}

/** The event data that the log would hold. */
function sampleData(event: WebhookEvent, { nowMs, emailId, uuid, tenant, organisationSlug }: SampleFacts): Record<string, unknown> {
  switch (event) {
    case 'MessageSent':
      return attempt(`Message for ${recipient} accepted by 203.0.113.9:25 (mx.example.org)`, '250 2.0.0 Ok: queued as 4bXq2p1M')
    case 'MessageDelayed':
      return {
        ...attempt(
          `451 temporarily unavailable: Delivery to ${recipient} failed at 203.0.113.9:25 (mx.example.org)`,
          '451 4.7.1 Greylisted',
        ),
        ...failure('temporarily_unavailable', 42, '4.7.1'),
      }
    case 'MessageDeliveryFailed':
      return {
        ...attempt(`550 invalid recipient: Delivery to ${recipient} failed at 203.0.113.9:25 (mx.example.org)`, '550 5.1.1 no such user'),
        ...failure('invalid_recipient', 10, '5.1.1'),
      }
    case 'MessageHeld':
      return { ...attempt(`${recipient} is on the suppression list`, ''), secure: false, seconds: 0 }
    case 'MessageBounced':
      return {
        bounce: {
          token: `${emailId.slice(0, -1)}0`,
          messageId: '<bounce-4bXq2p1M@mx.example.org>',
          from: 'mailer-daemon@mx.example.org',
          subject: 'Undelivered Mail Returned to Sender',
        },
      }
    case 'MessageLoaded':
      return visit
    case 'MessageLinkClicked':
      return { url: 'https://www.example.com/orders/4711', token: 'Jk3vQ9xT', ...visit }
    case 'ComplaintReceived':
      return { matchedBy: 'return path', dkim: 'pass' }
    case 'RecipientUnsubscribed':
      return {}
    case 'SuppressionAdded':
    case 'SuppressionRemoved':
      return { address: recipient, reason: 'bounce', source: 'automatic' }
    case 'MessageReceived':
      return { received: emailId }
    case 'ReputationWarning':
      return { ...finding, day: new Date(nowMs).toISOString().slice(0, 10) }
    case 'DomainDNSError':
      return {
        domain: 'mail.example.com',
        uuid,
        dns_checked_at: nowMs / 1000,
        spf_status: 'OK',
        spf_error: null,
        dkim_status: 'Missing',
        dkim_error: 'No TXT record at pr-4f8k2m._domainkey.mail.example.com',
        return_path_status: 'OK',
        return_path_error: null,
        server: { uuid: tenant.id, name: tenant.name, permalink: tenant.id, organization: organisationSlug },
      }
  }
}
