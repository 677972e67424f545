import { expect, test } from 'vitest'
import { mailgunBody } from './mailgun-format.ts'

const message = { to: 'ann@one.example', from: 'a@shop.test', subject: 'Hello', message_id: 'm@shop.test' }

function eventOf(event: string, payload: object, holdReason?: string, isSuppressed = false): Record<string, unknown> {
  const own = { event, timestamp: 1.5, uuid: 'u', tenant_id: 't', payload: { message, ...payload } }
  const body = mailgunBody(Buffer.from(JSON.stringify(own)), {
    secret: Buffer.alloc(32),
    nowMs: 0,
    isTest: false,
    holdReason,
    isSuppressed,
  })
  return (JSON.parse(body.toString()) as { 'event-data': Record<string, unknown> })['event-data']
}

test('mail that was cancelled or expired is not a bounce', () => {
  const failed = { details: 'ann@one.example was held for 7 days without release', output: '', classification: 'unclassified' }
  expect(eventOf('MessageDeliveryFailed', failed)).toMatchObject({ event: 'failed', severity: 'permanent', reason: 'generic' })
  expect(eventOf('MessageDeliveryFailed', { ...failed, classification: undefined })).toMatchObject({ reason: 'generic' })
  for (const changed of [{ output: '550 no' }, { classification: 'invalid_recipient' }])
    expect(eventOf('MessageDeliveryFailed', { ...failed, ...changed })).toMatchObject({ reason: 'bounce' })
})

test('mail that is held for another reason than a suppression failed for now', () => {
  const suppressed = { event: 'failed', severity: 'permanent', reason: 'suppress-bounce', 'delivery-status': { code: 605 } }
  const delayed = { event: 'failed', severity: 'temporary', reason: 'generic', 'log-level': 'warn', 'delivery-status': { code: 0 } }
  for (const reason of ['tenant', 'domain', 'restored'])
    expect(eventOf('MessageHeld', { details: 'the tenant is paused' }, reason)).toMatchObject(delayed)
  expect(eventOf('MessageHeld', { details: 'the tenant is paused' })).toMatchObject(delayed)
  expect(eventOf('MessageHeld', { details: '' }, 'suppressed')).toMatchObject(suppressed)
  expect(eventOf('MessageHeld', { details: 'ann@one.example is on the suppression list' })).toMatchObject(suppressed)
})

test('a report is a permanent failure only if it suppressed the address', () => {
  const kindOf = (isSuppressed: boolean) => eventOf('MessageBounced', { bounce: { subject: 'Undelivered' } }, undefined, isSuppressed)
  expect(kindOf(true)).toMatchObject({ event: 'failed', severity: 'permanent', reason: 'bounce', 'log-level': 'error' })
  expect(kindOf(false)).toMatchObject({ event: 'failed', severity: 'temporary', reason: 'bounce', 'log-level': 'warn' })
})
