/** Which addresses we connect to on somebody else's word: the global internet, and networks the operator has opened. */
import ipaddr from 'ipaddr.js'
import type { Network } from '#base'

export interface AddressGuard {
  allows(ip: string): boolean
}

type Address = ipaddr.IPv4 | ipaddr.IPv6

/** Refuses loopback, private, link-local, shared, multicast, reserved and metadata addresses, also inside IPv6 that embeds IPv4. */
export function openGuard(allowed: readonly Network[]): AddressGuard {
  const opened = (address: Address) => allowed.some(([network, bits]) => network.kind() === address.kind() && address.match(network, bits))
  return {
    allows(ip) {
      if (!ipaddr.isValid(ip)) return false
      const address = ipaddr.process(ip)
      if (opened(address)) return true
      return isGlobal(address)
    },
  }
}

function isGlobal(address: Address): boolean {
  if (address.kind() === 'ipv4') return address.range() === 'unicast'
  const six = address as ipaddr.IPv6
  // Only 2000::/3 is given out as global unicast; ranges with an IPv4 address inside are judged by that one too.
  if (six.range() === 'rfc6052' || six.range() === '6to4' || six.range() === 'teredo') return false
  return six.range() === 'unicast' && six.match(ipaddr.IPv6.parse('2000::'), 3)
}
