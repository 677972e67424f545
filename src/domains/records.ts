/** The DNS records that a sending domain publishes (contract section 10): what to paste, and what the last check found. */

import { getDomain } from 'tldts'
import { dnsText } from '#dkim'

export type RecordStatus = 'OK' | 'Missing' | 'Invalid'

export interface DnsRecord {
  type: 'TXT' | 'CNAME'
  /** Relative to the zone; `@` at the apex. */
  name: string
  fullName: string
  value: string
  status: RecordStatus | null
}

export interface DnsRecords {
  /** The registrable domain by the Public Suffix List. */
  zone: string
  spf: DnsRecord
  dkim: DnsRecord
  returnPath: DnsRecord
  dkimEd25519: DnsRecord
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

/** `hostname` is POSTRIDER_HOSTNAME, below which the platform's own names lie. */
export function recordsOf(domain: PublishedFacts, hostname: string): DnsRecords {
  const zone = getDomain(domain.name, { allowPrivateDomains: false }) ?? domain.name
  const record = (type: DnsRecord['type'], label: string, value: string, status: RecordStatus | null): DnsRecord => {
    const fullName = label === '' ? domain.name : `${label}.${domain.name}`
    const name = fullName === zone ? '@' : fullName.slice(0, -zone.length - 1)
    return { type, name, fullName, value, status }
  }
  return {
    zone,
    spf: record('TXT', '', `v=spf1 include:spf.${hostname} ~all`, domain.spfStatus),
    dkim: record('TXT', `${domain.selector}._domainkey`, dnsText('rsa', domain.rsaPublic), domain.dkimStatus),
    returnPath: record('CNAME', 'rp', `rp.${hostname}`, domain.returnPathStatus),
    dkimEd25519: record(
      'TXT',
      `${ed25519Selector(domain.selector)}._domainkey`,
      dnsText('ed25519', domain.ed25519Public),
      domain.dkimEd25519Status,
    ),
  }
}
