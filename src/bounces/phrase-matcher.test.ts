import fc from 'fast-check'
import { expect, test } from 'vitest'
import { says } from './phrase-matcher.ts'

test('a phrase is found exactly where a look for each one finds it', () => {
  const letters = fc.constantFrom('a', 'b', ' ', 'é', '退', '\ud83d')
  const phrase = fc.string({ unit: letters, minLength: 1, maxLength: 7 })
  fc.assert(
    fc.property(fc.array(phrase, { maxLength: 12 }), fc.string({ unit: letters, maxLength: 60 }), (phrases, words) => {
      expect(says(words, phrases)).toBe(phrases.some((one) => words.includes(one)))
    }),
    { numRuns: 2_000 },
  )
})
