/** The DNS records with which a sending domain's owner has reports sent to Postrider. */
import { reportAuthorisationOf, tlsReportName } from '#domains'
import type { ReportAddresses } from './report-addresses.ts'

interface SuggestedRecord {
  type: 'TXT'
  fullName: string
  value: string
}

export interface ReportRecords {
  address: string
  dmarc: SuggestedRecord
  tls: SuggestedRecord
  /** Permits reports about other domains (RFC 7489 section 7.1); the operator publishes it once. */
  authorisation: SuggestedRecord
}

const maxPolicyLength = 2_000

/** `published`: the domain's own DMARC record, if one was found; the address is added to it. */
export function reportRecords(
  domain: { uuid: string; name: string },
  published: string | undefined,
  { addresses, hostname }: { addresses: ReportAddresses; hostname: string },
): ReportRecords {
  const address = addresses.make(domain.uuid)
  const authorisation = reportAuthorisationOf(hostname.toLowerCase())
  return {
    address,
    dmarc: { type: 'TXT', fullName: `_dmarc.${domain.name}`, value: withAddress(published, `mailto:${address}`) },
    tls: { type: 'TXT', fullName: tlsReportName(domain.name), value: `v=TLSRPTv1; rua=mailto:${address}` },
    authorisation: { type: 'TXT', fullName: authorisation.name, value: authorisation.value },
  }
}

function withAddress(published: string | undefined, uri: string): string {
  const tags = (published ?? '')
    .slice(0, maxPolicyLength)
    .split(';')
    .map((tag) => tag.trim())
    .filter((tag) => tag !== '')
  if (tags.length === 0) return `v=DMARC1; p=none; rua=${uri}`
  if (tags.some((tag) => tag.toLowerCase().includes(uri.toLowerCase()))) return tags.join('; ')
  const hasRua = tags.some((tag) => /^rua\s*=/i.test(tag))
  return (hasRua ? tags.map((tag) => (/^rua\s*=/i.test(tag) ? `${tag},${uri}` : tag)) : [...tags, `rua=${uri}`]).join('; ')
}
