import { expect, test } from 'vitest'
import { readSendGridMail } from './read-mail.ts'

const mail = {
  from: { email: 'a@shop.test' },
  personalizations: [{ to: [{ email: 'ann@one.example' }] }],
  subject: 'Hello',
  content: [{ type: 'text/plain', value: 'Hi' }],
}
const filed = (type: unknown) =>
  readSendGridMail({ ...mail, attachments: [{ content: 'aGk=', filename: 'a.jpg', type }] }).attachments[0]?.contentType

test('a type that is not one of MIME, such as jpg, is that of the file name', () => {
  expect(['jpg', '', null, 'pdf'].map(filed)).toEqual(Array.from({ length: 4 }, () => 'image/jpeg'))
  expect(filed('image/pjpeg')).toBe('image/pjpeg')
})

test('options that are empty have no effect', () => {
  const empty = { template_id: '', asm: {}, dynamic_template_data: {}, batch_id: '', ip_pool_name: '' }
  const [personalization] = mail.personalizations
  expect(readSendGridMail({ ...mail, ...empty, personalizations: [{ ...personalization, ...empty }] })).toEqual(readSendGridMail(mail))
  for (const one of [{ template_id: 'd-1' }, { asm: { group_id: 1 } }, { dynamic_template_data: { a: 'b' } }, { send_at: 1 }])
    expect(() => readSendGridMail({ ...mail, ...one })).toThrow(`is not served`)
})

test.each(['text/plain', 'text/html'])("SendGrid's unsubscribe tags in %s are refused", (type) => {
  const contentOf = (value: string) => readSendGridMail({ ...mail, content: [{ type, value }] })
  for (const tag of ['<%asm_group_unsubscribe_raw_url%>', '<%asm_preferences_raw_url%>', '<%asm_global_unsubscribe_raw_url%>'])
    expect(() => contentOf(`<a href="${tag}">Leave</a>`)).toThrow(`has ${tag}, which is not served`)
  expect(() => contentOf('<%asm%> <%= asm_a %>')).not.toThrow()
})
