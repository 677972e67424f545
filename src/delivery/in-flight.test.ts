import { describe, expect, test } from 'vitest'
import { systemClock } from '#base'
import type { Claimed } from '#spool'
import { InFlight } from './in-flight.ts'

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

const sizeOf = (inFlight: InFlight, recipientDomain = 'example.org') =>
  inFlight.windows().find((one) => one.recipientDomain === recipientDomain)?.size

describe('the emails in flight of a process', () => {
  test('a recipient is held from its claim until it is finished, and finishing it twice counts once', () => {
    const inFlight = new InFlight(systemClock)
    const [one, other] = recipients(2) as [Claimed, Claimed]
    inFlight.add([one, other])
    expect(inFlight.all()).toEqual([one, other])
    inFlight.remove(one)
    inFlight.remove(one)
    expect([inFlight.size, inFlight.all()]).toEqual([1, [other]])
  })

  test('the end of a claim that was lost does not end the claim that came after it', () => {
    const inFlight = new InFlight(systemClock)
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
    const inFlight = new InFlight(systemClock)
    const mine = recipients(2)
    inFlight.add(mine)
    expect([inFlight.isIdle(7), inFlight.isIdle(8)]).toEqual([false, true])
    inFlight.remove(mine[0] as Claimed)
    expect(inFlight.isIdle(7)).toBe(false)
    inFlight.remove(mine[1] as Claimed)
    expect(inFlight.isIdle(7)).toBe(true)
  })

  test('a destination that does not answer gets nothing beyond its first window', () => {
    const inFlight = new InFlight(systemClock)
    inFlight.add(recipients(inFlight.freshWindow))
    for (let turn = 0; turn < 10; turn++) expect(sizeOf(inFlight)).toBe(0)
  })

  test('a lane that finishes its emails gets twice as many, up to a bound', () => {
    const inFlight = new InFlight(systemClock)
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
    const inFlight = new InFlight(systemClock)
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
    const inFlight = new InFlight(systemClock)
    inFlight.add([...recipients(4), ...recipients(1, { recipientDomain: 'example.net' }), ...recipients(2, { tenantId: 'u' })])
    expect(inFlight.windows()).toEqual([
      { tenantId: 't', recipientDomain: 'example.org', size: 0 },
      { tenantId: 't', recipientDomain: 'example.net', size: 3 },
      { tenantId: 'u', recipientDomain: 'example.org', size: 2 },
    ])
  })

  test('a lane without work is forgotten', () => {
    const inFlight = new InFlight(systemClock)
    const mine = recipients(1)
    inFlight.add(mine)
    inFlight.remove(mine[0] as Claimed)
    expect(inFlight.windows()).toHaveLength(1)
    expect(inFlight.windows()).toHaveLength(0)
  })

  test('an email that was not sent is no progress of its lane', () => {
    const inFlight = new InFlight(systemClock)
    for (let turn = 0; turn < 5; turn++) {
      const mine = recipients(4)
      inFlight.add(mine)
      for (const one of mine) inFlight.giveBack(one)
      expect([undefined, 4]).toContain(sizeOf(inFlight))
    }
  })
})

