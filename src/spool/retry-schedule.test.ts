import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { retryDelayMs } from './retry-schedule.ts'

const minuteMs = 60_000
const hourMs = 60 * minuteMs
const schedule = { baseMs: 5 * minuteMs, maxMs: 6 * hourMs, maxAttempts: 30 }
const random = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })

describe('the wait before the next try', () => {
  test('grows by 1.3 from 6.5 minutes', () => {
    expect([1, 2, 3].map((attempts) => retryDelayMs(attempts, schedule, 0.5))).toEqual([390_000, 507_000, 659_100])
  })

  test('lies within a tenth of 1.3^n × 5 minutes, and of 6 hours from there on', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 100 }), random, (attempts, at) => {
        const exactMs = Math.min(1.3 ** attempts * 5 * minuteMs, 6 * hourMs)
        const delayMs = retryDelayMs(attempts, schedule, at)
        expect(delayMs).toBeGreaterThanOrEqual(Math.floor(exactMs * 0.9))
        expect(delayMs).toBeLessThanOrEqual(Math.ceil(exactMs * 1.1))
        expect(Number.isInteger(delayMs)).toBe(true)
      }),
    )
  })

  test('uses the whole width of the jitter', () => {
    expect(retryDelayMs(1, schedule, 0)).toBe(351_000)
    expect(retryDelayMs(1, schedule, 0.999_999)).toBe(429_000)
  })

  test('giving up after 30 attempts takes between 3.5 and 5 days', () => {
    fc.assert(
      fc.property(fc.array(random, { minLength: 29, maxLength: 29 }), (fractions) => {
        const totalMs = fractions.reduce((sum, at, index) => sum + retryDelayMs(index + 1, schedule, at), 0)
        expect(totalMs / (24 * hourMs)).toBeGreaterThan(3.5)
        expect(totalMs / (24 * hourMs)).toBeLessThan(5)
      }),
    )
  })
})
