/** Wrong and unusual behaviour of DNS. */
import { type Row, untilGivenUp } from './row-type.ts'

const mx = (domain: string, ...addresses: string[]) => ({
  [domain]: { MX: [`10 mx.${domain}`] },
  [`mx.${domain}`]: {
    A: addresses.filter((one) => !one.includes(':')),
    ...(addresses.some((one) => one.includes(':')) ? { AAAA: addresses.filter((one) => one.includes(':')) } : {}),
  },
})

/** The resolver asks three times. */
const unanswered = ['dnsQueryMs', 'dnsQueryMs', 'dnsQueryMs'] as const

const refusedNetworks = {
  'a link-local address by IPv6': 'fe80::1',
  'a private network': '10.0.0.1',
  'a link-local address with cloud metadata': '169.254.169.254',
  'a private address inside NAT64': '64:ff9b::a00:1',
  'a private address mapped into IPv6': '::ffff:10.0.0.1',
  'the unspecified address': '0.0.0.0',
}

const chain = (domain: string, ip: string) => ({
  [domain]: { MX: [`10 c0.${domain}`] },
  ...Object.fromEntries(Array.from({ length: 50 }, (_, index) => [`c${index}.${domain}`, { CNAME: [`c${index + 1}.${domain}`] }])),
  [`c50.${domain}`]: { A: [ip] },
})

