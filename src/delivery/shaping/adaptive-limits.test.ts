import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  type AdaptiveLimits,
  afterRefusedConnection,
  afterSuccess,
  afterThrottle,
  backoffLeftMs,
  initialLimits,
  type ProviderLimits,
} from './adaptive-limits.ts'

const open: ProviderLimits = { connections: 20, rate: null }

/** Random numbers between 0 and 1, the same for the same seed. */
function numbersFrom(seed: number): () => number {
  let state = Math.imul(seed, 2_654_435_761) | 1
  return () => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    return (state >>> 0) / 2 ** 32
  }
}

const tellEveryMs = 500
/** Fraction of a rate, taken from the shared row at once. */
const aheadPart = 0.25

/**
 * Simulates a receiver with a limit for each of its seconds, and two processes that share a row of send times. The processes send a few
 * milliseconds late (now and then many) and report their results twice a second.
 * Long because one loop holds the state of both sides.
 */
function play(limits: readonly number[], eraMs: number, settleMs: number, seed: number) {
  const random = numbersFrom(seed)
  const offsetMs = random() * 1000
  const limitAt = (atMs: number) => limits[Math.min(limits.length - 1, Math.floor(atMs / eraMs))] as number
  const received = new Map<number, { taken: number; refused: number }>()
  let learned: AdaptiveLimits = initialLimits(open)
  let slotAtMs = 0
  let counted = { second: -1, accepted: 0, before: 0 }
  const senders = [0, 1].map(() => ({
    rate: null as number | null,
    times: [] as number[],
    isDue: false,
    accepted: 0,
    isThrottled: false,
    sendAtMs: random() * 10,
    tellAtMs: random() * tellEveryMs,
  }))
  type Sender = (typeof senders)[number]

  const tell = (sender: Sender, nowMs: number) => {
    sender.tellAtMs = nowMs + tellEveryMs + random() * 20
    const second = Math.floor(nowMs / 1000)
    const isSame = second === counted.second
    const before = isSame ? counted.before : second === counted.second + 1 ? counted.accepted : 0
    counted = { second, accepted: (isSame ? counted.accepted : 0) + sender.accepted, before }
    const seen = Math.max(counted.accepted, counted.before)
    const was = learned.rate.perSecond
    if (sender.isThrottled) learned = afterThrottle(learned, seen, nowMs)
    else if (sender.accepted > 0 && was !== null) learned = afterSuccess(learned, open, seen, nowMs)
    if (learned.rate.perSecond !== was) sender.times = []
    sender.rate = learned.rate.perSecond
    sender.accepted = 0
    sender.isThrottled = false
  }

  const send = (sender: Sender, nowMs: number) => {
    if (sender.rate !== null && !sender.isDue) {
      const rate = (sender.rate = learned.rate.perSecond ?? sender.rate)
      if (sender.times.length === 0) {
        const wanted = Math.max(1, Math.floor(rate * aheadPart))
        slotAtMs = Math.max(slotAtMs, nowMs) + (wanted * 1000) / rate
        for (let nth = wanted; nth > 0; nth--) sender.times.push(slotAtMs - (nth * 1000) / rate)
      }
      sender.isDue = true
      const lateMs = random() < 0.05 ? 60 * random() : 3 * random()
      sender.sendAtMs = Math.max(nowMs, (sender.times.shift() as number) + lateMs)
      return
    }
    sender.isDue = false
    sender.sendAtMs = nowMs + (sender.rate === null ? 8 : 0.5)
    const second = Math.floor((nowMs + offsetMs) / 1000)
    const row = received.get(second) ?? { taken: 0, refused: 0 }
    received.set(second, row)
    if (row.taken < limitAt(nowMs)) {
      row.taken++
      sender.accepted++
    } else {
      row.refused++
      sender.isThrottled = true
    }
  }

  for (;;) {
    const sender = senders.reduce((one, other) =>
      Math.min(other.sendAtMs, other.tellAtMs) < Math.min(one.sendAtMs, one.tellAtMs) ? other : one,
    )
    const nowMs = Math.min(sender.sendAtMs, sender.tellAtMs)
    if (nowMs >= limits.length * eraMs) break
    if (sender.tellAtMs <= nowMs) tell(sender, nowMs)
    else send(sender, nowMs)
  }
  return limits.map((limit, era) => {
    let [seconds, taken, refused] = [0, 0, 0]
    for (let second = Math.ceil((era * eraMs + settleMs) / 1000) + 1; second < ((era + 1) * eraMs) / 1000; second++) {
      const row = received.get(second)
      seconds++
      taken += row?.taken ?? 0
      refused += row?.refused ?? 0
    }
    return { used: taken / (seconds * limit), refusedPart: refused / (taken + refused) }
  })
}

