/** Networks of addresses: CIDR membership, and the network under which a client's connections are counted. */
import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'

/** In CIDR form. */
export type Network = readonly [ipaddr.IPv4 | ipaddr.IPv6, number]

/** A network in CIDR form, or one address; undefined if the text is neither. */
export function networkFrom(text: string): Network | undefined {
  const whole = text.includes('/') ? text : `${text}/${isIP(text) === 6 ? 128 : 32}`
  return ipaddr.isValidCIDR(whole) ? ipaddr.parseCIDR(whole) : undefined
}

/** False for anything but an address in its usual text form. An IPv4-mapped address counts as its IPv4 address. */
export function isInNetwork(networks: readonly Network[], address: string): boolean {
  if (networks.length === 0 || isIP(address) === 0 || !ipaddr.isValid(address)) return false
  const parsed = ipaddr.process(address)
  return networks.some(([network, bits]) => network.kind() === parsed.kind() && parsed.match(network, bits))
}

/** The network that a client is counted as: an IPv4 address, or the first 64 bits of an IPv6 address, which belong to one subscriber. */
export function networkOf(address: string): string {
  if (!ipaddr.isValid(address)) return 'unknown'
  const parsed = ipaddr.process(address)
  return parsed.kind() === 'ipv4' ? parsed.toString() : parsed.toByteArray().slice(0, 8).join('.')
}

/** Networks of which an IPv6 /48 may have the share: it may be that of one subscriber, or all of a large provider. */
export const networksInSite = 4

/** The first 48 bits of an IPv6 address, of which one subscriber may have 65,536 networks; undefined for any other address. */
export function siteOf(address: string): string | undefined {
  if (!ipaddr.isValid(address)) return undefined
  const parsed = ipaddr.process(address)
  return parsed.kind() === 'ipv6' ? parsed.toByteArray().slice(0, 6).join('.') : undefined
}
