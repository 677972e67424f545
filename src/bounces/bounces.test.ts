/**
 * Known replies of known servers (test/corpus/replies/), and properties of every reply.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type ClassificationName, classification, classify, type GivenReply, suppresses } from './bounces.ts'
import { classifications } from './classifications.ts'
import { replyRules } from './reply-rules.ts'

interface ClassifiedReply extends GivenReply {
  provider: string
  source: string
  classification: ClassificationName
  fault: string
  permanent: boolean
}

const folder = join(process.cwd(), 'test/corpus/replies')
const corpus: ClassifiedReply[] = readdirSync(folder)
  .filter((file) => file.endsWith('.jsonl'))
  .flatMap((file) =>
    readFileSync(join(folder, file), 'utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line)),
  )
const meantBy = ({ classification: name, fault, permanent }: ClassifiedReply) => ({
  classification: name,
  classificationCode: classifications[name],
  fault,
  permanent,
})

/** A reply as the smtp module returns it. */
function replyOf(line: string): GivenReply {
  const [, code = '', enhanced = null] = /^(\d{3})[ -](?:(\d\.\d{1,3}\.\d{1,3})\s)?/.exec(line) ?? []
  return { code: Number(code), enhanced, text: line }
}

/** The replies of the corpus whose result `change` changes. */
const changedBy = (change: (reply: ClassifiedReply) => GivenReply) =>
  corpus
    .filter((one) => JSON.stringify(classify(change(one))) !== JSON.stringify(meantBy(one)))
    .map((one) => ({ ...change(one), ...classify(change(one)), instead: meantBy(one) }))

describe('known replies', () => {
  test('every one of them is understood', () => {
    expect(changedBy((one) => one)).toEqual([])
  })

  test('there are many, of many servers, each seen once and with a source', () => {
    expect(corpus.length).toBeGreaterThanOrEqual(1100)
    expect(new Set(corpus.map((one) => one.provider)).size).toBeGreaterThanOrEqual(70)
    expect(corpus.every((one) => one.source !== '' && one.provider !== '')).toBe(true)
    expect(new Set(corpus.map((one) => one.text)).size).toBe(corpus.length)
  })

  test('every classification and every fault that a reply can express occurs among them', () => {
    expect(new Set(corpus.map((one) => one.classification))).toEqual(new Set(Object.keys(classifications)))
    expect(new Set(corpus.map((one) => one.fault))).toEqual(new Set(['recipient', 'content', 'sender', 'reputation', 'server', 'ours']))
  })

  test('a recipient that suppresses is always at fault itself', () => {
    expect(corpus.filter((one) => suppresses(one.classification) && one.fault !== 'recipient')).toEqual([])
  })
})

describe('differences between two replies of a kind change nothing', () => {
  test('capitals', () => {
    expect(changedBy((one) => ({ ...one, text: one.text.toLowerCase() }))).toEqual([])
    expect(changedBy((one) => ({ ...one, text: one.text.toUpperCase().replaceAll('\u0130', 'I') }))).toEqual([])
  })

  test('the ends of lines', () => {
    const joined = (text: string) => text.replaceAll('\n', ' ')
    expect(changedBy((one) => ({ ...one, text: joined(one.text) }))).toEqual([])
    expect(changedBy((one) => ({ ...one, text: one.text.replaceAll('\n', '\r\n') }))).toEqual([])
  })

  test('addresses of people', () => {
    const other = (text: string) => text.replace(/[\w.+-]+@[\w.-]+\w/g, 'unknown-user.spam@blacklist.example')
    expect(changedBy((one) => ({ ...one, text: other(one.text) }))).toEqual([])
  })

  test('addresses of machines', () => {
    const other = (text: string) => text.replace(/\b\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}\b/g, '203.0.113.250')
    expect(changedBy((one) => ({ ...one, text: other(one.text) }))).toEqual([])
  })

  test('links, where they name no list of blocked senders and no code of a provider', () => {
    const other = (text: string) =>
      text.replace(/https?:\/\/(?:help|support|community|postmaster)\.(?!comcast|proofpoint|apple)[^\s>)]+/g, 'https://x.example/a?b=1')
    expect(changedBy((one) => ({ ...one, text: other(one.text) }))).toEqual([])
  })

  test('text behind a reply: a name of the server, an identifier', () => {
    const tail = ' [AM6PR01MB1234.eurprd01.prod.example.com] 3f1c9a-20020a05600c4f8a'
    expect(changedBy((one) => ({ ...one, text: one.text + tail }))).toEqual([])
  })

  test('codes that are only in the text', () => {
    expect(changedBy((one) => ({ ...one, code: null, enhanced: null }))).toEqual([])
    expect(changedBy((one) => ({ ...one, enhanced: null }))).toEqual([])
  })

  test('codes that are not in the text', () => {
    const bare = (text: string) => text.replace(/^\d{3}[ -](?:[245]\.\d{1,3}\.\d{1,3}\s?)?/gm, '')
    expect(changedBy((one) => (one.code === null ? one : { ...one, text: bare(one.text) }))).toEqual([])
  })
})

