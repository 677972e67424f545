/** Each transition of the adaptive limits, one row for each case. */
import { describe, expect, it } from 'vitest'
import {
  type AdaptiveLimits,
  afterRefusedConnection,
  afterShutdown,
  afterSuccess,
  afterThrottle,
  initialLimits,
  type ProviderLimits,
  storedLimits,
} from './adaptive-limits.ts'

const open: ProviderLimits = { connections: 20, rate: null }

type Some = { [Part in keyof AdaptiveLimits]?: Partial<AdaptiveLimits[Part]> }

const limitsWith = (some: Some): AdaptiveLimits => {
  const { connections, rate, backoff } = initialLimits(open)
  return { connections: { ...connections, ...some.connections }, rate: { ...rate, ...some.rate }, backoff: { ...backoff, ...some.backoff } }
}

/** The time of each transition in the tables. */
const nowMs = 100_000

describe('after a refused connection', () => {
  it.each<[string, Some, number, Some]>([
    [
      'that was the only one, sending backs off',
      {},
      0,
      { connections: { max: 1, ceiling: null }, backoff: { untilMs: 130_000, durationMs: 30_000 } },
    ],
    [
      'during a backoff, the backoff stays',
      { connections: { max: 1 }, backoff: { untilMs: 100_001, durationMs: 30_000 } },
      0,
      { connections: { max: 1 }, backoff: { untilMs: 100_001, durationMs: 30_000 } },
    ],
    [
      'after an unsuccessful backoff, the next is twice as long',
      { connections: { max: 1 }, backoff: { untilMs: nowMs, durationMs: 30_000 } },
      0,
      { backoff: { untilMs: 160_000, durationMs: 60_000 } },
    ],
    [
      'without a known ceiling, the others are allowed',
      {},
      9,
      { connections: { max: 9, ceiling: 10, probeWaitMs: 30_000, raiseAtMs: 130_000 } },
    ],
    [
      'that was a probe, the next probe waits twice as long',
      { connections: { max: 10, ceiling: 10 } },
      9,
      { connections: { max: 9, ceiling: 10, probeWaitMs: 60_000, raiseAtMs: 160_000 } },
    ],
    [
      'that was a late probe, the next waits an hour at most',
      { connections: { max: 10, ceiling: 10, probeWaitMs: 3_600_000 } },
      9,
      { connections: { max: 9, probeWaitMs: 3_600_000 } },
    ],
    [
      'far below the ceiling, the maximum is halved at most, and its ceiling is new',
      { connections: { max: 8, ceiling: 10, probeWaitMs: 60_000 } },
      2,
      { connections: { max: 4, ceiling: 5, probeWaitMs: 30_000, raiseAtMs: 130_000 } },
    ],
    [
      'while more were open than are allowed by now, they stay',
      { connections: { max: 5, ceiling: 6 } },
      7,
      { connections: { max: 5, ceiling: 6, probeWaitMs: 30_000, raiseAtMs: 0 } },
    ],
  ])('%s', (_, before, otherConnections, after) => {
    expect(afterRefusedConnection(limitsWith(before), otherConnections, nowMs)).toMatchObject(after)
  })
})

describe('after a shutdown', () => {
  it.each<[string, Some, number, Some]>([
    ['without accepted mail, sending backs off, and the rate stays', { rate: { perSecond: 9 } }, 0, { backoff: { untilMs: 130_000 } }],
    ['during a backoff, the backoff stays', { backoff: { untilMs: 100_001, durationMs: 30_000 } }, 0, { backoff: { untilMs: 100_001 } }],
    [
      'after an unsuccessful backoff, the next is twice as long',
      { backoff: { untilMs: nowMs, durationMs: 30_000 } },
      0,
      { backoff: { durationMs: 60_000 } },
    ],
    ['of one server while others accept mail, nothing changes', { rate: { perSecond: 9 } }, 1, { backoff: { untilMs: null } }],
  ])('%s', (_, before, accepted, after) => {
    const [was, is] = [limitsWith(before), afterShutdown(limitsWith(before), accepted, nowMs)]
    expect(is).toMatchObject(after)
    expect({ ...is, backoff: was.backoff }).toEqual(was)
  })
})

