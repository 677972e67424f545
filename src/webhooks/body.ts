/** What a webhook is sent (contract 13.9), and for `test`: bodies that look like real ones, of an email that never was. */
import type { WebhookEvent } from './records.ts'

export interface WebhookBody {
  event: string
  /** Seconds since the epoch, when the event was queued. */
  timestamp: number
  tenantId: string
  payload: Record<string, unknown>
}

/** The octets that are signed and sent, for the uuid of an event and a webhook. */
export type BodyFor = (uuid: string) => Buffer

/** Everything but the uuid is written once, however many webhooks are told. `isTest` marks a sample in the platform view. */
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

const metadata = { order_id: '4711' }
const recipient = 'ann@example.org'
const sender = 'shop@mail.example.com'

export function samplePayload(
  event: WebhookEvent,
  { nowMs, emailId, uuid, tenant, organisationSlug }: SampleFacts,
): Record<string, unknown> {
  const now = Math.floor(nowMs) / 1000
  const message = {
    id: 9301,
    token: emailId,
    direction: 'outgoing',
    message_id: `${emailId}@mail.example.com`,
    to: recipient,
    from: sender,
    subject: 'Your order',
    timestamp: now - 2,
    spam_status: 'NotChecked',
    tag: 'order',
    metadata,
  }
  const attempt = (status: string, details: string, output: string) => ({
    message,
    metadata,
    status,
    details,
    output,
    sent_with_ssl: true,
    timestamp: now,
    time: 0.418,
  })
  const failure = (classification: string, code: number, enhanced: string) => ({
    classification,
    classification_code: code,
    smtp_enhanced_code: enhanced,
    remote_host: 'mx.example.org',
  })
  const visit = { ip_address: '203.0.113.45', user_agent: 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0' }
  switch (event) {
    case 'MessageSent':
      return attempt('Sent', `Message for ${recipient} accepted by 203.0.113.9:25 (mx.example.org)`, '250 2.0.0 Ok: queued as 4bXq2p1M')
    case 'MessageDelayed':
      return {
        ...attempt(
          'SoftFail',
          `451 temporarily unavailable: Delivery to ${recipient} at 203.0.113.9:25 (mx.example.org) is tried again`,
          '451 4.7.1 Greylisted',
        ),
        ...failure('temporarily_unavailable', 42, '4.7.1'),
      }
    case 'MessageDeliveryFailed':
      return {
        ...attempt(
          'HardFail',
          `550 invalid recipient: Delivery to ${recipient} failed at 203.0.113.9:25 (mx.example.org)`,
          '550 5.1.1 no such user',
        ),
        ...failure('invalid_recipient', 10, '5.1.1'),
      }
    case 'MessageHeld':
      return { ...attempt('Held', 'Message held: the credential is on hold', ''), sent_with_ssl: false, time: 0 }
    case 'MessageBounced':
      return {
        original_message: message,
        bounce: {
          ...message,
          id: 9302,
          token: `${emailId.slice(0, -1)}0`,
          direction: 'incoming',
          message_id: 'bounce-4bXq2p1M@mx.example.org',
          to: sender,
          from: 'mailer-daemon@mx.example.org',
          subject: 'Undelivered Mail Returned to Sender',
          timestamp: now,
          tag: null,
          metadata: null,
        },
        metadata,
      }
    case 'MessageLoaded':
      return { message, metadata, ...visit }
    case 'MessageLinkClicked':
      return { message, metadata, url: 'https://www.example.com/orders/4711', token: 'Jk3vQ9xT', ...visit }
    case 'DomainDNSError':
      return {
        domain: 'mail.example.com',
        uuid,
        dns_checked_at: now,
        spf_status: 'OK',
        spf_error: null,
        dkim_status: 'Missing',
        dkim_error: 'There is no TXT record at pr-4f8k2m._domainkey.mail.example.com',
        mx_status: null,
        mx_error: null,
        return_path_status: 'OK',
        return_path_error: null,
        server: { uuid: tenant.id, name: tenant.name, permalink: tenant.id, organization: organisationSlug },
      }
  }
}
