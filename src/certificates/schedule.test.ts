import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { challengeFor, laterAsAsked, orderRetryMs, orderWithinMs, renewalMs } from './schedule.ts'

const hourMs = 3_600_000
const dayMs = 24 * hourMs
const fraction = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })

describe('after a failed order', () => {
  test('the waits grow from two minutes to a day', () => {
    expect([1, 2, 3, 4, 5, 6, 7, 8, 9, 100].map((failures) => orderRetryMs(failures, 0) / 60_000)).toEqual([
      2, 10, 30, 60, 120, 360, 720, 1440, 1440, 1440,
    ])
  })

  test('no hour has more than four failed orders of a name, with any jitter', () => {
    fc.assert(
      fc.property(fc.array(fraction, { minLength: 20, maxLength: 20 }), (randoms) => {
        let atMs = 0
        const orders = [0, ...randoms.map((random, index) => (atMs += orderRetryMs(index + 1, random)))]
        for (const fromMs of orders) expect(orders.filter((one) => one >= fromMs && one < fromMs + hourMs).length).toBeLessThanOrEqual(4)
      }),
    )
  })

  test('the next order of a name begins after the end of the one before', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 1000 }), fraction, (failures, random) => orderRetryMs(failures, random) > orderWithinMs),
    )
  })

  test("the CA's wish for a longer wait counts, up to a week", () => {
    expect(laterAsAsked(1000, 0)).toBe(1000)
    expect(laterAsAsked(1000, hourMs)).toBe(hourMs)
    expect(laterAsAsked(1000, 100 * dayMs)).toBe(7 * dayMs)
  })
})

test('a certificate is renewed at two thirds of its lifetime, give or take 2%', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 4e12 }), fc.integer({ min: 15_000, max: 400 * dayMs }), fraction, (fromMs, lifeMs, random) => {
      const part = (renewalMs(fromMs, fromMs + lifeMs, random, fromMs) - fromMs) / lifeMs
      expect(part).toBeGreaterThan(0.646)
      expect(part).toBeLessThan(0.687)
    }),
  )
})

test('a certificate is not due again at once on a machine whose clock is ahead', () => {
  expect(renewalMs(0, 90 * dayMs, 0.5, 80 * dayMs)).toBe(80 * dayMs + hourMs)
  expect(renewalMs(0, 20_000, 0.5, 30_000)).toBe(40_000)
})

describe('the challenge of an order', () => {
  const both = ['http-01', 'tls-alpn-01'] as const

  test('is HTTP-01 at first, and alternates after failures', () => {
    expect([0, 1, 2, 3].map((failures) => challengeFor(both, null, failures))).toEqual(['http-01', 'tls-alpn-01', 'http-01', 'tls-alpn-01'])
  })

  test('begins with the one that succeeded last', () => {
    expect([0, 1].map((failures) => challengeFor(both, 'tls-alpn-01', failures))).toEqual(['tls-alpn-01', 'http-01'])
  })

  test('is one that this instance can answer', () => {
    expect([0, 1, 2].map((failures) => challengeFor(['http-01'], 'tls-alpn-01', failures))).toEqual(['http-01', 'http-01', 'http-01'])
  })
})
