import { expect, test } from 'vitest'
import { NetworkConnections } from './network-connections.ts'

/** Opens connections until one is refused; returns how many were open. */
function fill(counts: NetworkConnections, addressOf: (nth: number) => string, open = 0): number {
  let nth = 0
  while (nth < 10_000 && counts.admit(addressOf(nth), open + nth)) nth++
  return nth
}

test('a network has a limit, an IPv6 /64 is one, and an IPv6 /48 has four times as many', () => {
  const counts = new NetworkConnections({ total: 10_000, perNetwork: 5 })
  expect(fill(counts, () => '192.0.2.1')).toBe(5)
  expect(fill(counts, () => '192.0.2.2')).toBe(5)
  expect(fill(counts, (nth) => `2001:db8:1:1::${nth + 1}`)).toBe(5)
  expect(fill(counts, (nth) => `2001:db8:1:${nth + 2}::1`)).toBe(15)
  expect(fill(counts, (nth) => `2001:db8:2:${nth + 2}::1`)).toBe(20)
})

test('a further network always gets a connection, until there are almost as many networks as places', () => {
  const counts = new NetworkConnections({ total: 100, perNetwork: 80 })
  let open = 0
  for (let network = 1; network <= 20; network++) {
    const got = fill(counts, () => `192.0.2.${network}`, open)
    expect(got).toBeGreaterThan(0)
    open += got
    if (open >= 99) break
  }
  expect(fill(new NetworkConnections({ total: 100, perNetwork: 80 }), () => '192.0.2.1')).toBe(50)
})

test('a closed connection leaves its place', () => {
  const counts = new NetworkConnections({ total: 100, perNetwork: 1 })
  const leave = counts.admit('2001:db8::1', 0)
  expect(counts.admit('2001:db8::2', 1)).toBeUndefined()
  leave?.()
  expect(counts.admit('2001:db8::2', 0)).toBeDefined()
})
