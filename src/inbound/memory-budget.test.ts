import { expect, test } from 'vitest'
import { openMemoryBudget } from './memory-budget.ts'

/** Opens messages of 10 octets that are not completed; returns how many got memory, and how many lost it again. */
function fill(budget: ReturnType<typeof openMemoryBudget>, addressOf: (nth: number) => string, count = 100) {
  const found = { got: 0, lost: 0 }
  for (let nth = 0; nth < count; nth++) if (budget.open(addressOf(nth), () => found.lost++).take(10)) found.got++
  return found
}

test('a network gets its share, an IPv6 /64 is one, and an IPv6 /48 has four shares', () => {
  const budget = openMemoryBudget(10_000, 50)
  expect(fill(budget, () => '192.0.2.1').got).toBe(5)
  expect(fill(budget, () => '192.0.2.2').got).toBe(5)
  expect(fill(budget, (nth) => `2001:db8:1:1::${nth + 1}`).got).toBe(5)
  expect(fill(budget, (nth) => `2001:db8:1:${nth + 2}::1`).got).toBe(15)
})

test('a network that holds less gets the memory of one that holds most, from its largest message', () => {
  const budget = openMemoryBudget(100, 100)
  const lost: string[] = []
  for (const [name, octets] of [
    ['a1', 20],
    ['a2', 40],
    ['b1', 40],
  ] as const)
    expect(budget.open(`192.0.2.${name === 'b1' ? 2 : 1}`, () => lost.push(name)).take(octets)).toBe(true)
  const small = budget.open('192.0.2.3', () => lost.push('c1'))
  expect(small.take(10)).toBe(true)
  expect(lost).toEqual(['a2'])
  // 30 are left.
  expect(small.take(40)).toBe(false)
  expect(small.take(30)).toBe(true)
  expect(lost).toEqual(['a2'])
})

test('many networks that fill all memory leave some for a small message', () => {
  const budget = openMemoryBudget(10_000, 1250)
  const strangers = fill(budget, (nth) => `198.51.100.${nth % 200}`, 1000)
  expect(strangers).toEqual({ got: 1000, lost: 0 })
  expect(budget.open('192.0.2.1', () => {}).take(20)).toBe(true)
  expect(strangers.lost).toBe(2)
})

test('a received message does not lose its memory, and returns it once', () => {
  const budget = openMemoryBudget(100)
  const received = budget.open('192.0.2.1', () => expect.unreachable())
  expect(received.take(100)).toBe(true)
  received.keep()
  const other = budget.open('192.0.2.2', () => {})
  expect(other.take(1)).toBe(false)
  received.release()
  received.release()
  expect(other.take(101)).toBe(false)
  expect(other.take(100)).toBe(true)
})
