import fc from 'fast-check'
import { expect, test } from 'vitest'
import { sesBody } from './ses-format.ts'

const bodyOf = (event: string, payload: unknown) =>
  Buffer.from(JSON.stringify({ event, timestamp: 1.5, uuid: 'u', tenant_id: 't', payload }))
const message = {
  token: 'token',
  to: 'ann@one.example',
  from: 'a@shop.test',
  subject: 'Hello',
  message_id: 'm@shop.test',
  timestamp: 1,
  tag: 'orders',
}
const eventOf = (event: string, payload: object, isSuppressed = false) =>
  JSON.parse(sesBody(bodyOf(event, { message, metadata: { a: 'b' }, ...payload }), 'id', { isSuppressed }).toString()) as Record<
    string,
    object
  >

test('a body in the format stays as it is, for any payload', () => {
  fc.assert(
    fc.property(fc.constantFrom('MessageSent', 'MessageBounced', 'MessageHeld', 'DomainDNSError'), fc.jsonValue(), (event, payload) => {
      const once = sesBody(bodyOf(event, payload), 'id')
      expect(sesBody(once, 'id').toString()).toBe(once.toString())
    }),
  )
})

test('an event names its message, and its configuration set and tags as SES does', () => {
  expect(eventOf('MessageSent', { output: '250 Ok\n' })).toEqual({
    eventType: 'Delivery',
    mail: {
      timestamp: '1970-01-01T00:00:01.000Z',
      source: 'a@shop.test',
      sendingAccountId: '000000000000',
      messageId: 'id',
      destination: ['ann@one.example'],
      headersTruncated: false,
      headers: [
        { name: 'From', value: 'a@shop.test' },
        { name: 'Subject', value: 'Hello' },
        { name: 'Message-ID', value: '<m@shop.test>' },
      ],
      commonHeaders: { from: ['a@shop.test'], to: ['ann@one.example'], messageId: '<m@shop.test>', subject: 'Hello' },
      tags: { a: ['b'], 'ses:configuration-set': ['orders'] },
    },
    delivery: { timestamp: '1970-01-01T00:00:01.500Z', processingTimeMillis: 500, recipients: ['ann@one.example'], smtpResponse: '250 Ok' },
  })
})

test.each([
  [
    'MessageDeliveryFailed',
    { classification: 'invalid_recipient', smtp_enhanced_code: '5.1.1', output: '550 5.1.1 no' },
    'Permanent',
    'NoEmail',
  ],
  ['MessageDeliveryFailed', { classification: 'mailbox_full' }, 'Transient', 'MailboxFull'],
  ['MessageDeliveryFailed', { classification: 'spam_block' }, 'Transient', 'ContentRejected'],
  ['MessageDeliveryFailed', { classification: 'unclassified', output: '550 no' }, 'Permanent', 'General'],
  ['MessageDeliveryFailed', { classification: 'unclassified', output: '', details: 'cancelled by the operator' }, 'Transient', 'General'],
  ['MessageHeld', { details: 'ann@one.example is on the suppression list' }, 'Permanent', 'OnAccountSuppressionList'],
])('%s with %j is a bounce of the kind %s, %s', (event, payload, bounceType, bounceSubType) => {
  expect(eventOf(event, payload)).toMatchObject({
    eventType: 'Bounce',
    bounce: { bounceType, bounceSubType, feedbackId: 'u', bouncedRecipients: [{ emailAddress: 'ann@one.example', action: 'failed' }] },
  })
})

test('mail that is held for another reason, and events without an email, keep their own form', () => {
  for (const body of [
    bodyOf('MessageHeld', { message, details: 'the tenant is paused' }),
    bodyOf('MessageHeld', { message, details: 'the tenant is paused: its suppression list is large' }),
    bodyOf('DomainDNSError', {}),
  ])
    expect(sesBody(body, 'id')).toBe(body)
  const listed = bodyOf('MessageHeld', { message, details: 'ann@one.example is on the suppression list' })
  expect(sesBody(listed, 'id', { holdReason: 'tenant' })).toBe(listed)
  expect(JSON.parse(sesBody(listed, 'id', { holdReason: 'suppressed' }).toString())).toMatchObject({ eventType: 'Bounce' })
})

test('a report is a permanent bounce only if it suppressed the address', () => {
  const kindOf = (isSuppressed: boolean) => eventOf('MessageBounced', { bounce: { subject: 'Undelivered' } }, isSuppressed)
  expect(kindOf(true)).toMatchObject({ eventType: 'Bounce', bounce: { bounceType: 'Permanent', bounceSubType: 'General' } })
  expect(kindOf(false)).toMatchObject({
    eventType: 'Bounce',
    bounce: { bounceType: 'Transient', bouncedRecipients: [{ diagnosticCode: 'Undelivered' }] },
  })
})
