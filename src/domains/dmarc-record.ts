/** Reads DMARC records (RFC 7489 section 6.3), in time linear in the length of the text, and finds the record that covers a name. */
import { getDomain } from 'tldts'
import type { DnsAnswer } from '#net'

export const dmarcPolicies = ['none', 'quarantine', 'reject'] as const
export type DmarcPolicy = (typeof dmarcPolicies)[number]

export const isDmarcRecord = (text: string): boolean => /^v\s*=\s*DMARC1\s*(?:;|$)/.test(text)

/** The policy of tag p, in any case; null if the tag is absent or has another value. */
export function dmarcPolicyOf(record: string): DmarcPolicy | null {
  const named = /;\s*p\s*=\s*(none|quarantine|reject)\s*(?:;|$)/i.exec(record)?.[1]?.toLowerCase()
  return dmarcPolicies.find((policy) => policy === named) ?? null
}

/** Null for a public suffix. Receivers use the private suffixes of the list too: shops below myshopify.com are different organisations. */
export const organisationalDomainOf = (name: string): string | null => getDomain(name, { allowPrivateDomains: true })

/** `at`: the DNS name of the records, or of the failed lookup; for `none`, the name for a record of the organisational domain. */
export type DmarcLookup =
  | { kind: 'policy' | 'several' | 'no policy'; at: string; records: string[] }
  | { kind: 'none'; at: string }
  | { kind: 'trouble'; at: string; code: string }

/**
 * The records of the name, or else of its organisational domain (RFC 7489 section 6.6.3). Receivers ignore `several` records; those with
 * `no policy` have no valid tag p.
 */
export async function findDmarcRecord(name: string, txt: (name: string) => Promise<DnsAnswer<string[]>>): Promise<DmarcLookup> {
  const top = organisationalDomainOf(name) ?? name
  for (const at of new Set([`_dmarc.${name}`, `_dmarc.${top}`])) {
    const answer = await txt(at)
    if (answer.kind === 'trouble') return { ...answer, at }
    const records = answer.kind === 'found' ? answer.value.filter(isDmarcRecord) : []
    const [record] = records
    if (record === undefined) continue
    return { kind: records.length > 1 ? 'several' : dmarcPolicyOf(record) ? 'policy' : 'no policy', at, records }
  }
  return { kind: 'none', at: `_dmarc.${top}` }
}
