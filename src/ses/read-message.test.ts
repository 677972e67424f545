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

test('encoded words in names and in the subject are decoded', () => {
  const juergen = '=?UTF-8?B?SsO8cmdlbg==?='
  const juergensMail = read(
    {
      FromEmailAddress: `${juergen} <a@b.example>`,
      Destination: { ToAddresses: ['=?utf-8?q?M=C3=BCller=2C_=22J=22?= <c@d.example>', `"${juergen}" <e@f.example>`, 'Ann <g@h.example>'] },
      ReplyToAddresses: [`${juergen} <i@j.example>`],
    },
    { ...simple, Subject: { Data: `Re: ${juergen}` } },
  )
  expect(juergensMail).toMatchObject({
    from: '"Jürgen" <a@b.example>',
    to: ['"Müller, \\"J\\"" <c@d.example>', `"${juergen}" <e@f.example>`, 'Ann <g@h.example>'],
    subject: 'Re: Jürgen',
    vendor: { replyTo: ['"Jürgen" <i@j.example>'] },
  })
})
