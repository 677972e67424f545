import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type Content, encodeContent } from './content.ts'
import { jsonOctets } from './stored-content.ts'

const withRaw = (raw: string): Content => ({
  message: { kind: 'raw', raw },
  messageId: 'id@house.test',
  acceptedAtMs: 1,
  returnPathDomain: null,
  signing: null,
})

/** As the database returns it. */
const headOf = (stored: Buffer) => stored.subarray(0, 18)

test('the first octets of a stored content state its size before compression', () => {
  const text = fc.oneof(
    fc.string(),
    fc.tuple(fc.string({ minLength: 1 }), fc.integer({ min: 1, max: 30_000 })).map(([unit, times]) => unit.repeat(times)),
  )
  fc.assert(
    fc.property(text, (raw) => {
      const content = withRaw(raw)
      const stored = encodeContent(content)
      expect(jsonOctets(headOf(stored), stored.length)).toBe(Buffer.byteLength(JSON.stringify(content)))
    }),
  )
})

test.each([0, 200, 2048, 65_500, 66_000, 1_000_000, 20_000_000])('they state the size of %i characters, in each of its forms', (length) => {
  const content = withRaw('a'.repeat(length))
  const stored = encodeContent(content)
  expect(jsonOctets(headOf(stored), stored.length)).toBe(Buffer.byteLength(JSON.stringify(content)))
})

test('a frame that does not state its size counts as the largest', () => {
  const head = Buffer.concat([Buffer.from('28b52ffd0058', 'hex'), Buffer.alloc(12)])
  expect(jsonOctets(head, 5000)).toBe(Number.POSITIVE_INFINITY)
})
