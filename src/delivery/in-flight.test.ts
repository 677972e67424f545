import { describe, expect, test } from 'vitest'
import type { Claimed } from '#spool'
import { openInFlight } from './in-flight.ts'

let next = 0
const recipients = (count: number, wanted: Partial<Claimed> = {}): Claimed[] =>
  Array.from({ length: count }, () => ({
    tenantId: 't',
    emailId: `email ${next++}`,
    contentId: 'c',
    shard: 7,
    epoch: 1,
    recipient: 'ada@example.org',
    recipientDomain: 'example.org',
    attempts: 0,
    manualRetry: false,
    test: false,
    sizeOctets: 100,
    holdReason: null,
    clockOffsetMs: 0,
    scheduledAt: null,
    ...wanted,
  }))

const sizeOf = (inFlight: ReturnType<typeof openInFlight>, recipientDomain = 'example.org') =>
  inFlight.windows().find((one) => one.recipientDomain === recipientDomain)?.size

describe('the emails in flight of a process', () => {
  test('a recipient is held from its claim until it is finished, and finishing it twice counts once', () => {
    const inFlight = openInFlight()
    const [one, other] = recipients(2) as [Claimed, Claimed]
    inFlight.add([one, other])
    expect(inFlight.all()).toEqual([one, other])
    inFlight.remove(one)
    inFlight.remove(one)
    expect([inFlight.size, inFlight.all()]).toEqual([1, [other]])
  })

  test('the end of a claim that was lost does not end the claim that came after it', () => {
    const inFlight = openInFlight()
    const [lost] = recipients(1) as [Claimed]
    const again = { ...lost, epoch: 3 }
    inFlight.add([lost])
    inFlight.add([again])
    inFlight.remove(lost)
    expect([inFlight.all(), inFlight.isIdle(7)]).toEqual([[again], false])
    inFlight.remove(again)
    expect([inFlight.size, inFlight.isIdle(7)]).toEqual([0, true])
  })

  test('a shard is idle only while nothing of it is held', () => {
    const inFlight = openInFlight()
    const mine = recipients(2)
    inFlight.add(mine)
    expect([inFlight.isIdle(7), inFlight.isIdle(8)]).toEqual([false, true])
    inFlight.remove(mine[0] as Claimed)
    expect(inFlight.isIdle(7)).toBe(false)
    inFlight.remove(mine[1] as Claimed)
    expect(inFlight.isIdle(7)).toBe(true)
  })

  test('a destination that does not answer gets nothing beyond its first window', () => {
    const inFlight = openInFlight()
    inFlight.add(recipients(inFlight.freshWindow))
    for (let turn = 0; turn < 10; turn++) expect(sizeOf(inFlight)).toBe(0)
  })

  test('a lane that finishes its emails gets twice as many, up to a bound', () => {
    const inFlight = openInFlight()
    let size = inFlight.freshWindow
    const sizes: number[] = []
    for (let turn = 0; turn < 9; turn++) {
      const mine = recipients(size)
      inFlight.add(mine)
      for (const one of mine) inFlight.remove(one)
      size = sizeOf(inFlight) ?? 0
      sizes.push(size)
    }
    expect(sizes).toEqual([8, 16, 32, 64, 128, 256, 400, 400, 400])
  })

  test('a lane with more than half of its window in hand asks for nothing', () => {
    const inFlight = openInFlight()
    const mine = recipients(4)
    inFlight.add(mine)
    inFlight.remove(mine[0] as Claimed)
    expect(sizeOf(inFlight)).toBe(0)
    // Two of the window's four finished between two claims: the lane makes progress, so it may have eight in flight.
    inFlight.remove(mine[1] as Claimed)
    inFlight.remove(mine[2] as Claimed)
    expect(sizeOf(inFlight)).toBe(7)
  })

  test('lanes of different tenants and destinations do not share a window', () => {
    const inFlight = openInFlight()
    inFlight.add([...recipients(4), ...recipients(1, { recipientDomain: 'example.net' }), ...recipients(2, { tenantId: 'u' })])
    expect(inFlight.windows()).toEqual([
      { tenantId: 't', recipientDomain: 'example.org', size: 0 },
      { tenantId: 't', recipientDomain: 'example.net', size: 3 },
      { tenantId: 'u', recipientDomain: 'example.org', size: 2 },
    ])
  })

  test('a lane without work is forgotten', () => {
    const inFlight = openInFlight()
    const mine = recipients(1)
    inFlight.add(mine)
    inFlight.remove(mine[0] as Claimed)
    expect(inFlight.windows()).toHaveLength(1)
    expect(inFlight.windows()).toHaveLength(0)
  })
})
