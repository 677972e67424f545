import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { openRateLimiter } from '#limits'
import { handMoved } from '../support/test-clock.ts'

const startMs = 1_700_000_000_250

describe('the request rate of a key', () => {
  test('no window of a second holds more than the limit, and only a full one refuses', () => {
    const pauses = fc.array(fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 300 }), fc.constantFrom(999, 1000, 1001)), {
      maxLength: 200,
    })
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 40 }), pauses, (limit, given) => {
        const clock = handMoved(startMs)
        const limiter = openRateLimiter(clock)
        const allowedAtMs: number[] = []
        for (const pauseMs of given) {
          clock.moveMs(pauseMs)
          const nowMs = clock.monotonicMs()
          const inWindow = allowedAtMs.filter((atMs) => atMs > nowMs - 1000).length
          const verdict = limiter('key', limit)
          // Exact in both directions: a refused request does not count.
          expect(verdict.allowed).toBe(inWindow < limit)
          expect(verdict.remaining).toBe(limit - inWindow - (verdict.allowed ? 1 : 0))
          if (verdict.allowed) allowedAtMs.push(nowMs)
        }
      }),
    )
  })

  test('a request of several units passes while there is room for one, counts with all of them, and always passes alone', () => {
    const step = fc.record({
      pauseMs: fc.constantFrom(0, 0, 1, 250, 600, 999, 1000),
      units: fc.integer({ min: 1, max: 64 }),
      afterwards: fc.boolean(),
    })
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 20 }), fc.array(step, { maxLength: 60 }), (limit, steps) => {
        const clock = handMoved(startMs)
        const limiter = openRateLimiter(clock)
        const counted: { atMs: number; units: number }[] = []
        for (const { pauseMs, units, afterwards } of steps) {
          clock.moveMs(pauseMs)
          const nowMs = clock.monotonicMs()
          const usedAt = (atMs: number) => counted.filter((one) => one.atMs > atMs - 1000).reduce((sum, one) => sum + one.units, 0)
          const before = usedAt(nowMs)
          const verdict = limiter('key', limit, { units, ...(afterwards ? { afterwards } : {}) })
          expect(verdict.allowed).toBe(before < limit || afterwards)
          if (verdict.allowed) counted.push({ atMs: nowMs, units: Math.min(units, limit) })
          expect(verdict.remaining).toBe(Math.max(0, limit - usedAt(nowMs)))
          // After the time named in a refusal, there is room.
          if (!verdict.allowed) expect(usedAt(nowMs + verdict.retryAfterSeconds * 1000)).toBeLessThan(limit)
        }
      }),
    )
  })

  test('requests that were refused are not counted', () => {
    const clock = handMoved(startMs)
    const limiter = openRateLimiter(clock)
    limiter('key', 1)
    for (let n = 0; n < 9; n++) {
      clock.moveMs(100)
      expect(limiter('key', 1).allowed).toBe(false)
    }
    clock.moveMs(100)
    expect(limiter('key', 1).allowed).toBe(true)
  })

  test('looking takes no place', () => {
    const limiter = openRateLimiter(handMoved(startMs))
    for (let n = 0; n < 5; n++) expect(limiter('key', 2, 'only look')).toMatchObject({ allowed: true, remaining: 2 })
    expect(limiter('key', 2)).toMatchObject({ allowed: true, remaining: 1 })
  })

  test('subjects do not share a window', () => {
    const limiter = openRateLimiter(handMoved(startMs))
    expect(limiter('one', 1).allowed).toBe(true)
    expect(limiter('one', 1).allowed).toBe(false)
    expect(limiter('other', 1).allowed).toBe(true)
  })

  test('a refusal names the second in which the oldest request leaves the window', () => {
    const clock = handMoved(startMs)
    const limiter = openRateLimiter(clock)
    limiter('key', 1)
    clock.moveMs(400)
    expect(limiter('key', 1)).toEqual({
      allowed: false,
      limit: 1,
      remaining: 0,
      resetSeconds: Math.ceil((startMs + 1000) / 1000),
      retryAfterSeconds: 1,
    })
  })

  test('a lowered limit is in force at once', () => {
    const limiter = openRateLimiter(handMoved(startMs))
    for (let n = 0; n < 5; n++) limiter('key', 10)
    expect(limiter('key', 3)).toMatchObject({ allowed: false, remaining: 0 })
  })

  test('no limit lets everything through', () => {
    const limiter = openRateLimiter(handMoved(startMs))
    for (let n = 0; n < 1000; n++) expect(limiter('key', null).allowed).toBe(true)
  })
})
