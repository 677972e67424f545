/**
 * DNS records of the platform's own names: host, return path with its report address, SPF, tracking, sandbox sender and egress sources.
 * Lists the records to publish and checks the published ones. DNS failures never throw.
 */
import { BlockList, isIP } from 'node:net'
import { dnsText } from '#dkim'
import { completeAnswer, type DnsAnswer, isTlsReportRecord, type Resolver } from '#net'
import { parseKeyRecord } from './dkim-record.ts'
import { findDmarcRecord, isDmarcRecord, organisationalDomainOf } from './dmarc-record.ts'
import { type RecordStatus, reportAuthorisationOf, returnPathDomainOf, tlsReportName } from './dns-records.ts'
import type { PlatformKey } from './platform-key.ts'
import { isSpf, parseSpf } from './spf.ts'

export interface PlatformRecord {
  type: 'A' | 'AAAA' | 'MX' | 'TXT' | 'CNAME' | 'PTR'
  name: string
  value: string
  /** null: the DNS lookup failed. */
  status: RecordStatus | null
  found: string[] | null
}

export interface PlatformDeps {
  resolver: Resolver
  hostname: string
  key: PlatformKey
  /** Public addresses of this machine's interfaces. */
  ownAddresses: readonly string[]
  /** Egress sources, with their EHLO names. */
  sources?: readonly { address: string; ehloName: string }[]
  /** The address for TLS reports about the return-path name; without it their record is not listed. */
  reportAddress?: string | undefined
}

/** IPv6 first, then by their text: the order of a DNS answer changes. */
const inOrder = (one: string, other: string) => isIP(other) - isIP(one) || (one < other ? -1 : 1)

const addressesOf = async (resolver: Resolver, name: string) => completeAnswer(await resolver.addresses(name, 'fresh'))

const noAddress = '<the public IPv4 address of this server>'

type Names = Pick<PlatformRecord, 'type' | 'name' | 'value'>

/** Missing if no plausible record exists, Invalid if it is not `right`. */
function judge(
  record: Names,
  answer: DnsAnswer<string[]>,
  right: (found: string[]) => boolean,
  meant: (text: string) => boolean = () => true,
): PlatformRecord {
  if (answer.kind === 'trouble') return { ...record, status: null, found: null }
  const found = answer.kind === 'found' ? answer.value.filter(meant) : []
  return { ...record, status: found.length === 0 ? 'Missing' : right(found) ? 'OK' : 'Invalid', found }
}

const sameName = (a: string, b: string) => a.toLowerCase().replace(/\.$/, '') === b.toLowerCase()
const typeOf = (address: string) => (isIP(address) === 6 ? ('AAAA' as const) : ('A' as const))
const mechanismOf = (address: string) => (isIP(address) === 6 ? `ip6:${address}` : `ip4:${address}`)

