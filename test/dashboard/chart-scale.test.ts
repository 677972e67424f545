/** The scale of a chart: it reaches the value, is not much higher, and has whole numbers for counts. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { topOf } from '../../dashboard/src/parts/chart-scale.ts'

test.each([
  [0, 2],
  [1, 2],
  [3, 4],
  [11, 20],
  [14, 20],
  [140, 150],
  [1400, 1500],
])('the top for %i emails is %i', (value, top) => {
  expect(topOf(value, true)).toBe(top)
})

test('a count has whole numbers at the top and in the middle, at most twice its value', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 2_000_000_000 }), (value) => {
      const top = topOf(value, true)
      expect(top).toBeGreaterThanOrEqual(value)
      expect(top).toBeLessThanOrEqual(Math.max(2, value * 2))
      expect(Number.isInteger(top / 2)).toBe(true)
    }),
  )
})

test('a rate may have a fraction', () => {
  expect(topOf(1.3, false)).toBe(1.5)
  expect(topOf(0.39, false)).toBeCloseTo(0.4)
})
