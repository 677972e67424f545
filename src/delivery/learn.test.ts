import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { afterRefusedConnection, afterSuccess, afterThrottle, type Bounds, type Learned, unlearned } from './learn.ts'

const open: Bounds = { connections: 20, rate: null }

/** A receiver that takes so many messages in each second, and a sender that looks at what came of them twice a second. */
function play(limits: readonly number[], secondsEach: number, settleSeconds: number) {
  let learned: Learned = unlearned(open)
  const told: { allowed: number; taken: number; refused: number }[] = []
  let due = 0
  limits.forEach((limit, era) => {
    for (let second = era * secondsEach; second < (era + 1) * secondsEach; second++) {
      let left = limit
      let [taken, refused] = [0, 0]
      for (const half of [0, 0.5]) {
        const nowMs = (second + half) * 1000
        if (learned.backoffUntilMs !== null && nowMs < learned.backoffUntilMs) continue
        due += learned.rate === null ? 100 : learned.rate / 2
        const sent = Math.floor(due)
        due -= sent
        const ok = Math.min(sent, left)
        left -= ok
        taken += ok
        refused += sent - ok
        if (sent > ok) learned = afterThrottle(learned, taken, nowMs)
        else if (sent > 0) learned = afterSuccess(learned, open, taken, nowMs)
      }
      if (second - era * secondsEach >= settleSeconds) told.push({ allowed: limit, taken, refused })
    }
  })
  const sum = (of: 'allowed' | 'taken' | 'refused') => told.reduce((total, one) => total + one[of], 0)
  return { used: sum('taken') / sum('allowed'), refusedPart: sum('refused') / (sum('taken') + sum('refused')) }
}

describe('the rate a provider allows', () => {
  it('is used to nine tenths, with under one refusal in a hundred, also after it has changed', () => {
    for (const limits of [[20], [20, 60], [20, 5], [7, 100, 12]]) {
      const { used, refusedPart } = play(limits, 900, 120)
      expect(used, String(limits)).toBeGreaterThanOrEqual(0.9)
      expect(refusedPart, String(limits)).toBeLessThan(0.01)
    }
  })

  it('is forgotten when nothing is refused any more', () => {
    let learned = afterThrottle(unlearned(open), 10, 0)
    for (let second = 0; second < 3600; second++) learned = afterSuccess(learned, open, 5000, second * 1000)
    expect(learned.rate).toBeNull()
  })

  it('is not raised past what the operator allows', () => {
    const bounds = { connections: 3, rate: 5 }
    let learned = afterRefusedConnection(afterThrottle(unlearned(bounds), 2, 0), 1, 0)
    for (let second = 0; second < 36_000; second++) learned = afterSuccess(learned, bounds, 5000, second * 1000)
    expect([learned.rate, learned.connections]).toEqual([5, 3])
  })
})

describe('the connections a provider allows', () => {
  it('are those that stood when another was refused, and one more is dared ever more rarely', () => {
    let learned = unlearned(open)
    for (const standing of [9, 8, 7, 6, 5, 4, 3]) learned = afterRefusedConnection(learned, standing, 0)
    expect(learned.connections).toBe(3)
    const dared: number[] = []
    for (let second = 0; second < 7200; second++) {
      learned = afterSuccess(learned, open, 5000, second * 1000)
      if (learned.connections > 3) {
        dared.push(second)
        learned = afterRefusedConnection(learned, 3, second * 1000)
      }
    }
    expect(dared.length).toBeLessThanOrEqual(9)
    expect(dared.length).toBeGreaterThanOrEqual(3)
    expect(learned.connections).toBe(3)
  })

  it('are none for a while when the only one is refused, longer each time, and one success ends that', () => {
    const first = afterRefusedConnection(unlearned(open), 0, 0)
    expect(first.backoffUntilMs).toBe(30_000)
    const second = afterRefusedConnection(first, 0, 30_000)
    expect(second.backoffUntilMs).toBe(90_000)
    expect(afterSuccess(second, open, 1, 90_000)).toMatchObject({ backoffUntilMs: null, backoffMs: 0 })
  })
})

it('whatever happens, limits stay within their bounds', () => {
  const happening = fc.oneof(
    fc.record({ kind: fc.constant('refused connection' as const), number: fc.nat(30) }),
    fc.record({ kind: fc.constant('throttle' as const), number: fc.nat(5000) }),
    fc.record({ kind: fc.constant('success' as const), number: fc.nat(5000) }),
  )
  const bounds = fc.record({ connections: fc.integer({ min: 1, max: 50 }), rate: fc.option(fc.integer({ min: 1, max: 1000 })) })
  fc.assert(
    fc.property(bounds, fc.array(fc.tuple(happening, fc.nat(60_000)), { maxLength: 200 }), (limits, history) => {
      let learned = unlearned(limits)
      let nowMs = 0
      for (const [{ kind, number }, laterMs] of history) {
        nowMs += laterMs
        if (kind === 'refused connection') learned = afterRefusedConnection(learned, Math.min(number, learned.connections - 1), nowMs)
        else if (kind === 'throttle') learned = afterThrottle(learned, Math.min(number, learned.rate ?? number), nowMs)
        else learned = afterSuccess(learned, limits, number, nowMs)
        expect(learned.connections).toBeGreaterThanOrEqual(1)
        expect(learned.connections).toBeLessThanOrEqual(limits.connections)
        expect(learned.rate === null ? limits.rate : learned.rate > 0).not.toBe(false)
        if (limits.rate !== null) expect(learned.rate as number).toBeLessThanOrEqual(limits.rate)
        expect((learned.backoffUntilMs ?? 0) - nowMs).toBeLessThanOrEqual(1_800_000)
      }
    }),
  )
})