describe('after a throttle', () => {
  it.each<[string, Some, number, Some]>([
    [
      'without a limit, nearly the accepted rate is the limit',
      {},
      10,
      { rate: { perSecond: 9.5, floor: null, ceiling: null, step: 0.1, lowerAtMs: 101_500 } },
    ],
    [
      'a moment after another, the rate stays',
      { rate: { perSecond: 10, lowerAtMs: 100_001 } },
      5,
      { rate: { perSecond: 10, lowerAtMs: 100_001 } },
    ],
    [
      'of a probe, the floor applies again and the next probe comes later',
      { rate: { perSecond: 10.5, floor: 10, step: 0.05 * 1.5 } },
      10,
      { rate: { perSecond: 10, floor: 10, ceiling: 10.5, raiseAtMs: 104_000, messagesBeforeProbe: 600 } },
    ],
    [
      'between floor and ceiling, the floor applies again and the ceiling is lower',
      { rate: { perSecond: 11, floor: 10, ceiling: 12 } },
      10,
      { rate: { perSecond: 10, floor: 10, ceiling: 11, messagesBeforeProbe: 300 } },
    ],
    [
      'of a few messages at a proven rate, the rate falls a little',
      { rate: { perSecond: 10, floor: 10 } },
      5,
      { rate: { perSecond: 9.6, floor: null, ceiling: 10, messagesBeforeProbe: 600 } },
    ],
    [
      'of most messages at a proven rate, the rate is halved at most, and probes come early',
      { rate: { perSecond: 10, floor: 10, messagesBeforeProbe: 1200 } },
      4,
      { rate: { perSecond: 4.75, floor: null, ceiling: null, messagesBeforeProbe: 300 } },
    ],
    [
      'of a few messages at an unproven rate, the rate falls a little',
      { rate: { perSecond: 10 } },
      8,
      { rate: { perSecond: 9.6, ceiling: 10, messagesBeforeProbe: 300 } },
    ],
    [
      'of more messages at an unproven rate, the rate falls to nearly the accepted rate',
      { rate: { perSecond: 10 } },
      6,
      { rate: { perSecond: expect.closeTo(5.7), ceiling: null } },
    ],
    [
      'of messages that were sent before the rate applied, the rate stays',
      { rate: { perSecond: 2, ceiling: 4 } },
      8,
      { rate: { perSecond: 2, ceiling: 4, lowerAtMs: 101_500 } },
    ],
    [
      'of all messages, sending backs off, and continues at half the rate',
      { rate: { perSecond: 10, floor: 10, ceiling: 12 } },
      0,
      {
        rate: { perSecond: 5, floor: null, ceiling: null, afterBackoff: 5 },
        backoff: { untilMs: 130_000, durationMs: 30_000 },
      },
    ],
    [
      'of all messages after a backoff, less is sent, and the rate afterwards stays the same',
      { rate: { perSecond: 5, afterBackoff: 5 }, backoff: { untilMs: nowMs, durationMs: 30_000 } },
      0,
      { rate: { perSecond: 2.5, afterBackoff: 5 }, backoff: { untilMs: 160_000, durationMs: 60_000 } },
    ],
    [
      'of all messages again and again, one message a minute is sent, and a backoff lasts half an hour',
      { rate: { perSecond: 1 / 60, afterBackoff: 5 }, backoff: { untilMs: nowMs, durationMs: 1_800_000 } },
      0,
      { rate: { perSecond: 1 / 60 }, backoff: { durationMs: 1_800_000 } },
    ],
  ])('%s', (_, before, accepted, after) => {
    expect(afterThrottle(limitsWith(before), accepted, nowMs)).toMatchObject(after)
  })
})

