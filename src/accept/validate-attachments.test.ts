import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { base64Octets } from './validate-attachments.ts'

const grammar = /^[A-Za-z0-9+/]*={0,2}$/

function octetsByGrammar(text: string): number | undefined {
  if (!grammar.test(text)) return undefined
  const digits = text.replace(/=+$/, '').length
  if (digits % 4 === 1 || (text.length !== digits && text.length % 4 !== 0)) return undefined
  return Math.floor((digits * 3) / 4)
}

describe('base64', () => {
  test('is read by the grammar of RFC 4648 with optional padding, beside any other text', () => {
    const piece = fc.oneof(
      { weight: 6, arbitrary: fc.base64String({ maxLength: 12 }) },
      fc.stringMatching(/^[A-Za-z0-9+/]{0,9}={0,3}$/),
      fc.constantFrom('-', '_', '=', ' ', '\n', '\r', '\t', '\0', 'é', '\u0141', '\ud83d', '\ud83d\ude00', '\u2003', '\ufeff', '%', 'A'),
    )
    fc.assert(
      fc.property(
        fc.array(piece, { maxLength: 4 }).map((pieces) => pieces.join('')),
        (text) => {
          expect(base64Octets(text)).toBe(octetsByGrammar(text))
        },
      ),
      { numRuns: 3000 },
    )
  })

  test.each(['', 'QQ', 'QQ==', 'QQ=', 'Q', 'QUI', 'QUI=', 'QR==', 'QUJD', 'QUJD=', 'QQ==QQ==', 'QUJ-', 'QUJ_', ' QUJD'])(
    '%j is judged as the grammar does',
    (text) => {
      expect(base64Octets(text)).toBe(octetsByGrammar(text))
    },
  )

  test.each(['-', '_', ' ', '=', '\u0141'])('14 MB with one %j near its end is not base64', (odd) => {
    const text = `${'QUJD'.repeat(4_600_000)}QU${odd}DQUJD`
    expect(base64Octets(text)).toBe(undefined)
  })
})
