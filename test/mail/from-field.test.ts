/**
 * The sender that Postrider reads equals the sender that other programs read: postal-mime, mailauth and nodemailer here, Python in
 * test/peers/.
 */
import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { buildMessage, parseSender, readFields, readRaw } from '#mail'
import { quickCpuUnits } from '../support/cpu-time.ts'
import { heldFrom } from './from-field.ts'
import { fromFields, isSame, readers } from './generate-from-fields.ts'

test('no From field that is accepted names another address to another reader', { timeout: 60_000 }, () => {
  const differing: string[] = []
  let accepted = 0
  for (const field of fromFields(1, 5000)) {
    const held = heldFrom(field)
    if (!held) continue
    accepted++
    for (const [reader, read] of Object.entries(readers))
      for (const other of read(held.sent))
        if (!isSame(other, held.address)) differing.push(`${reader} reads ${other} and we ${held.address} in ${JSON.stringify(field)}`)
  }
  expect(differing.slice(0, 40)).toEqual([])
  // A generator whose fields are all refused would not test the readers.
  expect(accepted).toBeGreaterThan(500)
})

test('a From field as ordinary programs write it is accepted, and every reader finds the address that Postrider finds', () => {
  const lines = readFileSync('test/corpus/from/fields.jsonl', 'utf8').trim().split('\n')
  expect(new Set(lines).size).toBeGreaterThanOrEqual(300)
  for (const line of lines) {
    const { field, address } = JSON.parse(line) as { field: string; address: string }
    const held = heldFrom(field)
    expect(held?.address, field).toBe(address)
    for (const [reader, read] of Object.entries(readers))
      for (const other of read(field)) expect(isSame(other, address), `${reader} reads ${other} in ${field}`).toBe(true)
  }
})

test.each([
  'hello@own.example (Shop)',
  '(from) hello@own.example',
  '"Quoted, Name" <hello@own.example>',
  '"ceo@bank.example" <hello@own.example>',
  '=?utf-8?B?SsO2cmc=?= <hello@own.example>',
  'hello(at work)@own.example',
  'J. R. Müller <hello@own.example>',
  'Shop (Berlin (Mitte)) <hello@own.example>',
  'hello@own.example <Hello@own.example>',
])('%s is from hello@own.example', (field) => {
  expect(heldFrom(field)?.address.toLowerCase()).toBe('hello@own.example')
})

describe('refused, because some reader would be shown another address, is', () => {
  test.each([
    'ceo@bank.example, x <hello@own.example>',
    'ceo@bank.example (x <hello@own.example>',
    'g: ceo@bank.example; <hello@own.example>',
    'ceo@bank.example; x <hello@own.example>',
    'ceo@bank.example,\r\n hello <hello@own.example>',
    '"ceo@bank.exam\r\n ple" <hello@own.example>',
    '"a\r\n b" "ceo@bank.example" <hello@own.example>',
    '(a\r\n b) "ceo@bank.example" <hello@own.example>',
    '"a\r\n <b" <hello@own.example>',
    'ceo@bank.example <hello@own.example>',
    '<ceo@bank.example> <hello@own.example>',
    '<@bank.example:hello@own.example>',
    'team: hello@own.example;',
    'hello@own.example, hello@own.example',
    '=?utf-8?q?=3Cceo=40bank.example=3E?= <hello@own.example>',
    '=?utf-8?q?ceo=40bank.example?= <hello@own.example>',
    '=?utf-8?q?ceo=40ba?= =?utf-8?q?nk.example?= <hello@own.example>',
    '=?utf-8?q?x <hello@own.example>',
    '=?utf-7?q?+ADw-x+AD4-?= <hello@own.example>',
    '=?utf-8?q?a=0D=0ASubject:_b?= <hello@own.example>',
    '"<ceo@bank.example>" <hello@own.example>',
    '"\\" <ceo@bank.example>, \\"" <hello@own.example>',
    '(ceo@bank.example) <hello@own.example>',
    'hello@own.example (a (b) c)',
    'hello@own.example(a\\)b)',
    '((((((((((deep)))))))))) <hello@own.example>',
    '"ceo@bank.example"@own.example',
    'hello @own.example',
    'hello@own\uff0eexample',
    'hello\u3000x@own.example',
    'hello@own.example\u2028',
    'Shop\u0085 <hello@own.example>',
    'Shop <hello@own.example> and more',
    '',
  ])('%j', (field) => {
    expect(heldFrom(field)).toBeUndefined()
  })
})

