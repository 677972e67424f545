/**
 * Checks whether the installation's addresses and name are on blocklists. A list that refuses this resolver must not count as "not listed",
 * so its test entry is queried first (RFC 5782 section 5; Spamhaus's own for names).
 */
import type { DnsAnswer, Resolver } from '#net'
import { blocklistName } from '#reputation'
import { addressesOf, type Check, type CheckResult, checkResult, ok } from './check-result.ts'
import { nameless } from './dns-checks.ts'

interface List {
  zone: string
  of: 'addresses' | 'names'
  /** The test entry, always listed. */
  known: string
  removal: string
}

const lists: readonly List[] = [
  { zone: 'zen.spamhaus.org', of: 'addresses', known: '2.0.0.127', removal: 'https://check.spamhaus.org/' },
  { zone: 'bl.spamcop.net', of: 'addresses', known: '2.0.0.127', removal: 'https://www.spamcop.net/bl.shtml' },
  { zone: 'psbl.surriel.com', of: 'addresses', known: '2.0.0.127', removal: 'https://psbl.org/' },
  { zone: 'dbl.spamhaus.org', of: 'names', known: 'dbltest.com', removal: 'https://check.spamhaus.org/' },
]

/**
 * Spamhaus error codes: wrong name, query through a public resolver, too many queries. Other lists refuse with 127.0.0.1 or a code outside
 * 127/8.
 */
const isRefusal = (code: string) => code.startsWith('127.255.255.') || code === '127.0.0.1' || !code.startsWith('127.')

/** Spamhaus policy list: not for sent mail, but because the provider declares that such addresses do not send mail. */
const isPolicy = (code: string) => code === '127.0.0.10' || code === '127.0.0.11'

const ownResolver = 'Set POSTRIDER_DNS to your own resolver (such as unbound on this machine): such lists refuse large public resolvers'

async function judge(list: List, subject: string, question: string, resolver: Resolver): Promise<CheckResult> {
  const name = `blocklist ${list.zone}: ${subject}`
  const known = codesOf(await resolver.addresses(`${list.known}.${list.zone}`, 'fresh'))
  if (known.kind !== 'codes') return checkResult(name, 'unknown', `the list does not respond to this resolver (${known.why})`, ownResolver)
  if (known.codes.every(isRefusal))
    return checkResult(name, 'unknown', `the list refuses this resolver (${known.codes.join(', ')})`, ownResolver)
  const answer = codesOf(await resolver.addresses(`${question}.${list.zone}`, 'fresh'))
  if (answer.kind === 'absent') return ok(name, 'not listed')
  if (answer.kind === 'trouble') return checkResult(name, 'unknown', `the list did not respond (${answer.why})`, 'Try again')
  const codeList = answer.codes.join(', ')
  if (answer.codes.every(isRefusal)) return checkResult(name, 'unknown', `the list refuses this resolver (${codeList})`, ownResolver)
  if (answer.codes.every(isPolicy))
    return checkResult(
      name,
      'problem',
      `listed by policy (${codeList}): the network provider declares that it sends no mail`,
      `Request removal of the address at ${list.removal}, or send through POSTRIDER_RELAY`,
    )
  return checkResult(name, 'problem', `listed (${codeList})`, `Look up the reason at ${list.removal}, fix it, then request removal there`)
}

type Codes = { kind: 'codes'; codes: string[] } | { kind: 'absent'; why: string } | { kind: 'trouble'; why: string }

function codesOf(answer: DnsAnswer<string[]>): Codes {
  if (answer.kind === 'found') return { kind: 'codes', codes: answer.value }
  if (answer.kind === 'trouble') return { kind: 'trouble', why: answer.code }
  return { kind: 'absent', why: 'the test entry of the list is missing' }
}

export const checkBlocklists: Check = async (deps) => {
  const { resolver, config } = deps
  const addresses = addressesOf(deps)
  const wrongName = nameless(deps) !== undefined
  const lookups = lists.flatMap((list) =>
    list.of === 'names'
      ? (wrongName ? [] : [config.hostname]).map((name) => judge(list, name, name, resolver))
      : addresses.map((address) => judge(list, address, blocklistName(address), resolver)),
  )
  if (addresses.length === 0 && !wrongName)
    return [
      ...(await Promise.all(lookups)),
      checkResult('blocklists', 'unknown', 'this machine has no known public address', 'Publish the address of POSTRIDER_HOSTNAME in DNS'),
    ]
  return Promise.all(lookups)
}
