/** Whose connections are counted together: an IPv4 address, or the /64 that one subscriber of IPv6 usually has. */
import ipaddr from 'ipaddr.js'

export function networkOf(address: string): string {
  if (!ipaddr.isValid(address)) return address
  const parsed = ipaddr.process(address)
  return parsed.kind() === 'ipv4' ? parsed.toString() : (parsed as ipaddr.IPv6).parts.slice(0, 4).join(':')
}
