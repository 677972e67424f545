/**
 * The addresses that Postrider may connect to when an untrusted party names them: the global internet, and networks that the operator has
 * allowed. The check uses the very address of the connection. It is an allow list, because deny lists have always missed a form.
 */
import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'
import { isInNetwork, type Network } from '#base'

export interface AddressGuard {
  allows(ip: string): boolean
  /** Called with the addresses of a host that were refused. */
  refused?(host: string, addresses: readonly string[]): void
}

type Address = ipaddr.IPv4 | ipaddr.IPv6

/** All global unicast space allocated by IANA; ipaddr.js knows the special registries inside it as ranges. */
const globalUnicast = ipaddr.IPv6.parse('2000::')
const globalUnicastBits = 3
/** Globally routed by number but local to the machine: the metadata service of Azure. */
const metadata = new Set(['168.63.129.16'])

/** Refuses any text but an address in its usual form. An IPv6 address that carries IPv4 addresses is judged by these. */
export function openGuard(allowed: readonly Network[]): AddressGuard {
  const isOpened = (address: Address) => isInNetwork(allowed, address.toString())
  return {
    allows(ip) {
      if (isIP(ip) === 0 || !ipaddr.isValid(ip)) return false
      const address = ipaddr.process(ip)
      if (isOpened(address)) return true
      const inside = address instanceof ipaddr.IPv6 ? embedded(address) : []
      if (inside.length > 0) return inside.every((ipv4) => isOpened(ipv4) || isGlobal(ipv4))
      return isGlobal(address)
    },
  }
}

function isGlobal(address: Address): boolean {
  if (address.range() !== 'unicast' || metadata.has(address.toString())) return false
  return address instanceof ipaddr.IPv4 || address.match(globalUnicast, globalUnicastBits)
}

/**
 * The IPv4 addresses to which packets for this address would be carried; usually empty. IPv4-mapped addresses have been unwrapped before.
 */
function embedded(address: ipaddr.IPv6): ipaddr.IPv4[] {
  const octets = address.toByteArray()
  const at = (offset: number, mask = 0) => new ipaddr.IPv4(octets.slice(offset, offset + 4).map((octet) => octet ^ mask))
  // RFC 6052: the well-known prefix of NAT64. IPv6-only networks reach all of IPv4 through it, so it cannot simply be refused.
  if (address.match(ipaddr.IPv6.parse('64:ff9b::'), 96)) return [at(12)]
  // RFC 3056: 6to4.
  if (address.match(ipaddr.IPv6.parse('2002::'), 16)) return [at(2)]
  // RFC 4380: Teredo, with the server's address and the inverted client's address.
  if (address.match(ipaddr.IPv6.parse('2001::'), 32)) return [at(4), at(12, 0xff)]
  // RFC 5214: ISATAP, in the interface half of any prefix.
  const isIsatap = (octets[8] === 0 || octets[8] === 2) && octets[9] === 0 && octets[10] === 0x5e && octets[11] === 0xfe
  return isIsatap && isGlobal(address) ? [at(12)] : []
}
