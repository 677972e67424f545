/** Limits of received mail: the share of one network, and networks of one subscriber. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { systemClock } from '#base'
import { type Amount, hourMs, isOver, leavesRoom, NetworkUse, RecentUse, shareOf } from './limits.ts'

const limit: Amount = { messages: 1_000, octets: 100_000 }
const largest = 500

/** Networks that send all that they may, in any order and size; returns the use by all of them. */
function useOf(networks: number, wishes: readonly { network: number; octets: number }[]): Amount {
  const own = Array.from({ length: networks }, (): Amount => ({ messages: 0, octets: 0 }))
  const all: Amount = { messages: 0, octets: 0 }
  for (const { network, octets } of wishes) {
    const mine = own[network % networks] as Amount
    if (isOver(all, limit) || !leavesRoom(mine, all, limit)) continue
    for (const one of [mine, all]) Object.assign(one, { messages: one.messages + 1, octets: one.octets + octets })
  }
  return all
}

describe('the share of a network', () => {
  test('leaves room for a further network, however many and however much others send', () => {
    const wish = fc.record({ network: fc.nat(20), octets: fc.integer({ min: 1, max: largest }) })
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 20 }), fc.array(wish, { maxLength: 300 }), fc.boolean(), (networks, wishes, areSmall) => {
        const few = areSmall ? wishes.map(({ network }) => ({ network, octets: 1 })) : wishes
        const used = useOf(networks, Array(20).fill(few).flat())
        const room = 1 / (1 + 3 * networks)
        expect(limit.messages - used.messages).toBeGreaterThanOrEqual(Math.floor(limit.messages * room))
        expect(limit.octets - used.octets).toBeGreaterThan(limit.octets * room - largest)
        expect(leavesRoom({ messages: 0, octets: 0 }, used, limit)).toBe(true)
      }),
    )
  })

  test('of one gateway, behind which all senders are, is three quarters', () => {
    const alone = useOf(1, Array(2_000).fill({ network: 0, octets: 1 }))
    expect(alone.messages).toBe(750)
  })

  test('is that of a whole IPv6 /48, for each tenant apart', () => {
    expect(shareOf('2001:db8:1:2::1', 'tnt_a')).toBe(shareOf('2001:db8:1:3::1', 'tnt_a'))
    const [one, ...others] = [
      ['192.0.2.1', 'tnt_a'],
      ['192.0.2.1', 'tnt_b'],
      ['192.0.2.2', 'tnt_a'],
    ].map(([address = '', tenantId = '']) => shareOf(address, tenantId))
    expect(others).not.toContain(one)
  })
})

test('networks of one IPv6 /48 have together what four of them may have', () => {
  const use = new NetworkUse(systemClock, { messages: 10, octets: 1_000 })
  for (let nth = 0; nth < 40; nth++) {
    const address = `2001:db8:1:${nth}::1`
    expect(use.allows(address)).toBe(true)
    use.count(address, { messages: 1, octets: 1 })
  }
  expect(use.allows('2001:db8:1:ffff::1')).toBe(false)
  expect(use.allows('2001:db8:2:1::1')).toBe(true)
  use.count('192.0.2.1', { messages: 10, octets: 10 })
  expect([use.allows('192.0.2.1'), use.allows('192.0.2.2'), use.allows('192.0.2.1', 'tnt_a')]).toEqual([false, true, true])
})

test('a use ends with its window', () => {
  let nowMs = 0
  const use = new RecentUse({ ...systemClock, monotonicMs: () => nowMs })
  use.count('a', { messages: 2, octets: 9 })
  nowMs = hourMs - 1
  use.count('a', { messages: -1, octets: -10 })
  expect(use.of('a')).toMatchObject({ messages: 1, octets: 0 })
  nowMs = hourMs
  expect(use.of('a')).toMatchObject({ messages: 0, octets: 0 })
})
