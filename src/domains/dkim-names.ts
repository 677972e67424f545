/** The DNS records of DKIM keys: at the sending domain's own name, and below the platform's name, where a domain's CNAME records point. */
import { dnsText } from '#dkim'
import { type DnsRecord, ed25519Selector, nameInZone, zoneOf } from './dns-records.ts'
import { selectorPair } from './rotation-step.ts'

/** The parent of the TXT records that CNAME records of sending domains point to. */
const dkimParentOf = (hostname: string) => `dkim.${hostname}`

/** The name of a selector's TXT record below the platform's name. The id keeps two tenants' domains apart. */
const targetOf = (selector: string, domainId: number, hostname: string) => `${selector}.${domainId}.${dkimParentOf(hostname)}`

interface KeyPairFacts {
  selector: string
  rsaPublic: string
  ed25519Public: string
}

const unchecked = { status: null, found: [], problem: null, suggestion: null }

function recordAt(domain: string, selector: string, type: 'TXT' | 'CNAME', value: string): DnsRecord {
  const fullName = `${selector}._domainkey.${domain}`
  return { type, name: nameInZone(fullName, zoneOf(domain)), fullName, value, ...unchecked }
}

/** The TXT records of one pair of keys at the domain's own name. */
export const keyRecordsOf = (domain: string, key: KeyPairFacts): { rsa: DnsRecord; ed25519: DnsRecord } => ({
  rsa: recordAt(domain, key.selector, 'TXT', dnsText('rsa', key.rsaPublic)),
  ed25519: recordAt(domain, ed25519Selector(key.selector), 'TXT', dnsText('ed25519', key.ed25519Public)),
})

/** The CNAME records that replace the TXT records permanently: those of the RSA keys, then those of the Ed25519 keys. */
export function aliasRecordsOf(domain: { id: number; name: string; selector: string; ownKey: boolean }, hostname: string): DnsRecord[] {
  if (domain.ownKey) return []
  const pair = selectorPair(domain.selector)
  return [...pair, ...pair.map(ed25519Selector)].map((selector) =>
    recordAt(domain.name, selector, 'CNAME', targetOf(selector, domain.id, hostname)),
  )
}

/** How many of `aliasRecordsOf` delegate the RSA keys. */
export const rsaAliases = 2

/** The TXT records below the platform's name for one pair of keys. */
export const platformKeyRecords = (domainId: number, key: KeyPairFacts, hostname: string): { name: string; value: string }[] => [
  { name: targetOf(key.selector, domainId, hostname), value: dnsText('rsa', key.rsaPublic) },
  { name: targetOf(ed25519Selector(key.selector), domainId, hostname), value: dnsText('ed25519', key.ed25519Public) },
]
