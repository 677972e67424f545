import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { openWaiting } from './fair-report-queue.ts'

interface Report {
  network: string
  octets: number
}

describe('whose turn it is', () => {
  test('networks take turns, so one that sends much waits behind its own', () => {
    const waiting = openWaiting<string>(100)
    for (let n = 0; n < 5; n++) waiting.add('stranger', 10, `stranger ${n}`)
    waiting.add('provider', 1_000, 'provider 0')
    waiting.add('provider', 10, 'provider 1')
    const turns = Array.from({ length: 8 }, () => waiting.next())
    expect(turns).toEqual(['stranger 0', 'provider 1', 'stranger 1', 'provider 0', 'stranger 2', 'stranger 3', 'stranger 4', undefined])
  })

  test('when all places are taken, the network with the most loses its largest, and others find a place', () => {
    const waiting = openWaiting<string>(3)
    expect(waiting.add('stranger', 30, 'large')).toBeUndefined()
    expect(waiting.add('stranger', 10, 'small')).toBeUndefined()
    expect(waiting.add('stranger', 20, 'middle')).toBeUndefined()
    expect(waiting.add('provider', 500, 'report')).toBe('large')
    expect(waiting.add('stranger', 40, 'larger')).toBe('larger')
  })

  test('always: no report is lost or served twice, there are never more than the places, and each network is served within one round', () => {
    const report = fc.record<Report>({ network: fc.constantFrom('a', 'b', 'c', 'd'), octets: fc.nat(100) })
    const steps = fc.array(fc.oneof({ weight: 3, arbitrary: report }, fc.constant('next' as const), fc.constant('leave' as const)))
    fc.assert(
      fc.property(steps, fc.integer({ min: 1, max: 8 }), (given, places) => {
        const waiting = openWaiting<Report>(places)
        const inside = new Set<Report>()
        /** Turns of other networks since a network began to wait. */
        const passed = new Map<string, Set<string>>()
        for (const step of given) {
          if (step === 'leave') {
            const [some] = inside
            if (some) waiting.leave(some)
            if (some) inside.delete(some)
          } else if (step === 'next') {
            const served = waiting.next()
            expect(served === undefined).toBe(inside.size === 0)
            if (!served) continue
            expect(inside.delete(served)).toBe(true)
            for (const [network, others] of passed) {
              if (network === served.network || ![...inside].some((one) => one.network === network)) passed.delete(network)
              else expect(others.has(served.network), 'twice before another').toBe(false)
              others.add(served.network)
            }
          } else {
            const item = { ...step }
            const isNew = ![...inside].some((one) => one.network === item.network)
            inside.add(item)
            if (isNew) passed.set(item.network, new Set())
            const dropped = waiting.add(item.network, item.octets, item)
            expect(dropped !== undefined).toBe(inside.size > places)
            if (dropped) expect(inside.delete(dropped)).toBe(true)
          }
        }
        while (inside.size > 0) expect(inside.delete(waiting.next() as Report)).toBe(true)
        expect(waiting.next()).toBeUndefined()
      }),
    )
  })
})