describe('the classification of a reply', () => {
  const nameOf = (line: string) => classify(replyOf(line)).classification

  test('only a mailbox that is not there or takes no mail suppresses its address', () => {
    const names = Object.keys(classifications) as ClassificationName[]
    expect(names.filter(suppresses)).toEqual(['invalid_recipient', 'no_mailbox', 'not_accepting_mail'])
    expect(classification('unclassified')).toBe(99)
  })

  test('a block suppresses no recipient, with any code', () => {
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

  test('words belong together within a sentence only', () => {
    expect(nameOf('550 5.7.1 Not for this user. The weather is unknown')).toBe('policy_violation')
  })

  test('an enhanced code in the text is found when the reply does not begin with one', () => {
    expect(nameOf('550 #5.1.1 x')).toBe('invalid_recipient')
    expect(nameOf('550 x (#5.2.2)')).toBe('mailbox_full')
    expect(nameOf('550 from 5.1.1.1 x')).toBe('unclassified')
    expect(classify({ code: 550, enhanced: '5.0.0', text: 'x 5.1.1 x' }).classification).toBe('invalid_recipient')
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

  test('the reply code decides whether a failure is permanent, not the text or the enhanced code', () => {
    expect(classify({ code: 450, enhanced: '5.1.1', text: '450 5.1.1 user unknown' }).permanent).toBe(false)
    expect(classify({ code: 550, enhanced: '4.2.0', text: '550 4.2.0 try again later' }).permanent).toBe(true)
    expect(classify({ code: 550, enhanced: null, text: 'greylisted' }).permanent).toBe(true)
  })

  test('without a reply code the enhanced code decides, then the meaning of the words', () => {
    expect(classify({ code: null, enhanced: '4.1.1', text: 'user unknown' }).permanent).toBe(false)
    expect(classify({ code: null, enhanced: '5.2.2', text: 'mailbox full' }).permanent).toBe(true)
    expect(classify({ code: null, enhanced: null, text: 'user unknown' }).permanent).toBe(true)
    expect(classify({ code: null, enhanced: null, text: 'mailbox full' }).permanent).toBe(false)
    expect(classify({ code: null, enhanced: null, text: 'hello' })).toMatchObject({ classification: 'unclassified', permanent: false })
  })
})

describe('the rules', () => {
  test('a mark is written as it is looked for: in lower case', () => {
    expect(replyRules.flatMap((rule) => rule.marks ?? []).filter((mark) => mark !== mark.toLowerCase())).toEqual([])
  })
})

describe('always', () => {
  test('any reply is classified, and text behind its first 2 KB changes nothing', () => {
    const reply = fc.record({
      code: fc.option(fc.integer({ min: 0, max: 999 })),
      enhanced: fc.option(fc.string()),
      text: fc.oneof(fc.string(), fc.string({ unit: 'binary' })),
    })
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
