import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { sanitiseJson } from './storable-text.ts'

describe('JSON that PostgreSQL takes', () => {
  test.each([
    ['NUL', 'a\0b', 'a\ufffdb'],
    ['the first half of a pair', 'a\ud83d', 'a\ufffd'],
    ['the second half of a pair', '\ude00a', '\ufffda'],
    ['a whole pair', '\u{1f600}', '\u{1f600}'],
    ['what looks like an escape', '\\u0000 \\\\ud83d \\', '\\u0000 \\\\ud83d \\'],
    ['a backslash before NUL', '\\\0\\\\\0', '\\\ufffd\\\\\ufffd'],
    ['other controls', '\u0001\n\u001b', '\u0001\n\u001b'],
  ])('has %s as it can be stored', (_, text, stored) => {
    expect(JSON.parse(sanitiseJson({ [text]: [text] }))).toEqual({ [stored]: [stored] })
  })

  test('stays the same, except for NUL and halves of pairs', () => {
    const odd = fc.string({ unit: fc.constantFrom('\\', 'u', '0000', 'd83d', '\0', '\ud83d', '\ude00', '"', 'x') })
    fc.assert(
      fc.property(odd, (text) => {
        expect(JSON.parse(sanitiseJson(text))).toBe(text.toWellFormed().replaceAll('\0', '\ufffd'))
      }),
    )
  })
})
