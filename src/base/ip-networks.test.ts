import ipaddr from 'ipaddr.js'
import { describe, expect, test } from 'vitest'
import { isInNetwork, networkOf, siteOf } from './ip-networks.ts'

const networks = ['10.0.0.0/8', '2001:db8::/32'].map((one) => ipaddr.parseCIDR(one))

describe('an address', () => {
  test.each(['10.1.2.3', '::ffff:10.1.2.3', '2001:db8::1'])('%s lies in its network, of either family', (address) =>
    expect(isInNetwork(networks, address)).toBe(true),
  )

  test.each(['11.0.0.1', '2001:db9::1', '10.1', '0x0a000001', '167772161', 'unix', ''])('%o lies in none of them', (address) =>
    expect(isInNetwork(networks, address)).toBe(false),
  )

  test('of IPv4 is counted alone, mapped into IPv6 or not', () => {
    expect(networkOf('::ffff:192.0.2.1')).toBe(networkOf('192.0.2.1'))
    expect(networkOf('192.0.2.2')).not.toBe(networkOf('192.0.2.1'))
  })

  test('of IPv6 is counted with the others of its subscriber', () => {
    expect(networkOf('2001:db8:1:2:ffff::1')).toBe(networkOf('2001:db8:1:2::2'))
    expect(networkOf('2001:db8:1:3::2')).not.toBe(networkOf('2001:db8:1:2::2'))
  })

  test('of IPv6 lies in a site of 65,536 such networks, one of IPv4 in none', () => {
    expect(siteOf('2001:db8:1:ffff::1')).toBe(siteOf('2001:db8:1::2'))
    expect(siteOf('2001:db8:2::2')).not.toBe(siteOf('2001:db8:1::2'))
    for (const address of ['192.0.2.1', '::ffff:192.0.2.1', 'unix']) expect(siteOf(address)).toBeUndefined()
  })
})
