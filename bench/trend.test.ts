import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { driftOf, exponentOf, lineThrough } from './trend.ts'

describe('a line', () => {
  test('goes through points that lie on one', () => {
    const number = fc.integer({ min: -1000, max: 1000 })
    fc.assert(
      fc.property(number, number, fc.uniqueArray(number, { minLength: 2, maxLength: 20 }), (slope, intercept, xs) => {
        const line = lineThrough(xs.map((x) => ({ x, y: intercept + slope * x })))
        expect(line.slope).toBeCloseTo(slope, 6)
        expect(line.intercept).toBeCloseTo(intercept, 4)
        expect(line.slopeError).toBeCloseTo(0, 4)
      }),
    )
  })

  test('needs two different x', () => {
    expect(() => lineThrough([{ x: 1, y: 1 }])).toThrow('two points')
    expect(() =>
      lineThrough([
        { x: 1, y: 1 },
        { x: 1, y: 2 },
      ]),
    ).toThrow('two points')
  })
})

describe('a drift', () => {
  test('is the change along the line in percent of the level', () => {
    expect(driftOf([99, 100, 101])).toMatchObject({ level: 100, percent: 2 })
    expect(driftOf([50, 50, 50, 50])).toEqual({ level: 50, percent: 0, uncertainty: 0 })
    expect(driftOf([0, 0]).percent).toBe(0)
  })

  test('is uncertain where values scatter', () => {
    const { percent, uncertainty } = driftOf([100, 110, 90, 105, 95, 100])
    expect(Math.abs(percent)).toBeLessThan(uncertainty)
  })
})

test('an exponent describes how y grows with x', () => {
  const along = (exponent: number) => [1000, 100_000, 1_000_000].map((x) => ({ x, y: 3 * x ** exponent }))
  for (const exponent of [0, 0.05, 0.5, 1]) expect(exponentOf(along(exponent))).toBeCloseTo(exponent, 9)
})