describe('after a success', () => {
  it.each<[string, Some, number, Some, ProviderLimits?]>([
    ['an unused rate stays', { rate: { perSecond: 10 } }, 6, { rate: { perSecond: 10, floor: null } }],
    ['a rate stays until it is settled', { rate: { perSecond: 10, raiseAtMs: 100_001 } }, 10, { rate: { perSecond: 10, floor: null } }],
    [
      'a rate without a ceiling is probed in a small step',
      { rate: { perSecond: 10 } },
      10,
      { rate: { perSecond: 10.5, floor: 10, step: 0.05 * 1.5, raiseAtMs: expect.closeTo(109_523.8, 1) } },
    ],
    [
      'a rate below its ceiling is raised half the way',
      { rate: { perSecond: 10, ceiling: 12 } },
      10,
      { rate: { perSecond: 11, floor: 10, ceiling: 12, raiseAtMs: 104_000 } },
    ],
    [
      'a rate near its ceiling stays until the next probe',
      { rate: { perSecond: 10, ceiling: 10.5, step: 0.1 } },
      10,
      { rate: { perSecond: 10, floor: 10, ceiling: null, step: 0.05, raiseAtMs: 130_000 } },
    ],
    [
      'far above the old ceiling, steps grow and probes come early',
      { rate: { perSecond: 10, step: 0.4, messagesBeforeProbe: 1200 } },
      10,
      { rate: { perSecond: 14, floor: 10, step: 0.5, messagesBeforeProbe: 300 } },
    ],
    ['a rate above 2000 is no longer a limit', { rate: { perSecond: 1900, step: 0.5 } }, 1900, { rate: { perSecond: null, floor: null } }],
    [
      "a rate is raised to the operator's limit",
      { rate: { perSecond: 10 } },
      10,
      { rate: { perSecond: 10.2 } },
      { connections: 20, rate: 10.2 },
    ],
    [
      "the operator's limit stays",
      { rate: { perSecond: 10 } },
      10,
      { rate: { perSecond: 10, floor: null } },
      { connections: 20, rate: 10 },
    ],
    [
      'a backoff ends, and half the rate before it applies',
      { rate: { perSecond: 1.25, afterBackoff: 5 }, backoff: { untilMs: nowMs, durationMs: 60_000 } },
      1,
      { rate: { perSecond: 5, floor: null, afterBackoff: null, raiseAtMs: 116_000 }, backoff: { untilMs: null, durationMs: 0 } },
    ],
    [
      'one more connection is allowed below the ceiling, and the next soon',
      { connections: { max: 3, ceiling: 6 } },
      1,
      { connections: { max: 4, ceiling: 6, raiseAtMs: 102_000 } },
    ],
    [
      'one more connection is probed at the ceiling, and the next waits',
      { connections: { max: 5, ceiling: 6, probeWaitMs: 60_000 } },
      1,
      { connections: { max: 6, ceiling: 6, probeWaitMs: 60_000, raiseAtMs: 160_000 } },
    ],
    [
      'of a probe, the ceiling is higher, and the wait is the first again',
      { connections: { max: 6, ceiling: 6, probeWaitMs: 60_000 } },
      1,
      { connections: { max: 7, ceiling: 7, probeWaitMs: 30_000, raiseAtMs: 130_000 } },
    ],
    ['no connection is added before its time', { connections: { max: 3, raiseAtMs: 100_001 } }, 1, { connections: { max: 3 } }],
    [
      'a connection and a rate whose time is a day ahead are raised now',
      { connections: { max: 3, raiseAtMs: 86_500_000 }, rate: { perSecond: 10, raiseAtMs: 86_500_000 } },
      10,
      { connections: { max: 4 }, rate: { perSecond: 10.5 } },
    ],
    ["connections stay at the operator's limit", {}, 1, { connections: { max: 20, ceiling: null, raiseAtMs: 0 } }],
  ])('%s', (_, before, accepted, after, bounds = open) => {
    expect(afterSuccess(limitsWith(before), bounds, accepted, nowMs)).toMatchObject(after)
  })
})

describe('stored limits', () => {
  it('are read as they were written', () => {
    for (const limits of [
      initialLimits(open),
      afterThrottle(initialLimits(open), 0, nowMs),
      afterRefusedConnection(initialLimits(open), 3, 0),
    ])
      expect(storedLimits(JSON.parse(JSON.stringify(limits)))).toEqual(limits)
  })

  const { connections, rate, backoff } = initialLimits(open)
  it.each<[string, unknown]>([
    ['are absent', null],
    ['are not an object', 'text'],
    ['have another form', { connections: 5, rate: null, backoffUntilMs: null, backoffMs: 0 }],
    ['lack a part', { connections, rate }],
    ['lack a field', { connections, rate, backoff: { untilMs: null } }],
    ['have a field of another type', { connections, rate: { ...rate, perSecond: '5' }, backoff }],
    ['have null for a number', { connections: { ...connections, max: null }, rate, backoff }],
  ])('that %s are not read', (_, stored) => {
    expect(storedLimits(stored)).toBeUndefined()
  })
})
