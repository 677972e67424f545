/** The insights of an email: checks of a message against the rules of mailbox providers. */
import { describe, expect, test } from 'vitest'
import { type CheckedMessage, checkMessage } from '../../dashboard/src/parts/message-checks.ts'

const sound: CheckedMessage = {
  from: 'Shop <orders@mail.shop.example>',
  html: '<p>Thank you.</p>',
  text: 'Thank you.',
  headers: { 'List-Unsubscribe-Post': 'List-Unsubscribe=One-Click' },
  signedBy: ['shop.example'],
  links: ['https://mail.shop.example/orders/1', 'mailto:help@shop.example'],
  imagesWithoutAlt: 0,
}

const objections = (changes: Partial<CheckedMessage>) =>
  checkMessage({ ...sound, ...changes })
    .filter(({ state }) => state !== 'good')
    .map(({ state, text }) => `${state}: ${text}`)

describe('the checks', () => {
  test('have no objection to a sound message', () => {
    expect(objections({})).toEqual([])
  })

  test.each<[string, Partial<CheckedMessage>, RegExp]>([
    ['without a signature', { signedBy: [] }, /^problem: Not signed with DKIM/],
    ['signed for another domain', { signedBy: ['esp.example'] }, /^advice: Signed with DKIM only for esp\.example/],
    ['without a text part', { text: ' \n' }, /^problem: No text part/],
    ['that Gmail cuts off', { html: 'x'.repeat(103 * 1024) }, /^problem: The HTML has 103\.0 kB/],
    ['with a plain link', { links: ['http://mail.shop.example/'] }, /^advice: 1 link uses plain http/],
    ['with a link to an IP address', { links: ['https://192.0.2.1/'] }, /^problem: A link leads to an IP address/],
    [
      'with links to other domains',
      { links: ['https://t.example/a', 'https://t.example/b'] },
      /^advice: Links lead to other domains: t\.example\./,
    ],
    ['without one-click unsubscribe', { headers: {} }, /^advice: No one-click unsubscribe/],
    ['with images without alt text', { imagesWithoutAlt: 2 }, /^advice: 2 images have no alt text/],
    ['from an address that nobody reads', { from: 'no-reply@shop.example' }, /^advice: no-reply@shop\.example suggests/],
  ])('object to a message %s', (_, changes, expected) => {
    expect(objections(changes)).toEqual(expect.arrayContaining([expect.stringMatching(expected)]))
  })

  test('accept a no-reply sender with a Reply-To', () => {
    expect(objections({ from: 'no-reply@shop.example', headers: { ...sound.headers, 'Reply-To': 'help@shop.example' } })).toEqual([])
  })

  test('leave links and images out of a message without HTML', () => {
    expect(checkMessage({ ...sound, html: undefined, links: ['http://192.0.2.1/'], imagesWithoutAlt: 9 })).toHaveLength(4)
  })
})
