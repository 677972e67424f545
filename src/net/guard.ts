/**
 * Which addresses we connect to on somebody else's word: the global internet, and the networks that the operator has opened. Asked
 * with the very address that is connected to. An allow rule, because lists of what to refuse have always missed a form.
 */
import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'
import { liesIn, type Network } from '#base'

export interface AddressGuard {
  allows(ip: string): boolean
  /** Is told which addresses of a host were not connected to. */
  refused?(host: string, addresses: readonly string[]): void
}

type Address = ipaddr.IPv4 | ipaddr.IPv6

/** All that the IANA has given out as global unicast; the special registries inside it are ipaddr.js's ranges. */
const globalUnicast = ipaddr.IPv6.parse('2000::')
const globalUnicastBits = 3
/** Global by number and yet the machine's own: the metadata service of Azure. */
const metadata = new Set(['168.63.129.16'])

/** Anything but an address in its usual text form is refused. An IPv6 address that carries IPv4 ones is judged by these. */
export function openGuard(allowed: readonly Network[]): AddressGuard {
  const isOpened = (address: Address) => liesIn(allowed, address.toString())
  return {
    allows(ip) {
      if (isIP(ip) === 0 || !ipaddr.isValid(ip)) return false
      const address = ipaddr.process(ip)
      if (isOpened(address)) return true
      const inside = address instanceof ipaddr.IPv6 ? embedded(address) : []
      if (inside.length > 0) return inside.every((four) => isOpened(four) || isGlobal(four))
      return isGlobal(address)
    },
  }
}

function isGlobal(address: Address): boolean {
  if (address.range() !== 'unicast' || metadata.has(address.toString())) return false
  return address instanceof ipaddr.IPv4 || address.match(globalUnicast, globalUnicastBits)
}

/** The IPv4 addresses that packets to this address would be carried to; none for most. IPv4-mapped ones are unwrapped before. */
function embedded(address: ipaddr.IPv6): ipaddr.IPv4[] {
  const octets = address.toByteArray()
  const at = (offset: number, mask = 0) => new ipaddr.IPv4(octets.slice(offset, offset + 4).map((octet) => octet ^ mask))
  // RFC 6052: the well-known prefix of NAT64. Networks with IPv6 alone reach all of IPv4 by it, so it cannot simply be refused.
  if (address.match(ipaddr.IPv6.parse('64:ff9b::'), 96)) return [at(12)]
  // RFC 3056: 6to4.
  if (address.match(ipaddr.IPv6.parse('2002::'), 16)) return [at(2)]
  // RFC 4380: Teredo, the server's address and the client's, inverted.
  if (address.match(ipaddr.IPv6.parse('2001::'), 32)) return [at(4), at(12, 0xff)]
  // RFC 5214: ISATAP, in the interface's half of any prefix.
  const isIsatap = (octets[8] === 0 || octets[8] === 2) && octets[9] === 0 && octets[10] === 0x5e && octets[11] === 0xfe
  return isIsatap && isGlobal(address) ? [at(12)] : []
}
