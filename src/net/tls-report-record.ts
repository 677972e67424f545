/**
 * The TXT record with which a domain asks for TLS reports (RFC 8460 section 3): the URIs that reports are sent to. Bounded in length and in
 * number.
 */
import type { DnsAnswer, Resolver } from './resolver.ts'

const maxRecordLength = 4096
const maxUriLength = 1000
/** A record may list any number; more than a few only multiply the mail. */
const maxUris = 5

/** RFC 8460 section 3: the version is case-sensitive; other servers ignore other TXT records of the name. */
export const isTlsReportRecord = (text: string): boolean => /^v=TLSRPTv1[ \t]*;/.test(text)

/** The `mailto:` and `https:` URIs, in order; `none`: the domain asks for no reports. */
export async function findTlsReportUris(domain: string, resolver: Pick<Resolver, 'txt'>): Promise<DnsAnswer<string[]>> {
  const answer = await resolver.txt(`_smtp._tls.${domain}`, 'fresh')
  if (answer.kind !== 'found') return answer
  const records = answer.value.filter(isTlsReportRecord)
  // RFC 8460 section 3: several records count as none.
  const uris = records.length === 1 ? reportUrisIn(records[0] ?? '') : []
  return uris.length === 0 ? { kind: 'none' } : { kind: 'found', value: uris }
}

/** Other schemes are passed over. A URI has its own `,`, `;` and `!` as percent codes. */
function reportUrisIn(record: string): string[] {
  if (record.length > maxRecordLength) return []
  for (const field of record.split(';').slice(1)) {
    const text = field.trim()
    if (!text.startsWith('rua=')) continue
    const uris = text
      .slice('rua='.length)
      .split(',')
      .map((uri) => uri.trim())
      .filter((uri) => uri.length <= maxUriLength && /^(?:mailto|https):[\x21-\x7e]+$/i.test(uri))
    return [...new Set(uris)].slice(0, maxUris)
  }
  return []
}