describe('the rate a provider allows', () => {
  it('is used to nine tenths, with under one refusal in a hundred, also after it has changed', () => {
    for (const limits of [[20], [20, 60, 20], [7, 100, 12], [40, 20, 5]]) {
      for (let seed = 1; seed <= 5; seed++) {
        for (const { used, refusedPart } of play(limits, 900_000, 200_000, seed)) {
          expect(used, `${limits} ${seed}`).toBeGreaterThanOrEqual(0.9)
          expect(refusedPart, `${limits} ${seed}`).toBeLessThan(0.01)
        }
      }
    }
  })

  it('is forgotten when nothing is refused any more', () => {
    let learned = afterThrottle(initialLimits(open), 10, 0)
    for (let second = 0; second < 3600; second++) learned = afterSuccess(learned, open, 5000, second * 1000)
    expect(learned.rate.perSecond).toBeNull()
  })

  it.each([
    ['a moment', 0],
    ['six hours', 6 * 3_600_000],
  ])('is that of before within ten minutes after a block of %s, however little is sent', (_, blockMs) => {
    let learned = initialLimits(open)
    let nowMs = 0
    const probed: (number | null)[] = []
    do {
      learned = afterThrottle(learned, 0, nowMs)
      probed.push(learned.rate.perSecond)
      nowMs = learned.backoff.untilMs ?? 0
    } while (nowMs < blockMs)
    // A receiver that blocks Postrider is probed with ever fewer messages.
    expect(probed).toEqual([...probed].sort((a, b) => Number(b) - Number(a)))
    const endMs = nowMs
    for (let rate = learned.rate.perSecond; rate !== null && rate < 10; rate = learned.rate.perSecond) {
      nowMs += Math.max(2000, 1000 / rate)
      learned = afterSuccess(learned, open, rate, nowMs)
    }
    expect(nowMs - endMs).toBeLessThan(600_000)
  })

  it('after a block is half of that before it, and less when it blocks again after some', () => {
    let learned = initialLimits({ connections: 20, rate: 10 })
    for (const nowMs of [0, 40_000, 120_000]) learned = afterThrottle(learned, 0, nowMs)
    expect(learned.rate.perSecond).toBe(1.25)
    learned = afterSuccess(learned, open, 1, 300_000)
    expect(learned).toMatchObject({ rate: { perSecond: 5 }, backoff: { untilMs: null } })
    expect(afterThrottle(learned, 0, 310_000)).toMatchObject({
      rate: { perSecond: 2.5, afterBackoff: 2.5 },
      backoff: { durationMs: 30_000 },
    })
  })

  it('is not raised above the limit of the operator', () => {
    const bounds = { connections: 3, rate: 5 }
    let learned = afterRefusedConnection(afterThrottle(initialLimits(bounds), 2, 0), 1, 0)
    for (let second = 0; second < 36_000; second++) learned = afterSuccess(learned, bounds, 5000, second * 1000)
    expect([learned.rate.perSecond, learned.connections.max]).toEqual([5, 3])
  })
})

