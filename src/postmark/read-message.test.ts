import { expect, test } from 'vitest'
import { readPostmarkEmail } from './read-message.ts'

const mail = { From: 'a@b.example', To: 'c@d.example', TextBody: 'x' }
const headersOf = (Headers: object[]) => readPostmarkEmail({ ...mail, Headers }).headers
const attachmentOf = (more: object) =>
  readPostmarkEmail({ ...mail, Attachments: [{ Name: 'a.pdf', Content: 'aGk=', ContentType: 'application/pdf', ...more }] })
    .attachments?.[0]

test('fields that mail libraries add to every message have no effect', () => {
  const ofTheGem = [
    { Name: 'Message-ID', Value: '<65ba@host.mail>' },
    { Name: 'Mime-Version', Value: '1.0' },
    { Name: 'Content-Transfer-Encoding', Value: '7bit' },
  ]
  expect(headersOf([...ofTheGem, { Name: 'X-Order', Value: '7' }])).toEqual({ 'X-Order': '7' })
  expect(() => headersOf([...ofTheGem, { Name: 'X-PM-KeepID', Value: 'true' }])).toThrow('X-PM-KeepID')
})

test.each(['aGVsbG8g\nd29ybGQh\n', 'aGVsbG8g\r\nd29ybGQh\r\n', 'aGVsbG8gd29ybGQh'])('an attachment may have line ends: %j', (Content) => {
  expect(attachmentOf({ Content })?.content).toBe('aGVsbG8gd29ybGQh')
})

test.each([
  [{ ContentID: 'cid:a' }, 'a'],
  [{ ContentId: 'cid:a' }, 'a'],
  [{ ContentId: 'cid:a.pdf' }, 'a.pdf'],
  [{ ContentID: 'a' }, 'a'],
  [{ ContentId: 'a.pdf' }, null],
  [{ ContentID: 'a.pdf' }, 'a.pdf'],
  [{ ContentID: 'a.pdf', ContentId: 'a.pdf' }, 'a.pdf'],
  [{ ContentID: '', ContentId: 'a.pdf' }, null],
  [{ ContentId: null }, null],
  [{}, null],
])('an attachment with %j has the content id %j', (more, contentId) => {
  expect(attachmentOf(more)?.contentId).toBe(contentId)
})
