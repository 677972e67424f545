import { expect, test } from 'vitest'
import { postmarkBody } from './postmark-format.ts'

const message = { token: 'token', to: 'ann@one.example', from: 'a@shop.test', subject: 'Hello', message_id: 'm@shop.test', timestamp: 1 }
const eventOf = (event: string, payload: object, isSuppressed: boolean) =>
  JSON.parse(
    postmarkBody(
      Buffer.from(JSON.stringify({ event, timestamp: 2, uuid: 'u', tenant_id: 't', payload: { message, ...payload } })),
      'id',
      isSuppressed,
    ).toString(),
  )

test.each([
  [{ classification: 'no_mailbox', output: '550 5.1.1 no' }, true, 'HardBounce'],
  [{ classification: 'connection_error', output: '' }, true, 'SoftBounce'],
  [{ classification: 'temporarily_unavailable', output: '451 later' }, false, 'SoftBounce'],
  [{ classification: 'spam_block', output: '550 spam' }, false, 'SpamNotification'],
  [{ classification: 'policy_violation', output: '550 policy' }, false, 'Blocked'],
  [{ classification: 'unclassified', output: '550 no' }, false, 'HardBounce'],
  [{ classification: 'unclassified', output: '', details: 'cancelled by the operator' }, false, 'Unknown'],
])('a failure with %j, suppressed: %s, is of the type %s, and inactive only if it suppressed', (payload, isSuppressed, Type) => {
  expect(eventOf('MessageDeliveryFailed', payload, isSuppressed)).toMatchObject({
    RecordType: 'Bounce',
    Type,
    Inactive: isSuppressed,
    CanActivate: isSuppressed,
  })
})

test('a report is a hard bounce if it suppressed the recipient, and a complaint always makes inactive', () => {
  const report = { original_message: message, bounce: { subject: 'Undelivered' } }
  expect(eventOf('MessageBounced', report, true)).toMatchObject({ Type: 'HardBounce', Inactive: true })
  expect(eventOf('MessageBounced', report, false)).toMatchObject({ Type: 'SoftBounce', Inactive: false })
  expect(eventOf('ComplaintReceived', {}, false)).toMatchObject({ RecordType: 'SpamComplaint', Inactive: true })
})
