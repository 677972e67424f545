/**
 * DNS blocklists by RFC 5782: the question about an address, and the meaning of the answer. A list counts only while its test entries answer as
 * section 5 demands: a list that is shut down often lists every address or none.
 */
import ipaddr from 'ipaddr.js'
import type { DnsAnswer, Resolver } from '#net'

/** The name below the zone for an address: reversed octets, or reversed nibbles of IPv6 (RFC 5782 section 2). */
export function blocklistName(address: string): string {
  const parsed = ipaddr.parse(address)
  const octets = parsed.toByteArray()
  if (parsed.kind() === 'ipv4') return octets.reverse().join('.')
  return [...octets.map((octet) => octet.toString(16).padStart(2, '0')).join('')].reverse().join('.')
}

/** The entries that every list has, and has not (RFC 5782 section 5). */
const testEntries = {
  ipv4: { listed: blocklistName('127.0.0.2'), absent: blocklistName('127.0.0.1') },
  ipv6: { listed: blocklistName('::ffff:7f00:2'), absent: blocklistName('::ffff:7f00:1') },
} as const

/** `ignored`: the list works wrongly. `silent`: it did not answer, or refuses this resolver. */
type BlocklistVerdict =
  | { kind: 'listed'; codes: string[] }
  | { kind: 'clear' }
  | { kind: 'ignored'; why: string }
  | { kind: 'silent'; why: string }

type Answer = DnsAnswer<string[]>

const isCode = (address: string) => address.startsWith('127.')
/** Spamhaus: wrong name, public resolver, too many queries. Other lists do not use this network for listings. */
const isError = (code: string) => code.startsWith('127.255.255.')
const maxCodes = 20

type Listing = { kind: 'codes'; codes: string[] } | { kind: 'absent' } | Extract<BlocklistVerdict, { kind: 'ignored' | 'silent' }>

/** Answers outside 127.0.0.0/8 are no listings: the name servers of the zone then belong to another owner. */
function listingOf(answer: Answer): Listing {
  if (answer.kind === 'trouble') return { kind: 'silent', why: `no answer (${answer.code})` }
  if (answer.kind !== 'found') return { kind: 'absent' }
  const codes = answer.value.filter(isCode).slice(0, maxCodes).sort()
  if (codes.length === 0) return { kind: 'ignored', why: 'its answers are outside 127.0.0.0/8' }
  if (codes.every(isError)) return { kind: 'silent', why: `it refuses this resolver (${codes.join(', ')})` }
  return { kind: 'codes', codes: codes.filter((code) => !isError(code)) }
}

/** The meaning of three answers: about the entry that must exist, the one that must not, and the address. */
export function blocklistVerdict(answers: { listed: Answer; absent: Answer; address: Answer }): BlocklistVerdict {
  const [listed, absent, address] = [listingOf(answers.listed), listingOf(answers.absent), listingOf(answers.address)]
  for (const one of [listed, absent, address]) if (one.kind === 'silent') return one
  for (const one of [listed, absent, address]) if (one.kind === 'ignored') return one
  if (listed.kind === 'absent') return { kind: 'ignored', why: 'its test entry is missing' }
  if (absent.kind === 'codes') return { kind: 'ignored', why: 'it lists every address' }
  return address.kind === 'codes' ? { kind: 'listed', codes: address.codes } : { kind: 'clear' }
}

/** Asks lists about addresses. The test entries of a zone are asked once for all addresses. */
export function openBlocklists(resolver: Pick<Resolver, 'addresses'>): { ask(zone: string, address: string): Promise<BlocklistVerdict> } {
  const tests = new Map<string, Promise<{ listed: Answer; absent: Answer }>>()
  const ask = (name: string, zone: string) => resolver.addresses(`${name}.${zone}`, 'fresh')
  const testOf = (zone: string, family: keyof typeof testEntries) => {
    const key = `${family} ${zone}`
    const known = tests.get(key)
    if (known) return known
    const { listed, absent } = testEntries[family]
    const asking = Promise.all([ask(listed, zone), ask(absent, zone)]).then(([first, second]) => ({ listed: first, absent: second }))
    tests.set(key, asking)
    return asking
  }
  return {
    async ask(zone, address) {
      const test = await testOf(zone, ipaddr.parse(address).kind())
      return blocklistVerdict({ ...test, address: await ask(blocklistName(address), zone) })
    },
  }
}
