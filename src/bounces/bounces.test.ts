/** Known replies of known servers (test/corpus/replies.json), and what holds for any reply. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type ClassificationName, classification, classify, suppresses } from './bounces.ts'
import { classifications } from './classifications.ts'

interface Known {
  source: string
  reply: string
  classification: ClassificationName
  fault: string
}

const corpus: Known[] = JSON.parse(readFileSync(join(process.cwd(), 'test/corpus/replies.json'), 'utf8'))

/** A reply as the smtp room hands it over. */
function replyOf(line: string) {
  const [, code = '', enhanced = null] = /^(\d{3})[ -](?:(\d\.\d{1,3}\.\d{1,3})\s)?/.exec(line) ?? []
  return { code: Number(code), enhanced, text: line }
}

describe('known replies', () => {
  test.each(corpus.map((one) => [one.reply.slice(0, 90), one] as const))('%s', (_, { reply, classification: name, fault }) => {
    expect(classify(replyOf(reply))).toEqual({
      classification: name,
      classificationCode: classifications[name],
      fault,
      permanent: reply.startsWith('5'),
    })
  })

  test('the corpus covers many servers and names where each reply was seen', () => {
    expect(corpus.length).toBeGreaterThanOrEqual(60)
    expect(corpus.every((one) => one.source !== '')).toBe(true)
    expect(new Set(corpus.map((one) => one.reply)).size).toBe(corpus.length)
  })
})

describe('what a reply decides', () => {
  const nameOf = (line: string) => classify(replyOf(line)).classification

  test('only a mailbox that is not there or takes no mail suppresses its address', () => {
    const names = Object.keys(classifications) as ClassificationName[]
    expect(names.filter(suppresses)).toEqual(['invalid_recipient', 'no_mailbox', 'not_accepting_mail'])
    expect(classification('unclassified')).toBe(99)
  })

  test('a block suppresses nobody, whatever code comes with it', () => {
    expect(nameOf('550 5.1.1 user unknown, your host is listed at dnsbl.example')).toBe('spam_block')
    expect(nameOf('550 5.1.1 rate limit exceeded')).toBe('temporarily_unavailable')
    expect(nameOf('550 5.1.1 rejected because of our SPAM rules')).toBe('spam_block')
    expect(nameOf('550 5.1.1 Sender domain does not exist')).toBe('policy_violation')
  })

  test('the name of a filtering host is no block', () => {
    expect(nameOf('550 5.1.1 <ann@example.org> User unknown, said spamfilter.example.org')).toBe('invalid_recipient')
  })

  test('an address that a reply quotes is not read', () => {
    expect(nameOf('550 5.1.1 <dmarc@example.org> User unknown')).toBe('invalid_recipient')
    expect(nameOf('550 5.1.1 <no-such-user@spamhaus.example> x')).toBe('invalid_recipient')
    expect(nameOf('550 5.7.1 <user-unknown@example.org> x')).toBe('policy_violation')
  })

  test('a phrase is read over the end of a line, with or without codes before it', () => {
    expect(nameOf('550-5.7.1 Our system has detected that this message is likely\n550 5.7.1 unsolicited mail.')).toBe('spam_block')
    expect(nameOf('550-There is no such\n550 user')).toBe('invalid_recipient')
    expect(nameOf('550-There is no such\nuser')).toBe('invalid_recipient')
  })

  test('an enhanced code in the text is found when the reply does not begin with one', () => {
    expect(nameOf('550 #5.1.1 x')).toBe('invalid_recipient')
    expect(nameOf('550 x (#5.2.2)')).toBe('mailbox_full')
    expect(nameOf('550 from 5.1.1.1 x')).toBe('unclassified')
  })

  test('without a known text the enhanced code decides, then the reply code', () => {
    expect(nameOf('550 5.1.1 x')).toBe('invalid_recipient')
    expect(nameOf('550 5.1.0 x')).toBe('unclassified')
    expect(nameOf('550 5.1.10 x')).toBe('invalid_recipient')
    expect(nameOf('550 5.1.6 x')).toBe('no_mailbox')
    expect(nameOf('552 5.2.3 x')).toBe('message_too_large')
    expect(nameOf('550 5.7.30 x')).toBe('tls_required')
    expect(nameOf('550 5.7.301 x')).toBe('policy_violation')
    expect(nameOf('451 4.3.1 x')).toBe('temporarily_unavailable')
    expect(nameOf('501 5.5.4 x')).toBe('protocol_error')
    expect(nameOf('552 x')).toBe('mailbox_full')
    expect(nameOf('452 x')).toBe('temporarily_unavailable')
    expect(nameOf('550 go away')).toBe('unclassified')
    expect(nameOf('553 x')).toBe('unclassified')
  })

  test('the reply code says whether it is for ever, not the text or the enhanced code', () => {
    expect(classify({ code: 450, enhanced: '5.1.1', text: '450 5.1.1 user unknown' }).permanent).toBe(false)
    expect(classify({ code: 550, enhanced: '4.2.0', text: '550 4.2.0 try again later' }).permanent).toBe(true)
  })
})

describe('always', () => {
  test('any reply is classified, and what stands behind its first 2 KB changes nothing', () => {
    const reply = fc.record({ code: fc.integer({ min: 0, max: 999 }), enhanced: fc.option(fc.string()), text: fc.string() })
    fc.assert(
      fc.property(reply, (one) => {
        const known = classify(one)
        expect(classifications[known.classification]).toBe(known.classificationCode)
        const padded = one.text.padEnd(2048, ' ')
        expect(classify({ ...one, text: `${padded}user unknown` })).toEqual(classify({ ...one, text: padded }))
      }),
    )
  })
})
