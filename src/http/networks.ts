/** The network of an address, for counting strangers: of IPv6 the first 64 bits, which one subscriber has to himself. */
import ipaddr from 'ipaddr.js'

export function networkOf(address: string): string {
  if (!ipaddr.isValid(address)) return 'unknown'
  const parsed = ipaddr.process(address)
  return parsed.kind() === 'ipv4' ? parsed.toString() : parsed.toByteArray().slice(0, 8).join('.')
}
