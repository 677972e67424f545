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
        for (const one of personalizations) expect(substituter.of(one)(text)).toBe(simplest(text, one))
      },
    ),
  )
})

test('names of objects in JavaScript are plain names', () => {
  const substitutions = Object.fromEntries([['__proto__', 'a']])
  expect(new Substituter(enough()).of(substitutions)('__proto__ constructor')).toBe('a constructor')
})

test('the budget counts the text that is searched and the text that is written', () => {
  const applied = (budget: number, text: string, value: string) => () => new Substituter(new WorkBudget(budget)).of({ ab: value })(text)
  expect(applied(1000, 'ab', 'x'.repeat(700))()).toHaveLength(700)
  expect(applied(1000, 'ab', 'x'.repeat(1000))).toThrow('larger than')
  expect(applied(1000, 'x'.repeat(1001), '')).toThrow('larger than')
  expect(applied(1000, 'ab'.repeat(20), '')).toThrow('larger than')
})

test('the names of a personalization are found and counted once, however many texts have them', () => {
  let reads = 0
  const counted = (prefix: string) =>
    new Proxy<Record<string, string>>(Object.fromEntries(Array.from({ length: 30 }, (_, n) => [`${prefix}${n}`.padEnd(300, '-'), ''])), {
      ownKeys(target) {
        reads++
        return Reflect.ownKeys(target)
      },
    })
  const applied = new Substituter(enough()).of(counted('~'))
  const readsOfNames = reads
  for (let nth = 0; nth < 50; nth++) expect(applied(`r${nth}@shop.example`)).toBe(`r${nth}@shop.example`)
  expect(reads).toBe(readsOfNames)
  const substituter = new Substituter(new WorkBudget(50_000))
  const personalizations = () => {
    for (const prefix of ['~a', '~b', '~c', '~d', '~e', '~f']) substituter.of(counted(prefix))
  }
  expect(personalizations).toThrow('larger than')
})
