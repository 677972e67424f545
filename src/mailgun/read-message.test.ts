import { expect, test } from 'vitest'
import { readMailgunMessage } from './read-message.ts'

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