/** Whether the SPF record permits all of these addresses. */
function allows(text: string, addresses: readonly string[]): boolean {
  const list = new BlockList()
  for (const [, , address = '', bits] of text.matchAll(/(?:^|\s)\+?(ip4|ip6):([0-9a-f.:]+)(?:\/(\d{1,3}))?/gi)) {
    const family = isIP(address) === 6 ? 'ipv6' : 'ipv4'
    const width = Number(bits ?? (family === 'ipv6' ? 128 : 32))
    if (isIP(address) !== 0 && width <= (family === 'ipv6' ? 128 : 32)) list.addSubnet(address, width, family)
  }
  return addresses.every((address) => list.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4'))
}

const includes = (text: string, name: string) =>
  parseSpf(text).mechanisms.some((one) => one.name === 'include' && sameName(one.value, name))

/** `203.0.113.9` as `9.113.0.203.in-addr.arpa`. */
function reverseName(address: string): string {
  if (isIP(address) === 4) return `${address.split('.').reverse().join('.')}.in-addr.arpa`
  const [head = '', tail = ''] = address.toLowerCase().split('::')
  const [first, last] = [head, tail].map((part) => part.split(':').filter((group) => group !== ''))
  const groups = address.includes('::')
    ? [...(first ?? []), ...Array<string>(8 - (first?.length ?? 0) - (last?.length ?? 0)).fill('0'), ...(last ?? [])]
    : (first ?? [])
  const digits = groups.map((group) => group.padStart(4, '0')).join('')
  return `${[...digits].reverse().join('.')}.ip6.arpa`
}

/** Long because it is the list of the records. */
export async function platformRecords(deps: PlatformDeps): Promise<PlatformRecord[]> {
  const { resolver, hostname, key, ownAddresses, sources = [], reportAddress } = deps
  const [host, returnPath, spf, tracking] = [hostname, returnPathDomainOf(hostname), `spf.${hostname}`, `track.${hostname}`]
  const published = await addressesOf(resolver, host)
  const addresses = published.kind === 'found' ? published.value.toSorted(inOrder) : ownAddresses
  const hostRecords =
    addresses.length === 0
      ? [judge({ type: 'A', name: host, value: noAddress }, published, () => false)]
      : addresses.map((value) => judge({ type: typeOf(value), name: host, value }, published, (found) => found.includes(value)))

  const mx = await resolver.mx(returnPath, 'fresh')
  const mxTexts: DnsAnswer<string[]> =
    mx.kind === 'found' ? { kind: 'found', value: mx.value.map(({ priority, exchange }) => `${priority} ${exchange}`) } : mx
  const isMx = (found: string[]) => found.some((one) => sameName(one.split(' ')[1] ?? '', host))

  const sending = [...new Set([...addresses, ...sources.map((one) => one.address)])]
  const permitted = sending.length === 0 ? 'ip4:PUBLIC_IPV4_ADDRESS' : sending.map(mechanismOf).join(' ')
  const authorisation = reportAuthorisationOf(hostname)
  const [returnPathTexts, spfTexts, keyTexts, alias, reportTexts] = await Promise.all([
    resolver.txt(returnPath, 'fresh'),
    resolver.txt(spf, 'fresh'),
    resolver.txt(`${key.selector}._domainkey.${key.name}`, 'fresh'),
    resolver.cname(tracking, 'fresh'),
    // Any name below the wildcard.
    resolver.txt(authorisation.name.replace('*', 'example.com'), 'fresh'),
  ])
  const track = alias.kind === 'found' || alias.kind === 'trouble' ? alias : await trackingAddresses(resolver, tracking, published)
  const isTrack = (found: string[]) => found.some((one) => sameName(one, host)) || found.every((one) => addresses.includes(one))
  const isKey = ([text = '', ...more]: string[]) => {
    const parsed = parseKeyRecord(text)
    return more.length === 0 && parsed.kind === 'key' && parsed.publicKey === key.rsaPublic
  }
  const reverse = await Promise.all(addresses.map((address) => reverseRecord(resolver, host, address, published)))
  const others = sources.filter((one) => !(sameName(one.ehloName, host) && addresses.includes(one.address)))
  return [
    ...hostRecords,
    judge({ type: 'MX', name: returnPath, value: `10 ${host}` }, mxTexts, isMx),
    judge(
      { type: 'TXT', name: returnPath, value: `v=spf1 include:${spf} ~all` },
      returnPathTexts,
      (found) => found.length === 1 && includes(found[0] ?? '', spf),
      isSpf,
    ),
    judge(
      { type: 'TXT', name: spf, value: `v=spf1 ${permitted} ~all` },
      spfTexts,
      (found) => found.length === 1 && sending.length > 0 && allows(found[0] ?? '', sending),
      isSpf,
    ),
    judge({ type: 'CNAME', name: tracking, value: host }, track, isTrack),
    judge({ type: 'TXT', name: `${key.selector}._domainkey.${key.name}`, value: dnsText('rsa', key.rsaPublic) }, keyTexts, isKey),
    judge({ type: 'TXT', ...authorisation }, reportTexts, (found) => found.some(isDmarcRecord)),
    ...(await policyOfSender(resolver, key.name, host)),
    ...(reportAddress === undefined ? [] : await tlsReportsOf(resolver, returnPath, reportAddress)),
    ...reverse,
    ...(await Promise.all(others.map((one) => recordsOfSource(resolver, one)))).flat(),
  ]
}

/**
 * The DMARC record of the sandbox sender's domain, if it is the host name or below it. The policy of the organisation covers a name without
 * a record (RFC 7489 section 6.6.3), and a record of its own would weaken it. Then there is none to publish.
 */
async function policyOfSender(resolver: Resolver, domain: string, host: string): Promise<PlatformRecord[]> {
  const isOwn = sameName(domain, host) || domain.toLowerCase().endsWith(`.${host.toLowerCase()}`)
  const top = organisationalDomainOf(domain)
  if (!isOwn || top === null) return []
  const record = { type: 'TXT' as const, name: `_dmarc.${domain}`, value: 'v=DMARC1; p=none' }
  const above = top === domain ? { kind: 'none' } : await findDmarcRecord(top, (name) => resolver.txt(name, 'fresh'))
  if (above.kind === 'trouble') return [{ ...record, status: null, found: null }]
  if (above.kind !== 'none') return []
  const answer = await resolver.txt(record.name, 'fresh')
  return hasOther(answer, isDmarcRecord, (text) => text === record.value) ? [] : [judge(record, answer, isSingle, isDmarcRecord)]
}

const isSingle = (found: string[]) => found.length === 1

/** A record of the operator replaces that of Postrider: two records of this kind would make both void. */
const hasOther = (answer: DnsAnswer<string[]>, isKind: (text: string) => boolean, isOwn: (text: string) => boolean) =>
  answer.kind === 'found' && answer.value.some((text) => isKind(text) && !isOwn(text))

/** Asks for TLS reports about mail to the return paths and report addresses (RFC 8460 section 3). */
async function tlsReportsOf(resolver: Resolver, domain: string, address: string): Promise<PlatformRecord[]> {
  const record = { type: 'TXT' as const, name: tlsReportName(domain), value: `v=TLSRPTv1; rua=mailto:${address}` }
  const answer = await resolver.txt(record.name, 'fresh')
  // An older secret made another address.
  const isOwn = (text: string) => /^v=TLSRPTv1; rua=mailto:[^,;]+$/.test(text) && text.toLowerCase().endsWith(`@${domain.toLowerCase()}`)
  return hasOther(answer, isTlsReportRecord, isOwn) ? [] : [judge(record, answer, isSingle, isTlsReportRecord)]
}

/** Address records that lead to the host are as good as an alias. Unknown while the host's own are. */
async function trackingAddresses(resolver: Resolver, tracking: string, published: DnsAnswer<string[]>): Promise<DnsAnswer<string[]>> {
  const answer = await addressesOf(resolver, tracking)
  return answer.kind === 'found' && published.kind === 'trouble' ? published : answer
}

/** The PTR of an address that the host's own records confirm. */
async function reverseRecord(resolver: Resolver, host: string, address: string, published: DnsAnswer<string[]>): Promise<PlatformRecord> {
  const names = published.kind === 'trouble' ? published : await resolver.ptr(address, 'fresh')
  const confirmed = published.kind === 'found' && published.value.includes(address)
  const isRight = (found: string[]) => confirmed && found.some((one) => sameName(one, host))
  return judge({ type: 'PTR', name: reverseName(address), value: host }, names, isRight)
}

/** The name's address record, and the PTR back to the name. */
async function recordsOfSource(
  resolver: Resolver,
  { address, ehloName }: { address: string; ehloName: string },
): Promise<PlatformRecord[]> {
  const [named, names] = await Promise.all([addressesOf(resolver, ehloName), resolver.ptr(address, 'fresh')])
  return [
    judge({ type: typeOf(address), name: ehloName, value: address }, named, (found) => found.includes(address)),
    judge({ type: 'PTR', name: reverseName(address), value: ehloName }, names, (found) => found.some((one) => sameName(one, ehloName))),
  ]
}
