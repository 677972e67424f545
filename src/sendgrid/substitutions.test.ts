import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Substituter, WorkBudget } from './substitutions.ts'

const enough = () => new WorkBudget(1_000_000)

/** The longest name at each place, from left to right. */
function simplest(text: string, substitutions: Record<string, string>): string {
  const names = Object.keys(substitutions).sort((one, other) => other.length - one.length)
  let result = ''
  for (let at = 0; at < text.length; ) {
    const name = names.find((one) => text.startsWith(one, at))
    result += name === undefined ? text[at] : substitutions[name]
    at += name?.length ?? 1
  }
  return result
}

test('names are replaced once, from left to right, the longest first', () => {
  const letters = fc.array(fc.constantFrom('a', 'b', '{', '$&'), { maxLength: 12 }).map((list) => list.join(''))
  const name = letters.filter((text) => text !== '')
  fc.assert(
    fc.property(
      letters,
      fc.array(fc.dictionary(name, letters, { maxKeys: 4 }), { minLength: 1, maxLength: 3 }),
      (text, personalizations) => {
        const substituter = new Substituter(enough())
        for (const one of personalizations) expect(substituter.applied(text, one)).toBe(simplest(text, one))
      },
    ),
  )
})

test('names of objects in JavaScript are plain names', () => {
  const substitutions = Object.fromEntries([['__proto__', 'a']])
  expect(new Substituter(enough()).applied('__proto__ constructor', substitutions)).toBe('a constructor')
})

test('the budget counts the text that is searched and the text that is written', () => {
  const applied = (budget: number, text: string, value: string) => () =>
    new Substituter(new WorkBudget(budget)).applied(text, { ab: value })
  expect(applied(1000, 'ab', 'x'.repeat(700))()).toHaveLength(700)
  expect(applied(1000, 'ab', 'x'.repeat(1000))).toThrow('larger than')
  expect(applied(1000, 'x'.repeat(1001), '')).toThrow('larger than')
  expect(applied(1000, 'ab'.repeat(20), '')).toThrow('larger than')
})
