import { expect, test } from 'vitest'
import { resendBody } from './resend-format.ts'

const message = { token: 'token', to: 'ann@one.example', from: 'a@shop.test', subject: 'Hello', message_id: 'm@shop.test', timestamp: 1 }
const eventOf = (event: string, payload: object, isSuppressed = false) =>
  JSON.parse(
    resendBody(Buffer.from(JSON.stringify({ event, timestamp: 2, uuid: 'u', tenant_id: 't', payload: { message, ...payload } })), 'id', {
      isSuppressed,
    }).toString(),
  )

test('mail that is held for another reason than a suppression is delayed', () => {
  const typeOf = (details: string, holdReason?: string) => {
    const own = {
      event: 'MessageHeld',
      timestamp: 1.5,
      uuid: 'u',
      tenant_id: 't',
      payload: { message: { to: 'ann@one.example' }, details },
    }
    return JSON.parse(resendBody(Buffer.from(JSON.stringify(own)), 'id', { holdReason }).toString()) as { type: string; data: object }
  }
  for (const reason of ['tenant', 'domain', 'restored']) {
    const { type, data } = typeOf('the tenant is paused', reason)
    expect([type, Object.keys(data)]).toEqual(['email.delivery_delayed', expect.not.arrayContaining(['suppressed'])])
  }
  expect(typeOf('the tenant is paused').type).toBe('email.delivery_delayed')
  expect(typeOf('', 'suppressed')).toMatchObject({ type: 'email.suppressed', data: { suppressed: {} } })
  expect(typeOf('ann@one.example is on the suppression list')).toMatchObject({ type: 'email.suppressed' })
})

test('a refused email has bounced, and an email that was not sent has failed', () => {
  expect(eventOf('MessageDeliveryFailed', { classification: 'unclassified', output: '550 no', details: 'd' })).toMatchObject({
    type: 'email.bounced',
    data: { email_id: 'id', bounce: { type: 'Permanent', message: '550 no' } },
  })
  const unsent = eventOf('MessageDeliveryFailed', {
    classification: 'unclassified',
    output: '',
    details: 'cancelled before its scheduled time',
  })
  expect(unsent).toMatchObject({
    type: 'email.failed',
    data: { email_id: 'id', failed: { reason: 'cancelled before its scheduled time' } },
  })
  expect(unsent.data).not.toHaveProperty('bounce')
})

test('a report is a permanent bounce only if it suppressed the address', () => {
  for (const [isSuppressed, type] of [
    [true, 'Permanent'],
    [false, 'Transient'],
  ] as const)
    expect(eventOf('MessageBounced', { bounce: { subject: 'Undelivered' } }, isSuppressed)).toMatchObject({
      type: 'email.bounced',
      data: { bounce: { message: 'Undelivered', type } },
    })
})
