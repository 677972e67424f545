/** The DNS records of a sending domain (contract section 10): the values to publish, and the last check's results. */

import { getDomain } from 'tldts'
import { dnsText } from '#dkim'

/** Label for bounces, below the platform's name and below each sending domain. */
export const returnPathLabel = 'rp'
export const returnPathDomainOf = (name: string): string => `${returnPathLabel}.${name}`

/** A wildcard that permits DMARC reports about any sending domain to addresses at the return-path name (RFC 7489 section 7.1). */
export const reportAuthorisationOf = (hostname: string) => ({ name: `*._report._dmarc.${returnPathDomainOf(hostname)}`, value: 'v=DMARC1' })

/** The name of the record that asks for TLS reports about mail to a domain (RFC 8460 section 3). */
export const tlsReportName = (domain: string): string => `_smtp._tls.${domain}`

export type RecordStatus = 'OK' | 'Missing' | 'Invalid'

/** A check's results for one record, except its status. */
export interface RecordState {
  /** The plausible values found at the name; a few, each truncated. */
  found: string[]
  /** The problem, or the reason why the lookup failed. */
  problem: string | null
  /** The recommended action. */
  suggestion: string | null
}

/** `verified` depends on these; the others are only stored. */
export const requiredRecords = ['spf', 'dkim', 'returnPath'] as const
const checkedRecords = [...requiredRecords, 'dkimEd25519', 'dmarc', 'mx'] as const
export type RecordKind = (typeof checkedRecords)[number]

/** Results of the last check; empty before the first. Statuses of recommended records have no columns of their own. */
export type RecordProblems = { [Kind in RecordKind]?: RecordState & { status?: RecordStatus | null } }

export interface DnsRecord extends RecordState {
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

/** The name relative to its zone, the registrable domain by the Public Suffix List: `@` at its apex. */
export const nameInZone = (fullName: string, zone = zoneOf(fullName)): string =>
  fullName === zone ? '@' : fullName.slice(0, -zone.length - 1)

/** `hostname` is POSTRIDER_HOSTNAME, the parent of the platform's own names. */
export function recordsOf(domain: PublishedFacts, hostname: string, findings: RecordProblems = {}): DnsRecords {
  const zone = zoneOf(domain.name)
  const record = (
    kind: RecordKind,
    type: DnsRecord['type'],
    label: string,
    value: string,
    status: RecordStatus | null = findings[kind]?.status ?? null,
  ): DnsRecord => {
    const fullName = label === '' ? domain.name : `${label}.${domain.name}`
    const name = nameInZone(fullName, zone)
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
