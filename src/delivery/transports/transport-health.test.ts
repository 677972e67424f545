import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { decideUse, healthAfter, healthyTransport, maxDownMs, maxRefusals, minDownMs, type TransportHealth } from './transport-health.ts'

const step = fc.record({ passMs: fc.integer({ min: 0, max: 200_000 }), event: fc.constantFrom('use', 'accepted', 'refused', 'failed') })

describe('a transport', () => {
  test('is down after a failed connection, and after refusals in a row but not with a success between them', () => {
    expect(healthAfter(healthyTransport, 'failed', 0)).toEqual({ kind: 'down', untilMs: minDownMs, downForMs: minDownMs })
    let health: TransportHealth = healthyTransport
    for (let nth = 1; nth < maxRefusals; nth++) health = healthAfter(health, 'refused', 0)
    expect(health.kind).toBe('up')
    expect(healthAfter(health, 'refused', 0).kind).toBe('down')
    expect(healthAfter(healthAfter(health, 'accepted', 0), 'refused', 0)).toEqual({ kind: 'up', refusals: 1, sinceMs: 0 })
  })

  test('that is down takes nothing before its time, then one job, and all again after a success', () => {
    let health = healthAfter(healthyTransport, 'failed', 0)
    expect(decideUse(health, minDownMs - 1).isUsable).toBe(false)
    const probe = decideUse(health, minDownMs)
    expect(probe).toMatchObject({ isUsable: true, health: { kind: 'probing' } })
    health = probe.health
    expect(decideUse(health, minDownMs + 1).isUsable).toBe(false)
    expect(healthAfter(health, 'accepted', minDownMs + 2)).toEqual(healthyTransport)
    const again = healthAfter(health, 'failed', minDownMs + 2)
    expect(again).toEqual({ kind: 'down', untilMs: 3 * minDownMs + 2, downForMs: 2 * minDownMs })
  })

  test('is down after a few refusals too, if they last', () => {
    const refusedAt = (...timesMs: number[]) =>
      timesMs.reduce<TransportHealth>((health, ms) => healthAfter(health, 'refused', ms), healthyTransport).kind
    expect(refusedAt(5, 6, minDownMs + 4)).toBe('up')
    expect(refusedAt(5, minDownMs + 5)).toBe('up')
    expect(refusedAt(5, 6, minDownMs + 5)).toBe('down')
  })

  test('is not tried again by an email that failed before', () => {
    const down = healthAfter(healthyTransport, 'failed', 0)
    expect(decideUse(down, minDownMs, false)).toEqual({ isUsable: false, health: down })
    expect(decideUse(healthyTransport, 0, false).isUsable).toBe(true)
  })

  test('whose probe was lost is tried again', () => {
    const probing = decideUse(healthAfter(healthyTransport, 'failed', 0), minDownMs).health
    expect(decideUse(probing, minDownMs + 120_000).isUsable).toBe(true)
  })

  test('is never down for longer than the maximum, gets at most one job while it is not up, and a success always ends that', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        let health: TransportHealth = healthyTransport
        let nowMs = 0
        for (const { passMs, event } of steps) {
          nowMs += passMs
          if (event === 'use') {
            const decided = decideUse(health, nowMs)
            if (decided.isUsable && health.kind !== 'up') expect(decideUse(decided.health, nowMs).isUsable).toBe(false)
            health = decided.health
          } else health = healthAfter(health, event as 'accepted', nowMs)
          if (event === 'accepted') expect(health).toEqual(healthyTransport)
          if (health.kind !== 'up') expect(health.untilMs - nowMs).toBeLessThanOrEqual(maxDownMs)
        }
        expect(decideUse(health, nowMs + maxDownMs).isUsable).toBe(true)
      }),
    )
  })
})
