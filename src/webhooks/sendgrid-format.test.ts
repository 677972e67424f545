import { createPublicKey, verify } from 'node:crypto'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { sendgridBody } from './sendgrid-format.ts'
import { sendgridHeaders, sendgridPublicKey } from './sendgrid-signature.ts'

const bodyOf = (event: string, payload: unknown) =>
  Buffer.from(JSON.stringify({ event, timestamp: 1.5, uuid: 'u', tenant_id: 't', payload }))

test('a body in the format stays as it is, for any payload', () => {
  fc.assert(
    fc.property(fc.constantFrom('MessageSent', 'MessageBounced', 'DomainDNSError'), fc.jsonValue(), (event, payload) => {
      const once = sendgridBody(bodyOf(event, payload), 'id')
      expect(sendgridBody(once, 'id').toString()).toBe(once.toString())
    }),
  )
})

test("a caller's arguments do not replace the members of an event", () => {
  const metadata = { email: 'mine', event: 'open', sg_message_id: 'x', a: 'b', category_2: 'new', 'X-Message-Id': 'request' }
  const message = { token: 'token', to: 'ann@one.example', tag: 'order' }
  const [event] = JSON.parse(sendgridBody(bodyOf('MessageSent', { message, metadata }), 'message').toString()) as object[]
  expect(event).toEqual({
    a: 'b',
    email: 'ann@one.example',
    timestamp: 1,
    event: 'delivered',
    'smtp-id': '<>',
    sg_event_id: 'u',
    sg_message_id: 'request.token',
    category: ['order', 'new'],
    response: '',
  })
})

test('mail that was cancelled or expired is dropped, because no server refused it', () => {
  const failed = { message: { to: 'ann@one.example' }, details: 'cancelled by the operator', output: '', classification: 'unclassified' }
  const eventOf = (payload: object) => (JSON.parse(sendgridBody(bodyOf('MessageDeliveryFailed', payload), 'id').toString()) as object[])[0]
  expect(eventOf(failed)).toEqual(expect.objectContaining({ event: 'dropped', reason: 'cancelled by the operator' }))
  expect(eventOf(failed)).not.toHaveProperty('type')
  expect(eventOf({ ...failed, classification: undefined })).toMatchObject({ event: 'dropped' })
  for (const changed of [{ output: '550 no' }, { classification: 'invalid_recipient' }])
    expect(eventOf({ ...failed, ...changed })).toMatchObject({ event: 'bounce', type: 'bounce' })
})

test('mail that is held for another reason than a suppression is deferred', () => {
  const message = { to: 'ann@one.example' }
  const nameOf = (details: string, holdReason?: string) => {
    const [event] = JSON.parse(sendgridBody(bodyOf('MessageHeld', { message, details }), 'id', { holdReason }).toString()) as object[]
    return event
  }
  for (const reason of ['tenant', 'domain', 'restored'])
    expect(nameOf('the reason', reason)).toMatchObject({ event: 'deferred', response: 'the reason' })
  expect(nameOf('the reason', 'suppressed')).toMatchObject({ event: 'dropped', reason: 'the reason' })
  expect(nameOf('ann@one.example is on the suppression list')).toMatchObject({ event: 'dropped' })
  expect(nameOf('the tenant is paused: see the suppression list')).toMatchObject({ event: 'deferred' })
})

test('each secret has a key of its own, which signs the time and the body', () => {
  const shownKeys = new Set<string>()
  for (let nth = 0; nth < 20; nth++) {
    const secret = Buffer.alloc(32, nth)
    const shown = sendgridPublicKey(`whsec_${secret.toString('base64')}`)
    const key = createPublicKey({ key: Buffer.from(shown, 'base64'), format: 'der', type: 'spki' })
    const headers = sendgridHeaders({ uuid: 'u', event: 'e', attempt: 1, body: Buffer.from('[{}]'), nowMs: 5999 }, secret)
    const signature = Buffer.from(headers['X-Twilio-Email-Event-Webhook-Signature'] ?? '', 'base64')
    expect(headers['X-Twilio-Email-Event-Webhook-Timestamp']).toBe('5')
    expect(verify('sha256', Buffer.from('5[{}]'), key, signature)).toBe(true)
    expect(verify('sha256', Buffer.from('6[{}]'), key, signature)).toBe(false)
    shownKeys.add(shown)
  }
  expect(shownKeys.size).toBe(20)
})

test('a report that did not suppress the address is a block', () => {
  const body = bodyOf('MessageBounced', { message: { to: 'ann@one.example' }, bounce: { subject: 'Undelivered' } })
  for (const [isSuppressed, type] of [
    [true, 'bounce'],
    [false, 'blocked'],
  ] as const) {
    const [event] = JSON.parse(sendgridBody(body, 'id', { isSuppressed }).toString()) as object[]
    expect(event).toMatchObject({ event: 'bounce', reason: 'Undelivered', type })
  }
})