export const dnsRows: Row[] = [
  { name: 'NXDOMAIN for the domain', dns: () => ({}), comesTo: ['hardfail invalid_recipient 5.1.2'], maxConnections: 0 },
  { name: 'no MX, but an address', dns: ({ domain, ip }) => ({ [domain]: { A: [ip] } }), comesTo: ['sent'] },
  {
    name: 'neither MX nor address',
    dns: ({ domain }) => ({ [domain]: { TXT: ['v=spf1 -all'] } }),
    comesTo: ['hardfail dns_error 5.4.4'],
    maxConnections: 0,
  },
  {
    name: 'a null MX',
    dns: ({ domain, ip }) => ({ [domain]: { MX: ['0 .'], A: [ip] } }),
    comesTo: ['hardfail not_accepting_mail 5.1.10'],
    maxConnections: 0,
  },
  {
    name: 'a null MX beside a real one',
    dns: ({ domain, ip }) => ({ ...mx(domain, ip), [domain]: { MX: ['0 .', `10 mx.${domain}`] } }),
    comesTo: ['sent'],
  },
  ...(['SERVFAIL', 'REFUSED', 'silence', 'pointer loop', 'garbage', 'truncated for good'] as const).map(
    (how): Row => ({
      name: `${how === 'silence' ? 'no answer' : how === 'truncated for good' ? 'truncated over UDP and TCP' : how} for the domain`,
      prepare: (dns, { domain }) => dns.fail(domain, how),
      comesTo: untilGivenUp('dns_error 4.4.3'),
      ...(how === 'silence' ? { waits: unanswered } : {}),
      maxConnections: 0,
    }),
  ),
  ...(['truncated', 'forged id first', 'forged question first', 'forged source first'] as const).map(
    (how): Row => ({
      name: `a DNS answer ${how === 'truncated' ? 'cut off over UDP' : `with ${how.replace(' first', '')} ahead of the true one`}`,
      prepare: (dns, { domain }) => dns.fail(domain, how),
      comesTo: ['sent'],
    }),
  ),
  {
    name: 'only MX hosts that do not exist',
    dns: ({ domain }) => ({ [domain]: { MX: [`10 gone1.${domain}`, `20 gone2.${domain}`] } }),
    comesTo: untilGivenUp('dns_error 4.4.4'),
  },
  {
    name: 'SERVFAIL for the first of two MX hosts',
    dns: ({ domain, ip }) => ({ ...mx(domain, ip), [domain]: { MX: [`5 sick.${domain}`, `10 mx.${domain}`] } }),
    prepare: (dns, { domain }) => dns.fail(`sick.${domain}`, 'SERVFAIL'),
    comesTo: ['sent'],
  },
  {
    name: 'no answer for the first of two MX hosts',
    dns: ({ domain, ip }) => ({ ...mx(domain, ip), [domain]: { MX: [`5 mute.${domain}`, `10 mx.${domain}`] } }),
    prepare: (dns, { domain }) => dns.fail(`mute.${domain}`, 'silence'),
    comesTo: ['sent'],
    waits: unanswered,
  },
  {
    name: 'an MX host that is a CNAME',
    dns: ({ domain, ip }) => ({
      [domain]: { MX: [`10 alias.${domain}`] },
      [`alias.${domain}`]: { CNAME: [`mx.${domain}`] },
      [`mx.${domain}`]: { A: [ip] },
    }),
    comesTo: ['sent'],
  },
  {
    name: 'a domain that is a CNAME',
    dns: ({ domain, ip }) => ({ ...mx(`real.${domain}`, ip), [domain]: { CNAME: [`real.${domain}`] } }),
    comesTo: ['sent'],
  },
  { name: 'a chain of 50 CNAMEs', dns: ({ domain, ip }) => chain(domain, ip), comesTo: ['sent'] },
  {
    name: 'a CNAME loop',
    dns: ({ domain }) => ({ [domain]: { CNAME: [`b.${domain}`] }, [`b.${domain}`]: { CNAME: [domain] } }),
    comesTo: untilGivenUp('dns_error 4.4.3'),
  },
  {
    name: 'an MX that is an IP address',
    dns: ({ domain }) => ({ [domain]: { MX: ['10 8.8.8.8'] } }),
    comesTo: ['hardfail dns_error 5.4.4'],
  },
  {
    name: 'an MX with a NUL in its name',
    dns: ({ domain, ip }) => ({ [domain]: { MX: [`10 a\0b.${domain}`] }, [`a\0b.${domain}`]: { A: [ip] } }),
    comesTo: ['hardfail dns_error 5.4.4'],
    maxConnections: 0,
  },
  {
    name: 'an MX with a NUL in its name, a second one that works',
    dns: ({ domain, ip }) => ({ [domain]: { MX: [`10 a\0b.${domain}`, `20 mx.${domain}`] }, [`mx.${domain}`]: { A: [ip] } }),
    comesTo: ['sent'],
  },
  {
    name: "Postrider's own name as the only MX",
    dns: ({ domain }) => ({ [domain]: { MX: ['10 house.test'] } }),
    comesTo: ['hardfail protocol_error 5.4.6'],
  },
  {
    name: 'another name of Postrider as the only MX',
    peer: { rude: { connect: '220 house.test ESMTP\r\n' } },
    comesTo: ['hardfail protocol_error 5.4.6'],
    maxConnections: 1,
  },
  {
    name: 'Postrider as the first of two MX hosts',
    dns: ({ domain, ip, deadIp }) => ({
      ...mx(domain, ip),
      [domain]: { MX: [`10 mx.${domain}`, `20 worse.${domain}`] },
      [`worse.${domain}`]: { A: [deadIp] },
    }),
    peer: { rude: { connect: '220 house.test ESMTP\r\n' } },
    comesTo: ['hardfail protocol_error 5.4.6'],
    maxConnections: 1,
  },
  {
    name: 'Postrider as the second of two MX hosts, no server at the first',
    dns: ({ domain, ip, deadIp }) => ({
      ...mx(domain, ip),
      [domain]: { MX: [`5 first.${domain}`, `10 mx.${domain}`] },
      [`first.${domain}`]: { A: [deadIp] },
    }),
    peer: { rude: { connect: '220 house.test ESMTP\r\n' } },
    comesTo: untilGivenUp('connection_error'),
  },
  {
    name: 'another mail server with the same name as the only MX',
    peer: { rude: { connect: '220 house.test ESMTP Other\r\n' } },
    comesTo: ['sent'],
  },
  ...Object.entries(refusedNetworks).map(
    ([what, address]): Row => ({
      name: `an MX host at ${what}`,
      dns: ({ domain }) => mx(domain, address),
      peer: 'nobody',
      comesTo: ['hardfail dns_error 5.4.4'],
    }),
  ),
  {
    name: 'an MX host at a private address, a second one that may be used',
    dns: ({ domain, ip }) => ({
      ...mx(domain, ip),
      [domain]: { MX: [`5 inside.${domain}`, `10 mx.${domain}`] },
      [`inside.${domain}`]: { A: ['10.0.0.1'] },
    }),
    comesTo: ['sent'],
  },
  {
    name: '100 MX hosts, the first ones down',
    dns: ({ domain, ip, deadIp }) => ({
      [domain]: { MX: Array.from({ length: 100 }, (_, index) => `${index} m${index}.${domain}`) },
      [`*.${domain}`]: { A: [deadIp] },
      [`m9.${domain}`]: { A: [ip] },
    }),
    comesTo: ['sent'],
    maxConnections: 1,
  },
  {
    name: '1,000 MX hosts, all down',
    dns: ({ domain, deadIp }) => ({
      [domain]: { MX: Array.from({ length: 1000 }, (_, index) => `${index} m${index}.${domain}`) },
      [`*.${domain}`]: { A: [deadIp] },
    }),
    peer: 'nobody',
    comesTo: untilGivenUp('connection_error'),
  },
  {
    name: 'an MX host with 20 addresses, all dead but the last',
    dns: ({ domain, deadIp, ip }) => mx(domain, ...Array.from({ length: 19 }, (_, index) => deadIp.replace(/\d+$/, String(index + 1))), ip),
    comesTo: ['sent'],
  },
  {
    name: 'a time to live of 0',
    dns: () => ({}),
    prepare(dns, { domain, ip }) {
      dns.set(domain, 'MX', [`10 mx.${domain}`], 0)
      dns.set(`mx.${domain}`, 'A', [ip], 0)
    },
    comesTo: ['sent'],
  },
  {
    name: 'a time to live of 2³¹ s',
    dns: () => ({}),
    prepare(dns, { domain, ip }) {
      dns.set(domain, 'MX', [`10 mx.${domain}`], 2 ** 31)
      dns.set(`mx.${domain}`, 'A', [ip], 2 ** 31)
    },
    comesTo: ['sent'],
  },
  {
    name: 'an unreachable IPv6 address, a working IPv4 one',
    dns: ({ domain, ip, blackHole6 }) => mx(domain, blackHole6, ip),
    comesTo: ['sent'],
  },
]
