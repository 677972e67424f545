/**
 * Replies of real and hostile peers.
 */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { openReplyReader } from './reply-parser.ts'
import { defaultLimits, type Reply } from './types.ts'

function readAll(packets: Buffer[], limits = defaultLimits) {
  const replies: Reply[] = []
  const reader = openReplyReader(limits, (reply) => replies.push(reply) > 0)
  for (const packet of packets) {
    const complaint = reader.push(packet)
    if (complaint !== undefined) return { replies, complaint }
  }
  return { replies, complaint: undefined }
}

const read = (text: string, limits = defaultLimits) => readAll([Buffer.from(text, 'latin1')], limits)

function split(octets: Buffer, cuts: number[]): Buffer[] {
  const places = [...new Set([0, ...cuts.map((cut) => cut % (octets.length + 1)), octets.length])].sort((a, b) => a - b)
  return places.slice(1).map((place, index) => octets.subarray(places[index], place))
}

const small = { ...defaultLimits, replyLines: 5, replyLineOctets: 40, replyOctets: 100 }
const hostile = fc.array(
  fc.constantFrom('250', '250-', '550 ', '5.1.1 ', 'no', '\r\n', '\r\n', '\n', '\r', '\0', 'é', 'x'.repeat(30), ' '),
  { maxLength: 60 },
)

describe('replies', () => {
  test('any cut into packets gives the same replies and the same complaint', () => {
    fc.assert(
      fc.property(hostile, fc.array(fc.nat(400), { maxLength: 40 }), (parts, cuts) => {
        const octets = Buffer.from(parts.join(''))
        expect(readAll(split(octets, cuts), small)).toEqual(readAll([octets], small))
      }),
      { numRuns: 2000 },
    )
  })

  test('one octet per packet reads like one packet', () => {
    const octets = Buffer.from('250-one\r\n250 2.0.0 two\r\n550 5.1.1 no such user\r\n')
    const single = Array.from(octets, (octet) => Buffer.from([octet]))
    expect(readAll(single)).toEqual(readAll([octets]))
    expect(readAll(single).replies).toEqual([
      { code: 250, enhanced: null, text: '250-one\n250 2.0.0 two' },
      { code: 550, enhanced: '5.1.1', text: '550 5.1.1 no such user' },
    ])
  })

  test.each([
    ['250\r\n', { code: 250, enhanced: null, text: '250' }],
    ['250 ok\n', { code: 250, enhanced: null, text: '250 ok' }],
    ['550 2.0.0 odd\r\n', { code: 550, enhanced: '2.0.0', text: '550 2.0.0 odd' }],
    ['550 5.1.1\r\n', { code: 550, enhanced: '5.1.1', text: '550 5.1.1' }],
    ['550 5.1.1x\r\n', { code: 550, enhanced: null, text: '550 5.1.1x' }],
    ['550-5.7.1 one\r\n550 5.7.1 two\r\n', { code: 550, enhanced: '5.7.1', text: '550-5.7.1 one\n550 5.7.1 two' }],
  ])('%j is understood', (text, reply) => {
    expect(read(text)).toEqual({ replies: [reply], complaint: undefined })
  })

  test.each([
    'HTTP/1.1 400 Bad Request\r\n',
    'SSH-2.0-x\r\n',
    '\r\n',
    '25\r\n',
    '250x\r\n',
    '999 what\r\n',
    '150 x\r\n',
    '250-a\r\n550 b\r\n',
  ])('%j is no reply', (text) => {
    const { replies, complaint } = read(text)
    expect(replies).toEqual([])
    expect(complaint).toEqual(expect.any(String))
  })

  test('octets that are not printable are escaped, and those that are no UTF-8 are replaced', () => {
    const { replies } = read('550 a\0b\x1b[31m \xff \xc3\xa9 \u0085\r\n')
    expect(replies[0]?.text).toBe('550 a\\x00b\\x1b[31m \ufffd é \ufffd')
    expect(readAll([Buffer.from('550 \u202eabc\r\n')]).replies[0]?.text).toBe('550 \\u202eabc')
  })

  test('a line, a reply and a number of lines beyond the limits are refused, also before they end', () => {
    expect(read(`250 ${'x'.repeat(2044)}\n`).replies).toHaveLength(1)
    expect(read(`250 ${'x'.repeat(2045)}`).complaint).toBe('the reply is too long')
    expect(read('250-x\r\n'.repeat(99) + '250 x\r\n').replies).toHaveLength(1)
    expect(read('250-x\r\n'.repeat(100) + '250 x\r\n').complaint).toBe('the reply is too long')
    expect(read(`250-${'x'.repeat(2000)}\r\n`.repeat(40)).complaint).toBe('the reply is too long')
  })

  test('octets behind a reply that ends the reading are thrown away', () => {
    const replies: Reply[] = []
    const reader = openReplyReader(defaultLimits, (reply) => {
      replies.push(reply)
      return false
    })
    expect(reader.push(Buffer.from('220 go\r\n250 injected\r\ngarbage\r\n'))).toBeUndefined()
    expect(replies.map((reply) => reply.code)).toEqual([220])
  })
})
