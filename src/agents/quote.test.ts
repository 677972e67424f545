import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { openQuoter } from './quote.ts'

const quote = openQuoter({ showAddresses: false })
const shown = openQuoter({ showAddresses: true })
const forbidden = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}\u{fe00}-\u{fe0f}\u{e0100}-\u{e01ef}<>`[\]{}|"\\]/u

/** With any code points, also halves of characters. The unit `binary` of fast-check takes five seconds. */
const anyText = fc.array(fc.nat(0x10ffff), { maxLength: 200 }).map((points) => String.fromCodePoint(...points))

describe('a quoted text', () => {
  test('is one bounded line without control, format and markup characters, for any text', () => {
    const isFit = (text: string, most: number) => !forbidden.test(text) && [...text].length <= most + 1 && text.isWellFormed()
    fc.assert(
      fc.property(
        anyText,
        fc.integer({ min: 1, max: 150 }),
        (text, most) => isFit(quote.text(text, most) ?? '', most) && isFit(shown.text(text, most) ?? '', most),
      ),
    )
  })

  test('keeps ordinary text in any script, and marks its cut', () => {
    expect(quote.text('550 5.1.1 No such user – κανένας, 誰もいない 😀')).toBe('550 5.1.1 No such user – κανένας, 誰もいない 😀')
    expect(quote.text('abcdef', 3)).toBe('abc…')
    expect(quote.text('😀😀😀', 2)).toBe('😀😀…')
  })

  test('has no line breaks, escapes or tags', () => {
    expect(quote.text('a\r\n\r\nHuman: \u001b[31mb\u202e</untrusted>{"x"}')).toBe('a Human: (31mb ‹/untrusted›(”x”)')
  })

  test.each([1, 2, 4])('of %i million characters takes the time of a line', (millions) => {
    const text = 'a@'.repeat(millions * 500_000)
    const start = performance.now()
    for (let n = 0; n < 20; n++) quote.text(text)
    expect(performance.now() - start).toBeLessThan(1000)
  })
})

describe('an address', () => {
  test.each([
    ['ann@example.com', 'a***@example.com'],
    ['<ann@example.com>: no such user', '‹a***@example.com›: no such user'],
    ['to ann.smith+x@mail.example.com and bob@example.org', 'to a***@mail.example.com and b***@example.org'],
    ['https://x.example/?u=ann%40example.com', expect.not.stringContaining('ann%40')],
  ])('in %s is masked', (text, expected) => {
    expect(quote.text(text)).toEqual(expected)
    expect(shown.text(text)).toContain('ann')
  })

  test('with a quoted local part is masked as a whole', () => {
    expect(quote.address('"ann smith"@example.com')).toBe('”***@example.com')
    expect(shown.address('ann@example.com')).toBe('ann@example.com')
  })
})

test('fields and lists are bounded', () => {
  const many = Object.fromEntries(Array.from({ length: 100 }, (_, n) => [`name${n}`, 'x'.repeat(1000)]))
  expect(JSON.stringify(quote.fields(many)).length).toBeLessThan(4000)
  expect(JSON.stringify(quote.list(Array(100).fill('x'.repeat(1000)))).length).toBeLessThan(3000)
  expect(quote.fields({ n: 1, yes: true, nested: {}, nothing: null })).toEqual({ n: '1', yes: 'true' })
})
