import { expect, test } from 'vitest'
import { readResendEmail } from './read-email.ts'

const mail = { from: 'a@b.example', to: 'c@d.example', subject: 's', text: 'x' }

test('fields that mail libraries add to every message have no effect', () => {
  const ofTheGem = { Date: 'Mon, 23 Nov 2026 10:00:00 +0000', 'Message-ID': '<a@b>', 'Content-Transfer-Encoding': '7bit' }
  expect(readResendEmail({ ...mail, headers: { ...ofTheGem, 'X-Order': '7' } }, 'test').headers).toEqual({ 'X-Order': '7' })
})

test('an attachment may have line ends', () => {
  const attachments = [{ filename: 'a.txt', content: 'aGVsbG8g\r\nd29ybGQh\n' }]
  expect(readResendEmail({ ...mail, attachments }, 'test').attachments?.[0]?.content).toBe('aGVsbG8gd29ybGQh')
})
