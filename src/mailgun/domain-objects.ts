/** Sending domains as Mailgun's domains. */
import type { DnsRecord, DomainView } from '#domains'

interface Listed {
  uuid: string
  name: string
  verified: boolean
  createdAt: Date
}

/** An element of the list of domains. */
export const mailgunDomain = ({ uuid, name, verified, createdAt }: Listed) => ({
  id: uuid,
  name,
  state: verified ? 'active' : 'unverified',
  type: 'custom',
  created_at: createdAt.toUTCString(),
  is_disabled: false,
  require_tls: false,
  skip_verification: false,
  spam_action: 'disabled',
  wildcard: false,
})

const record = ({ name, type, value, status }: DnsRecord) => ({
  record_type: type,
  name,
  value,
  valid: status === 'OK' ? 'valid' : 'unknown',
  is_active: status === 'OK',
  cached: [],
})

export function mailgunDomainDetails(domain: DomainView) {
  const { spf, dkim, returnPath } = domain.dnsRecords
  return { domain: mailgunDomain(domain), receiving_dns_records: [], sending_dns_records: [spf, dkim, returnPath].map(record) }
}
