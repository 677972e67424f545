import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { blanked, blankedNames, blankValues, cutMark, holdBody, keptOf, maxOctets } from './redact.ts'

const kept = (text: string, isBroken = false) => keptOf(holdBody(text), { isBroken }).toString()
const names = [...blankedNames]

/** The scanner's expected result, computed by parsing. */
function expected(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(expected)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, one]) => [
      name,
      blankedNames.has(name) && (name !== 'data' || typeof one === 'string') ? blanked : expected(one),
    ]),
  )
}

const name = fc.oneof(fc.constantFrom(...names), fc.string({ unit: 'grapheme', maxLength: 6 }))
const { tree } = fc.letrec((tie) => ({
  tree: fc.oneof({ depthSize: 'small' }, tie('leaf'), tie('list'), tie('record')),
  leaf: fc.oneof(fc.string({ unit: 'grapheme' }), fc.constantFrom('\\', '"', '\\"key":"a"', '{"key":', 1, -2.5e3, true, null)),
  list: fc.array(tie('tree'), { maxLength: 4 }),
  record: fc.dictionary(name, tie('tree'), { maxKeys: 5 }),
}))
const layout = fc.constantFrom(0, 1, 2, '\t')

describe('what is kept of a body', () => {
  test('is the same JSON with the values of secret names replaced, whatever their form and depth', () => {
    fc.assert(
      fc.property(tree, layout, (value, space) => {
        expect(JSON.parse(kept(JSON.stringify(value, null, space)))).toEqual(expected(value))
      }),
      { numRuns: 500 },
    )
  })

  test('knows a name in any spelling of JSON', () => {
    expect(kept(String.raw`{"\u006bey":"a","s\u0065cret" : [1,{"a":"]"}], "a\/b":1,"content":null}`)).toBe(
      String.raw`{"\u006bey":"[redacted]","s\u0065cret" : "[redacted]", "a\/b":1,"content":"[redacted]"}`,
    )
    expect(kept('{"keys":"a","text":"key"}')).toBe('{"keys":"a","text":"key"}')
  })

  test('never holds a secret of a text broken anywhere, by anything', () => {
    const secret = 'SEKRETVALUE'
    const cut = fc.record({ at: fc.nat(400), remove: fc.nat(6), insert: fc.constantFrom('', '"', '{', ',', '\\', "'", '\n', ']') })
    const pair = fc.tuple(fc.constantFrom(...names), fc.constantFrom(secret, [secret], { a: secret }))
    fc.assert(
      fc.property(
        fc.array(
          fc.oneof(
            tree,
            pair.map((one) => Object.fromEntries([one])),
          ),
          { minLength: 1 },
        ),
        cut,
        (value, { at, remove, insert }) => {
          const whole = JSON.stringify({ first: value })
          const where = at % whole.length
          const removed = whole.slice(where, where + remove)
          // Skips texts in which a name or a secret itself is cut, because it is no longer recognisable.
          fc.pre(!/[a-zA-Z_]/.test(removed) && !/[a-zA-Z_]$/.test(whole.slice(0, where)))
          const broken = whole.slice(0, where) + insert + whole.slice(where + remove)
          expect(kept(broken, true)).not.toContain(secret)
        },
      ),
      { numRuns: 1000 },
    )
  })

  test('leaves out secrets in text that only resembles JSON', () => {
    for (const text of [
      '{"key":"SEKRET',
      '{"text":"abc, "key":"SEKRET"}',
      "{'secret': 'SEKRET'}",
      '{key: SEKRET}',
      'key=SEKRET',
      '{"rawMessage" "SEKRET"}',
      '{"key":{"a":1,"b":"SEKRET"',
      String.raw`{\"key\":\"SEKRET\"}`,
    ])
      expect(kept(text, true)).not.toContain('SEKRET')
  })

  test('ends with a mark where it was cut, between characters', () => {
    const text = 'ä'.repeat(maxOctets)
    const cut = kept(JSON.stringify({ text }))
    expect(cut.endsWith(`ä${cutMark}`)).toBe(true)
    expect(cut).not.toContain('\ufffd')
    expect(Buffer.byteLength(cut)).toBeGreaterThanOrEqual(maxOctets - 1 + cutMark.length)
    expect(Buffer.byteLength(cut)).toBeLessThanOrEqual(maxOctets + cutMark.length)
    const exact = JSON.stringify({ text: 'a'.repeat(maxOctets - 11) })
    expect(exact.length).toBe(maxOctets)
    expect(kept(exact)).toBe(exact)
    expect(kept(`${exact} `)).toBe(exact + cutMark)
  })

  test('of a large body is what comes after its attachments too', () => {
    const body = JSON.stringify({ attachments: [{ content: 'QUJD'.repeat(500_000), filename: 'a.txt' }], subject: 'after' })
    const held = holdBody(body)
    expect(held.size).toBe(body.length)
    expect(held.octets.length).toBeLessThan(1000)
    expect(JSON.parse(keptOf(held, { isBroken: false }).toString())).toEqual({
      attachments: [{ content: blanked, filename: 'a.txt' }],
      subject: 'after',
    })
  })

  test('takes no longer for a hostile body than for another', () => {
    for (const unit of ['\\', '"', '{"key":', '"key"', 'key ', '\\"', '[', "key:'"]) {
      const held = holdBody(unit.repeat(2_000_000 / unit.length))
      expect(keptOf(held, { isBroken: true }).length).toBeLessThan(maxOctets * 4)
    }
    expect(blankValues(Buffer.alloc(0), 10)).toEqual({ octets: Buffer.alloc(0), cut: false })
  })
})
