import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { warmUpCeiling, warmUpDay } from './warm-up.ts'

const dayMs = 86_400_000

describe('always', () => {
  test('a later day allows more, until none is counted any more', () => {
    fc.assert(
      fc.property(fc.nat(40), (day) => {
        const [today, tomorrow] = [warmUpCeiling(day), warmUpCeiling(day + 1)]
        if (today === undefined) expect(tomorrow).toBeUndefined()
        else if (tomorrow !== undefined) expect(tomorrow).toBeGreaterThan(today)
        expect(today === undefined).toBe(day >= 30)
      }),
    )
  })

  test('no day allows more than twice as much as the day before', () => {
    for (let day = 1; day < 30; day++) expect(warmUpCeiling(day)).toBeLessThanOrEqual(2 * (warmUpCeiling(day - 1) ?? 0))
  })

  test('days are counted from the moment when the warm-up began', () => {
    fc.assert(
      fc.property(fc.nat(1e12), fc.nat(60), fc.nat(dayMs - 1), (fromMs, days, backoffMs) => {
        expect(warmUpDay(fromMs, fromMs + days * dayMs + backoffMs)).toBe(days)
      }),
    )
  })
})
