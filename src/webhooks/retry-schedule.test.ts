import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  afterAttempt,
  type Health,
  healthy,
  isAway,
  isToBeAlerted,
  maxRetryDelayMs,
  mayProbe,
  webhookRetryDelayMs,
} from './retry-schedule.ts'

const hourMs = 3_600_000
const random = fc.double({ min: 0, max: 0.999, noNaN: true })
/** Fails every `everyMs`, beginning at 0. */
function failing(times: number, everyMs: number): Health {
  let health = healthy
  for (let n = 0; n < times; n++) health = afterAttempt(health, false, n * everyMs, null)
  return health
}

describe('the schedule', () => {
  test('has ten attempts within three to four days', () => {
    fc.assert(
      fc.property(random, (at) => {
        const delays = Array.from({ length: 10 }, (_, index) => webhookRetryDelayMs(index + 1, at, null))
        expect(delays.slice(0, 9).every((delay) => delay !== undefined)).toBe(true)
        expect(delays[9]).toBeUndefined()
        const hours = delays.reduce<number>((sum, delay) => sum + (delay ?? 0), 0) / hourMs
        expect(hours).toBeGreaterThan(67)
        expect(hours).toBeLessThan(84)
      }),
    )
  })

  test('follows the request of the receiver, up to twice the step, and never shortens it', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 9 }), random, fc.nat(10 * 24 * hourMs), (attempt, at, askedMs) => {
        const usual = webhookRetryDelayMs(attempt, at, null) ?? 0
        const asked = webhookRetryDelayMs(attempt, at, askedMs) ?? 0
        expect(asked).toBeGreaterThanOrEqual(usual)
        expect(asked).toBeLessThanOrEqual(Math.max(usual, Math.min((usual / 0.9) * 2, 24 * hourMs)))
      }),
    )
  })

  test('never delays an attempt so long that it looks like the work of a fast clock', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 9 }), random, fc.nat(10 * 24 * hourMs), (attempt, at, askedMs) => {
        expect(webhookRetryDelayMs(attempt, at, askedMs)).toBeLessThan(maxRetryDelayMs)
      }),
    )
  })
})

describe('a receiver', () => {
  test('is away after eight failures in a row, and not after one success', () => {
    expect([7, 8].map((times) => isAway(failing(times, 1)))).toEqual([false, true])
    expect(isAway(afterAttempt(failing(20, 1), true, 20, null))).toBe(false)
  })

  test('that asks to be left alone is away at once', () => {
    expect(isAway(afterAttempt(healthy, false, 0, 60_000))).toBe(true)
    expect(afterAttempt(healthy, false, 0, 60_000).probeAt).toEqual(new Date(60_000))
  })

  test('that is away is tried at growing intervals, from five seconds to five minutes', () => {
    let health = failing(8, 1)
    let lastMs = 0
    for (let nowMs = 7; nowMs < 24 * hourMs; nowMs = health.probeAt?.getTime() ?? Number.NaN) {
      health = afterAttempt(health, false, nowMs, null)
      const intervalMs = (health.probeAt?.getTime() ?? 0) - nowMs
      expect(intervalMs).toBeGreaterThanOrEqual(Math.max(5000, lastMs))
      expect(intervalMs).toBeLessThanOrEqual(300_000)
      lastMs = intervalMs
    }
    expect(lastMs).toBe(300_000)
  })

  test('is reported once it has failed for a day, and once only', () => {
    const health = failing(3, 1)
    expect([24 * hourMs - 1, 24 * hourMs].map((nowMs) => isToBeAlerted(health, nowMs))).toEqual([false, true])
    expect(isToBeAlerted({ ...health, alertedAt: new Date(1) }, 48 * hourMs)).toBe(false)
  })
})

test('a probe that a clock set while it was a day ahead is made now, and any other at its time', () => {
  const away = failing(100, 60_000)
  const lastMs = 99 * 60_000
  const probeMs = away.probeAt?.getTime() ?? 0
  expect(mayProbe(away, lastMs)).toBe(false)
  expect(mayProbe(away, probeMs)).toBe(true)
  expect(mayProbe(away, lastMs - 24 * hourMs)).toBe(true)
})
