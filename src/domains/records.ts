/** The DNS records that a sending domain publishes (contract section 10): what to paste, and what the last check found. */

import { getDomain } from 'tldts'
import { dnsText } from '#dkim'

/** Below the platform's name and below each sending domain: where bounces go. */
export const returnPathLabel = 'rp'
export const returnPathDomainOf = (name: string): string => `${returnPathLabel}.${name}`

export type RecordStatus = 'OK' | 'Missing' | 'Invalid'

/** What a check found of one record, beside its status. */
export interface Found {
  /** The values found at the name, as far as they could be meant as this record; a few, and each cut. */
  found: string[]
  /** What is wrong, or why nothing could be learnt. */
  problem: string | null
  /** What to do about it. */
  suggestion: string | null
}

/** Of which `verified` is made; the others are kept beside. */
export const requiredRecords = ['spf', 'dkim', 'returnPath'] as const
export const checkedRecords = [...requiredRecords, 'dkimEd25519', 'dmarc', 'mx'] as const
export type RecordKind = (typeof checkedRecords)[number]

/** Of the last check; empty before the first. The statuses of advice have no columns of their own. */
export type Findings = { [Kind in RecordKind]?: Found & { status?: RecordStatus | null } }

export interface DnsRecord extends Found {
  type: 'TXT' | 'CNAME' | 'MX'
  /** Relative to the zone; `@` at the apex. */
  name: string
  fullName: string
  value: string
  status: RecordStatus | null
}

export interface DnsRecords extends Record<RecordKind, DnsRecord> {
  /** The registrable domain by the Public Suffix List. */
  zone: string
}

export interface PublishedFacts {
  name: string
  selector: string
  rsaPublic: string
  ed25519Public: string
  spfStatus: RecordStatus | null
  dkimStatus: RecordStatus | null
  dkimEd25519Status: RecordStatus | null
  returnPathStatus: RecordStatus | null
}

export const ed25519Selector = (selector: string) => `${selector}-ed`

export const zoneOf = (name: string) => getDomain(name, { allowPrivateDomains: false }) ?? name

/** `hostname` is POSTRIDER_HOSTNAME, below which the platform's own names lie. */
export function recordsOf(domain: PublishedFacts, hostname: string, findings: Findings = {}): DnsRecords {
  const zone = zoneOf(domain.name)
  const record = (
    kind: RecordKind,
    type: DnsRecord['type'],
    label: string,
    value: string,
    status: RecordStatus | null = findings[kind]?.status ?? null,
  ): DnsRecord => {
    const fullName = label === '' ? domain.name : `${label}.${domain.name}`
    const name = fullName === zone ? '@' : fullName.slice(0, -zone.length - 1)
    const { found = [], problem = null, suggestion = null } = findings[kind] ?? {}
    return { type, name, fullName, value, status, found, problem, suggestion }
  }
  const key = (selector: string) => `${selector}._domainkey`
  const { selector, rsaPublic, ed25519Public, spfStatus, dkimStatus, dkimEd25519Status, returnPathStatus } = domain
  return {
    zone,
    spf: record('spf', 'TXT', '', `v=spf1 include:spf.${hostname} ~all`, spfStatus),
    dkim: record('dkim', 'TXT', key(selector), dnsText('rsa', rsaPublic), dkimStatus),
    returnPath: record('returnPath', 'CNAME', returnPathLabel, returnPathDomainOf(hostname), returnPathStatus),
    dkimEd25519: record('dkimEd25519', 'TXT', key(ed25519Selector(selector)), dnsText('ed25519', ed25519Public), dkimEd25519Status),
    dmarc: record('dmarc', 'TXT', '_dmarc', 'v=DMARC1; p=none'),
    mx: record('mx', 'MX', '', `10 mail.${zone}`),
  }
}