describe('the connections a provider allows', () => {
  it('are the number that stood when another was refused, and one more is probed ever more rarely', () => {
    let learned = initialLimits(open)
    for (const otherConnections of [9, 8, 7, 6, 5, 4, 3]) learned = afterRefusedConnection(learned, otherConnections, 0)
    expect(learned.connections.max).toBe(3)
    const probed: number[] = []
    for (let second = 0; second < 7200; second++) {
      learned = afterSuccess(learned, open, 5000, second * 1000)
      if (learned.connections.max > 3) {
        probed.push(second)
        learned = afterRefusedConnection(learned, 3, second * 1000)
      }
    }
    expect(probed.length).toBeLessThanOrEqual(9)
    expect(probed.length).toBeGreaterThanOrEqual(3)
    expect(learned.connections.max).toBe(3)
  })

  it('are none for a while when the only one is refused, longer each time, and one success ends that', () => {
    const first = afterRefusedConnection(initialLimits(open), 0, 0)
    expect(first.backoff.untilMs).toBe(30_000)
    const second = afterRefusedConnection(first, 0, 30_000)
    expect(second.backoff.untilMs).toBe(90_000)
    expect(afterSuccess(second, open, 1, 90_000)).toMatchObject({ backoff: { untilMs: null, durationMs: 0 } })
  })
})

it('a clock that was wrong during a refusal suspends sending by the right clock for half an hour at most, besides the tolerance', () => {
  const refusal = fc.record({ isThrottle: fc.boolean(), laterMs: fc.nat(600_000), wrongByMs: fc.integer({ min: -400, max: 400 }) })
  fc.assert(
    fc.property(fc.array(refusal, { maxLength: 30 }), (history) => {
      let learned = initialLimits(open)
      let nowMs = 1e12
      for (const { isThrottle, laterMs, wrongByMs } of history) {
        nowMs += laterMs
        const readMs = nowMs + wrongByMs * 3_600_000
        learned = isThrottle ? afterThrottle(learned, 0, readMs) : afterRefusedConnection(learned, 0, readMs)
        expect(backoffLeftMs(learned.backoff, nowMs)).toBeLessThanOrEqual(1_800_000 + 300_000)
        expect(backoffLeftMs(learned.backoff, readMs)).toBeGreaterThan(0)
      }
    }),
  )
})

it('limits always stay within their bounds', () => {
  const happening = fc.oneof(
    fc.record({ kind: fc.constant('refused connection' as const), number: fc.nat(30) }),
    fc.record({ kind: fc.constant('throttle' as const), number: fc.nat(5000) }),
    fc.record({ kind: fc.constant('success' as const), number: fc.nat(5000) }),
  )
  const bounds = fc.record({ connections: fc.integer({ min: 1, max: 50 }), rate: fc.option(fc.integer({ min: 1, max: 1000 })) })
  fc.assert(
    fc.property(bounds, fc.array(fc.tuple(happening, fc.nat(60_000)), { maxLength: 200 }), (limits, history) => {
      let learned = initialLimits(limits)
      let nowMs = 0
      for (const [{ kind, number }, laterMs] of history) {
        nowMs += laterMs
        if (kind === 'refused connection') learned = afterRefusedConnection(learned, Math.min(number, learned.connections.max - 1), nowMs)
        else if (kind === 'throttle') learned = afterThrottle(learned, Math.min(number, learned.rate.perSecond ?? number), nowMs)
        else learned = afterSuccess(learned, limits, number, nowMs)
        const { perSecond } = learned.rate
        expect(learned.connections.max).toBeGreaterThanOrEqual(1)
        expect(learned.connections.max).toBeLessThanOrEqual(limits.connections)
        expect(perSecond === null ? limits.rate : perSecond > 0).not.toBe(false)
        if (limits.rate !== null) expect(perSecond as number).toBeLessThanOrEqual(limits.rate)
        expect((learned.backoff.untilMs ?? 0) - nowMs).toBeLessThanOrEqual(1_800_000)
      }
    }),
  )
})