describe('a provider that does not answer', () => {
  const withProvider = (inFlight: InFlight, count: number, wanted: Partial<Claimed> = {}) => {
    const mine = recipients(count, wanted) as [Claimed, ...Claimed[]]
    inFlight.add(mine)
    return { mine, hasPlace: inFlight.assign(mine, 'slow.example') }
  }
  const crowdedDomains = (inFlight: InFlight) => inFlight.crowded().map(({ recipientDomain }) => recipientDomain)

  test('gets nothing more from the lanes of a tenant with 400 recipients in flight to it', () => {
    const inFlight = new InFlight(systemClock)
    const { mine } = withProvider(inFlight, 399)
    withProvider(inFlight, 1, { recipientDomain: 'example.net' })
    withProvider(inFlight, 100, { tenantId: 'u' })
    inFlight.add(recipients(500, { recipientDomain: 'fast.example' }))
    expect(inFlight.crowded()).toMatchObject([
      { tenantId: 't', recipientDomain: 'example.org' },
      { tenantId: 't', recipientDomain: 'example.net' },
    ])
    inFlight.remove(mine[0])
    expect(inFlight.crowded()).toEqual([])
  })

  test('holds back no tenant with few recipients for those of others', () => {
    const inFlight = new InFlight(systemClock)
    for (const tenantId of ['a', 'b']) withProvider(inFlight, 300, { tenantId })
    withProvider(inFlight, 31, { tenantId: 'c' })
    expect(inFlight.crowded().map(({ tenantId }) => tenantId)).toEqual(['a', 'b'])
  })

  test('has no place for more than 800 recipients of a tenant, and 1,000 in all; lanes without a place wait until 200 are free', () => {
    const inFlight = new InFlight(systemClock)
    const { mine } = withProvider(inFlight, 800)
    expect(withProvider(inFlight, 1, { recipientDomain: 'late.example' }).hasPlace).toBe(false)
    expect(withProvider(inFlight, 200, { tenantId: 'u', recipientDomain: 'other.example' }).hasPlace).toBe(true)
    expect(withProvider(inFlight, 1, { tenantId: 'v', recipientDomain: 'last.example' }).hasPlace).toBe(false)
    expect(crowdedDomains(inFlight)).toEqual(expect.arrayContaining(['example.org', 'late.example', 'last.example']))
    for (const one of mine.slice(0, 199)) inFlight.giveBack(one)
    expect(crowdedDomains(inFlight)).toEqual(expect.arrayContaining(['late.example', 'last.example']))
    inFlight.giveBack(mine[199] as Claimed)
    expect(crowdedDomains(inFlight)).not.toEqual(expect.arrayContaining(['last.example']))
    expect(crowdedDomains(inFlight)).not.toEqual(expect.arrayContaining(['late.example']))
  })

  test('leaves a tenant with more than 100 lanes without a place waiting as a whole, and no other tenant', () => {
    const inFlight = new InFlight(systemClock)
    const { mine } = withProvider(inFlight, 800)
    withProvider(inFlight, 200, { tenantId: 'u' })
    const refuse = (tenantId: string, nth: number) => {
      const { mine: late, hasPlace } = withProvider(inFlight, 1, { tenantId, recipientDomain: `late${nth}.example` })
      expect(hasPlace).toBe(false)
      for (const one of late) inFlight.giveBack(one)
    }
    for (let nth = 0; nth < 100; nth++) refuse('t', nth)
    for (let nth = 0; nth < 3; nth++) refuse('v', nth)
    expect(inFlight.busyTenants(1600).get('t')).toBe(800)
    refuse('t', 100)
    expect(inFlight.busyTenants(1600)).toEqual(
      new Map([
        ['t', 1600],
        ['u', 200],
      ]),
    )
    expect(inFlight.crowded().filter(({ recipientDomain }) => recipientDomain.startsWith('late'))).toHaveLength(103)
    // With 200 places free, as many lanes are claimed again as have a place, the oldest first, and then the tenant too.
    for (const one of mine.slice(0, 200)) inFlight.remove(one)
    expect(inFlight.crowded().filter(({ recipientDomain }) => recipientDomain.startsWith('late'))).toHaveLength(53)
    expect(inFlight.busyTenants(1600).get('t')).toBe(600)
    expect(inFlight.hasRefused).toBe(true)
  })

  test('is tried again after a minute for lanes and tenants without a place', () => {
    let nowMs = 0
    const inFlight = new InFlight({ monotonicMs: () => nowMs })
    withProvider(inFlight, 800)
    for (let nth = 0; nth <= 100; nth++) {
      const { mine } = withProvider(inFlight, 1, { recipientDomain: `late${nth}.example` })
      inFlight.giveBack(mine[0])
    }
    nowMs = 59_999
    expect([inFlight.crowded().length, inFlight.busyTenants(1600).get('t')]).toEqual([101, 1600])
    nowMs = 60_000
    expect([inFlight.crowded().length, inFlight.busyTenants(1600).get('t')]).toEqual([1, 800])
  })

  test('holds no longer what takes another way or is claimed again, and nothing twice', () => {
    const inFlight = new InFlight(systemClock)
    const { mine } = withProvider(inFlight, 400)
    expect(inFlight.assign(mine, 'slow.example')).toBe(true)
    inFlight.assign([mine[0]], 'other.example')
    expect(inFlight.crowded()).toEqual([])
    inFlight.assign([mine[0]], 'slow.example')
    expect(inFlight.crowded()).not.toEqual([])
    inFlight.add([{ ...mine[0], epoch: 2 }])
    expect(inFlight.crowded()).toEqual([])
  })
})
