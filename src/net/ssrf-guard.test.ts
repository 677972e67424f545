import fc from 'fast-check'
import ipaddr from 'ipaddr.js'
import { describe, expect, test } from 'vitest'
import type { Network } from '#base'
import { openGuard } from './ssrf-guard.ts'

const closed = openGuard([])
const opening = (...networks: string[]) => openGuard(networks.map((network): Network => ipaddr.parseCIDR(network)))

/** One address of each non-global entry of the IANA special-purpose registries, and of each multicast block. */
const special = `0.1.2.3 10.1.2.3 100.64.0.1 100.100.100.200 127.0.0.1 127.255.255.254 169.254.169.254 172.16.0.1 172.31.255.254 192.0.0.1
  192.0.0.192 192.0.2.1 192.88.99.1 192.168.0.1 198.18.0.1 198.19.255.254 198.51.100.1 203.0.113.1 224.0.0.1 239.1.2.3 240.0.0.1
  255.255.255.255 168.63.129.16 :: ::1 100::1 100:0:0:1::1 2001:2::1 2001:10::1 2001:20::1 2001:db8::1 3fff::1 5f00::1 fc00::1
  fd00:ec2::254 fe80::1 fec0::1 ff02::1 ff0e::1 64:ff9b:1::808:808 4000::1`.split(/\s+/)

const global = `1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 172.15.255.255 172.32.0.0 192.167.255.255 193.0.0.1
  223.255.255.255 2606:4700::1111 2a00:1450:4001::1a 2001:4860:4860::8888 2620:fe::fe`.split(/\s+/)

const privateFours = '127.0.0.1 10.0.0.1 169.254.169.254 192.168.1.1 100.64.0.1 0.0.0.0 168.63.129.16'.split(' ')

const hex = (ipv4: string) => {
  const [a = 0, b = 0, c = 0, d = 0] = ipaddr.IPv4.parse(ipv4).octets
  const group = (high: number, low: number) => ((high << 8) | low).toString(16)
  return { first: group(a, b), second: group(c, d), inverted: [group(a ^ 255, b ^ 255), group(c ^ 255, d ^ 255)].join(':') }
}

/** Every form in which IPv6 carries IPv4. */
const carrying = (ipv4: string) => {
  const { first, second, inverted } = hex(ipv4)
  return [
    `::ffff:${ipv4}`,
    `::ffff:${first}:${second}`,
    `64:ff9b::${ipv4}`,
    `64:ff9b::${first}:${second}`,
    `2002:${first}:${second}::1`,
    `2001:0:${first}:${second}:0:0:${hex('8.8.8.8').inverted}`,
    `2001:0:808:808:0:0:${inverted}`,
    `2a00:1450::5efe:${first}:${second}`,
    `2a00:1450::200:5efe:${first}:${second}`,
  ]
}

describe('without opened networks', () => {
  test.each(special)('%s is refused', (address) => expect(closed.allows(address)).toBe(false))
  test.each(global)('%s is allowed', (address) => expect(closed.allows(address)).toBe(true))
  test.each(privateFours.flatMap(carrying))('%s is refused for the IPv4 address inside', (address) => {
    expect(closed.allows(address)).toBe(false)
  })
  test.each(carrying('8.8.8.8'))('%s is allowed for the IPv4 address inside', (address) => expect(closed.allows(address)).toBe(true))
  test.each(['', 'localhost', '127.1', '0x7f.0.0.1', '2130706433', '0177.0.0.1', '8.8', '010.8.8.8', '[::1]', '8.8.8.8 ', '8.8.8.8/32'])(
    '%j, no address in its usual form, is refused',
    (text) => expect(closed.allows(text)).toBe(false),
  )
  test('an address with a zone is refused', () => expect(closed.allows('fe80::1%eth0')).toBe(false))
})

describe('an opened network', () => {
  test('allows its own addresses, in IPv6 forms too, and no others', () => {
    const guard = opening('10.0.0.0/8', '::1/128')
    for (const address of ['10.1.2.3', '::1', ...carrying('10.1.2.3').slice(0, 5)]) expect(guard.allows(address), address).toBe(true)
    for (const address of ['127.0.0.1', '192.168.0.1', '::2', 'fc00::1']) expect(guard.allows(address), address).toBe(false)
  })
})

describe('always', () => {
  test('an IPv4 address is judged alike in every form that carries it', () => {
    fc.assert(
      fc.property(fc.ipV4(), (ipv4) => {
        const bare = closed.allows(ipv4)
        for (const form of carrying(ipv4)) expect(closed.allows(form), form).toBe(bare)
      }),
    )
  })

  test('outside 2000::/3 only addresses that carry IPv4 are allowed', () => {
    fc.assert(
      fc.property(fc.ipV6(), (ipv6) => {
        const address = ipaddr.parse(ipv6)
        const isCarrier = address.range() === 'ipv4Mapped' || address.range() === 'rfc6052'
        if (!isCarrier && ((address.toByteArray()[0] ?? 0) & 0xe0) !== 0x20) expect(closed.allows(ipv6)).toBe(false)
      }),
    )
  })

  test('any text gets an answer', () => {
    fc.assert(fc.property(fc.string(), (text) => typeof closed.allows(text) === 'boolean'))
  })
})