test('a From field that is no UTF-8 is refused, for its readers would have to guess', () => {
  expect(typeof readRaw(Buffer.from('From: J\xf6rg <hello@own.example>\r\n\r\n', 'latin1'))).toBe('string')
})

test('always: a message from an accepted `from` of the API shows its address to every reader', () => {
  const piece = fc.constantFrom(
    'Shop',
    ', ',
    ' ',
    '"',
    '@',
    '<',
    '>',
    'ceo@bank.example',
    'ü',
    '=?utf-8?q?x?=',
    '\\',
    '(',
    ')',
    ';',
    ':',
    '\u2028',
    '.',
    '日本',
  )
  const name = fc.oneof(
    fc.array(piece, { maxLength: 8 }).map((some) => some.join('')),
    fc.string({ unit: 'grapheme', maxLength: 40 }),
  )
  const form = fc.constantFrom(
    (text: string) => text,
    (text: string) => `"${text}"`,
    (text: string) => `"${text.replace(/["\\]/g, '\\$&')}"`,
  )
  let accepted = 0
  fc.assert(
    fc.property(name, form, (text, written) => {
      const from = parseSender(`${written(text)} <hello@own.example>`)
      if (!from) return
      accepted++
      const { octets } = buildMessage({ ...parts, from })
      const value = readFields(octets)?.find((field) => field.name === 'From')?.value ?? ''
      const field = Buffer.from(value, 'latin1').toString()
      expect(heldFrom(field)?.address).toBe('hello@own.example')
      for (const [reader, read] of Object.entries(readers))
        for (const other of read(field)) expect(isSame(other, 'hello@own.example'), `${reader} reads ${other} in ${field}`).toBe(true)
    }),
    { numRuns: 3000 },
  )
  expect(accepted).toBeGreaterThan(300)
})

const parts = {
  to: ['ann@example.org'],
  cc: [],
  subject: 'Hello',
  dateMs: 0,
  messageId: '<a@own.example>',
  headers: [],
  attachments: [],
  boundarySeed: 'seed',
}

test('the worst ten thousand characters of From and of Reply-To are read in milliseconds', () => {
  const units = [
    '(',
    ')',
    '"',
    '\\',
    '<',
    '>',
    '@',
    ',',
    ';',
    ':',
    '.',
    ' ',
    'a',
    'ü',
    '=?',
    '?=',
    '=?utf-8?q?a?= ',
    '"a" ',
    '(a) ',
    'a@',
    '@b.c ',
    '((a)',
    '"\\"',
    '\r\n ',
    '=?utf-8?B?',
    '=?a?q?',
    'a@b.c,',
    '(a)a@b.c,',
    'a@b.c(=?utf-8?q?a?=),',
    '"a@b.c" ',
  ]
  /** Some 50 ms. */
  const maxUnits = 250
  const cpuUnits = quickCpuUnits(maxUnits, 5)
  for (const unit of units) {
    const value = unit.repeat(Math.floor(9900 / unit.length))
    for (const field of [value, `${value}<hello@own.example>`, `"${value}" <hello@own.example>`, `hello@own.example (${value})`]) {
      const message = Buffer.from(`From: ${field}\r\nReply-To: ${field}\r\n\r\n`)
      const replyTo = Buffer.from(`From: hello@own.example\r\nReply-To: ${field}\r\n\r\n`)
      const readBoth = () => [message, replyTo].map((one) => readRaw(one))
      expect(cpuUnits(readBoth), JSON.stringify(unit)).toBeLessThan(maxUnits)
    }
  }
})
