/** Networks of addresses: which one an address lies in, and whose connections are counted together. */
import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'

/** In CIDR form. */
export type Network = readonly [ipaddr.IPv4 | ipaddr.IPv6, number]

/** Anything but an address in its usual text form lies in none; an IPv4-mapped one is its IPv4 address. */
export function liesIn(networks: readonly Network[], address: string): boolean {
  if (networks.length === 0 || isIP(address) === 0 || !ipaddr.isValid(address)) return false
  const parsed = ipaddr.process(address)
  return networks.some(([network, bits]) => network.kind() === parsed.kind() && parsed.match(network, bits))
}

/** The network that a stranger is counted as: an IPv4 address, or the first 64 bits of an IPv6 one, which one subscriber has to himself. */
export function networkOf(address: string): string {
  if (!ipaddr.isValid(address)) return 'unknown'
  const parsed = ipaddr.process(address)
  return parsed.kind() === 'ipv4' ? parsed.toString() : parsed.toByteArray().slice(0, 8).join('.')
}

/** The first 48 bits of an IPv6 address, of which one subscriber may have 65,536 networks; undefined for any other. */
export function siteOf(address: string): string | undefined {
  if (!ipaddr.isValid(address)) return undefined
  const parsed = ipaddr.process(address)
  return parsed.kind() === 'ipv6' ? parsed.toByteArray().slice(0, 6).join('.') : undefined
}
