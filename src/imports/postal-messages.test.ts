import fc from 'fast-check'
import { expect, test } from 'vitest'
import { emailOf, wholeMessage } from './postal-messages.ts'

test("Postal's own signature is removed, and one of the sender is not", () => {
  const body = Buffer.from('Text')
  const own = 'DKIM-Signature: v=1; a=rsa-sha256;\r\n\tb=AAAA\r\n'
  const rest = 'X-Postal-MsgID: abc\r\nFrom: a@b.example'
  expect(wholeMessage({ headers: Buffer.from(own + rest), body })?.toString()).toBe(`${rest}\r\n\r\nText`)
  const senders = `${own}From: a@b.example\r\nX-Postal-MsgID: forged`
  expect(wholeMessage({ headers: Buffer.from(senders), body })?.toString()).toBe(`${senders}\r\n\r\nText`)
})

test('any row gives an email that can be stored, or none', () => {
  const value = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.integer(),
    fc.constant(null),
    fc.double(),
    fc.constantFrom('Sent', 'SoftFail', 'a@b.example', '550 5.1.1 No\0'),
  )
  const columns = [
    'id',
    'token',
    'rcpt_to',
    'mail_from',
    'subject',
    'message_id',
    'timestamp',
    'status',
    'tag',
    'output',
    'details',
    'time',
    'sent_with_ssl',
  ]
  const row = fc.dictionary(fc.constantFrom(...columns), value)
  fc.assert(
    fc.property(row, fc.array(row, { maxLength: 3 }), (one, deliveries) => {
      const email = emailOf(
        'u',
        { message: { status: 'Sent', timestamp: 1, rcpt_to: 'a@b.example', ...one }, deliveries },
        1_800_000_000_000,
      )
      if (typeof email === 'string') return
      expect(JSON.stringify(email)).not.toMatch(/\\u0000|\\ud[89a-f]/i)
      expect(email.id).toMatch(/^[0-9A-Za-z]{22}$/)
    }),
    { numRuns: 100 },
  )
})
