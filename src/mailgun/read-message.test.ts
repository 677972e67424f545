import { expect, test } from 'vitest'
import { readMailgunMessage } from './read-message.ts'
import { mailgunSubmissions } from './submissions.ts'

const message = { from: 'a@shop.test', to: 'ann@one.example', subject: 'Hello', text: 'Hi' }
const read = (changed: object) => readMailgunMessage({ ...message, ...changed }, 0)

test.each([
  ['<https://shop.test/u?ids=1,2>, <%tag_unsubscribe_email%>', '<https://shop.test/u?ids=1,2>'],
  [
    '<%unsubscribe_email%>,<mailto:a@shop.test?subject=a,b>, <https://shop.test/>',
    '<mailto:a@shop.test?subject=a,b>, <https://shop.test/>',
  ],
  ['%unsubscribe_email%, <https://shop.test/,', '<https://shop.test/,'],
])('the unsubscribe address is left out of %s, and commas of URLs stay', (given, kept) => {
  expect(read({ 'h:List-Unsubscribe': given }).headers).toEqual({ 'List-Unsubscribe': kept })
})

test('an inline file whose name cannot be a Content-ID gets another one, in the HTML too', () => {
  const fileOf = (filename: string) => ({ filename, contentType: 'image/png', content: 'aGk=' })
  const inline = ['logo.png', 'my logo.png', 'löwe & co.png', `John's <1>.png`].map(fileOf)
  const { html, attachments } = read({
    inline,
    html: `<img src="cid:logo.png"><img src='cid:my logo.png'><img src="CID:my%20logo.png"><img src="cid:l%C3%B6we &amp; co.png">
      <img src="cid:John's <1>.png"><p style="background: url(cid:my%20logo.png)"><img src=cid:my%20logo.png> cid:my logo.png "cid:%ff"`,
  })
  expect(attachments.map(({ filename, contentId }) => [filename, contentId])).toEqual([
    ['logo.png', 'logo.png'],
    ['my logo.png', 'inline-2@postrider'],
    ['löwe & co.png', 'inline-3@postrider'],
    [`John's <1>.png`, 'inline-4@postrider'],
  ])
  expect(
    html,
  ).toBe(`<img src="cid:logo.png"><img src='cid:inline-2@postrider'><img src="cid:inline-2@postrider"><img src="cid:inline-3@postrider">
      <img src="cid:inline-4@postrider"><p style="background: url(cid:inline-2@postrider)"><img src=cid:inline-2@postrider> cid:my logo.png "cid:%ff"`)
  expect(() => read({ inline, html: '<img src="cid:a">'.repeat(10_001) })).toThrow('more than 10000 references')
  expect(read({ inline: fileOf('logo.png'), html: '<img src="cid:logo.png">' }).html).toBe('<img src="cid:logo.png">')
})

test('lists of addresses are read up to one more than the most, and their length is limited', () => {
  expect(() => read({ to: Array.from({ length: 1000 }, () => 'a,'.repeat(400)) })).toThrow('more than 1000 addresses')
  expect(() => read({ cc: Array.from({ length: 1000 }, () => ','.repeat(1001)) })).toThrow('cc is longer than 1000000 characters')
  const quoted = read({ to: ['ann@one.example', 'bob@one.example, "Doe, Cy" <cy@one.example>'] })
  expect(quoted.to).toHaveLength(3)
})

test.each(['ann@bücher.example', 'Ann@BÜCHER.example', 'ann@xn--bcher-kva.example'])(
  'the variables of an address with an internationalised domain are found by %s',
  (key) => {
    for (const to of ['ann@bücher.example', 'ann@xn--bcher-kva.example']) {
      const message = read({ to, text: 'Hi %recipient.name%', 'recipient-variables': { [key]: { name: 'Ann' } } })
      expect([...mailgunSubmissions(message, undefined)].map(({ text }) => text)).toEqual(['Hi Ann'])
    }
  },
)
