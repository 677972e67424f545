import { describe, expect, test } from 'vitest'
import type { Claimed } from '#spool'
import { openHands } from './hands.ts'

let next = 0
const recipients = (count: number, wanted: Partial<Claimed> = {}): Claimed[] =>
  Array.from({ length: count }, () => ({
    tenantId: 't',
    emailId: `email ${next++}`,
    contentId: 'c',
    shard: 7,
    epoch: 1,
    recipient: 'ada@example.org',
    destination: 'example.org',
    failures: 0,
    manual: false,
    test: false,
    sizeOctets: 100,
    heldBecause: null,
    aheadMs: 0,
    ...wanted,
  }))

const sizeOf = (hands: ReturnType<typeof openHands>, destination = 'example.org') =>
  hands.windows().find((one) => one.destination === destination)?.size

describe('what a process has in its hands', () => {
  test('a recipient is held from its claim until it is finished, and finishing it twice counts once', () => {
    const hands = openHands()
    const [one, other] = recipients(2) as [Claimed, Claimed]
    hands.take([one, other])
    expect(hands.all()).toEqual([one, other])
    hands.finish(one)
    hands.finish(one)
    expect([hands.size, hands.all()]).toEqual([1, [other]])
  })

  test('the end of a claim that was lost does not end the claim that came after it', () => {
    const hands = openHands()
    const [lost] = recipients(1) as [Claimed]
    const again = { ...lost, epoch: 3 }
    hands.take([lost])
    hands.take([again])
    hands.finish(lost)
    expect([hands.all(), hands.isIdle(7)]).toEqual([[again], false])
    hands.finish(again)
    expect([hands.size, hands.isIdle(7)]).toEqual([0, true])
  })

  test('a shard is idle only while nothing of it is held', () => {
    const hands = openHands()
    const mine = recipients(2)
    hands.take(mine)
    expect([hands.isIdle(7), hands.isIdle(8)]).toEqual([false, true])
    hands.finish(mine[0] as Claimed)
    expect(hands.isIdle(7)).toBe(false)
    hands.finish(mine[1] as Claimed)
    expect(hands.isIdle(7)).toBe(true)
  })

  test('a destination that answers nobody is given nothing beyond its first window', () => {
    const hands = openHands()
    hands.take(recipients(hands.freshWindow))
    for (let turn = 0; turn < 10; turn++) expect(sizeOf(hands)).toBe(0)
  })

  test('a lane that finishes what it had is given twice as much, up to a bound', () => {
    const hands = openHands()
    let size = hands.freshWindow
    const sizes: number[] = []
    for (let turn = 0; turn < 9; turn++) {
      const mine = recipients(size)
      hands.take(mine)
      for (const one of mine) hands.finish(one)
      size = sizeOf(hands) ?? 0
      sizes.push(size)
    }
    expect(sizes).toEqual([8, 16, 32, 64, 128, 256, 400, 400, 400])
  })

  test('a lane with more than half of its window in hand asks for nothing', () => {
    const hands = openHands()
    const mine = recipients(4)
    hands.take(mine)
    hands.finish(mine[0] as Claimed)
    expect(sizeOf(hands)).toBe(0)
    // Two of the window's four finished between two claims: the lane makes progress, so it may have eight in flight.
    hands.finish(mine[1] as Claimed)
    hands.finish(mine[2] as Claimed)
    expect(sizeOf(hands)).toBe(7)
  })

  test('lanes of different tenants and destinations do not share a window', () => {
    const hands = openHands()
    hands.take([...recipients(4), ...recipients(1, { destination: 'example.net' }), ...recipients(2, { tenantId: 'u' })])
    expect(hands.windows()).toEqual([
      { tenantId: 't', destination: 'example.org', size: 0 },
      { tenantId: 't', destination: 'example.net', size: 3 },
      { tenantId: 'u', destination: 'example.org', size: 2 },
    ])
  })

  test('a lane without work is forgotten', () => {
    const hands = openHands()
    const mine = recipients(1)
    hands.take(mine)
    hands.finish(mine[0] as Claimed)
    expect(hands.windows()).toHaveLength(1)
    expect(hands.windows()).toHaveLength(0)
  })
})
