import fc from 'fast-check'
import { expect, test } from 'vitest'
import { jsonInSteps } from './json-in-steps.ts'

test('the octets are those of JSON.stringify', async () => {
  const { tree } = fc.letrec<{ tree: unknown }>((tie) => ({
    tree: fc.oneof(
      { maxDepth: 4 },
      fc.string({ unit: 'grapheme' }),
      fc.string({ unit: fc.constantFrom('\ud83d', '\ude00', 'a', '"') }),
      fc.double({ noNaN: true, noDefaultInfinity: true }),
      fc.constantFrom(null, true, false),
      fc.array(fc.oneof(tie('tree'), fc.constant(undefined))),
      fc.dictionary(fc.string(), fc.oneof(tie('tree'), fc.constant(undefined))),
    ),
  }))
  await fc.assert(
    fc.asyncProperty(tree, async (value) => {
      expect((await jsonInSteps(value)).toString()).toBe(Buffer.from(JSON.stringify(value)).toString())
    }),
  )
})

test.each(['a', '"', 'é', '😀', 'x😀', '\n'])('also where a text of %j is encoded in several steps', async (unit) => {
  const value = { texts: [unit.repeat(1_600_000), 'b'], more: null }
  expect((await jsonInSteps(value)).equals(Buffer.from(JSON.stringify(value)))).toBe(true)
})
