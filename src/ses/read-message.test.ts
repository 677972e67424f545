import { expect, test } from 'vitest'
import { readSesEmail } from './read-message.ts'

const simple = { Subject: { Data: 's' }, Body: { Text: { Data: 'x' } } }
const read = (more: object, Simple: object = simple) => {
  const body = { FromEmailAddress: 'a@b.example', Destination: { ToAddresses: ['c@d.example'] }, Content: { Simple }, ...more }
  const found = readSesEmail(body, 'test')
  if (!('submission' in found)) throw new Error('not a simple email')
  return found.submission
}

test('an attachment may have line ends', () => {
  const Attachments = [{ FileName: 'a.txt', RawContent: 'aGVsbG8g\r\nd29ybGQh\n' }]
  expect(read({}, { ...simple, Attachments }).attachments?.[0]?.content).toBe('aGVsbG8gd29ybGQh')
})
