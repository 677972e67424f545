/** Sending domains as Resend's domains, and the body that creates one. */
import type { DnsRecord, DomainView } from '#domains'
import { JsonFields } from '#vendors'
import { refuseResendField } from './errors.ts'

const maxNameLength = 253
const maxOptionLength = 100

/** The name. Options that change mail and are not served are refused; a region has no meaning here. */
export function readResendDomain(body: unknown): string {
  const fields = new JsonFields(body, '', refuseResendField)
  const name = fields.needed('name', maxNameLength)
  fields.text('region', maxOptionLength)
  const tls = fields.text('tls', maxOptionLength)
  if (tls !== undefined && tls !== 'opportunistic') throw fields.wrong('tls', 'is served only as `opportunistic`')
  fields.refuseOthers()
  return name
}

const recordStatus = (status: DnsRecord['status']) => (status === 'OK' ? 'verified' : status === null ? 'not_started' : 'failed')

const record = (kind: 'SPF' | 'DKIM', { name, type, value, status }: DnsRecord) => ({
  record: kind,
  name,
  type,
  ttl: 'Auto',
  status: recordStatus(status),
  value,
})

/** `checkedAt` undefined: not known in a list. */
function statusOf({ verified, checkedAt }: { verified: boolean; checkedAt?: Date | null }) {
  return verified ? 'verified' : checkedAt === null ? 'not_started' : 'pending'
}

interface Listed {
  uuid: string
  name: string
  verified: boolean
  createdAt: Date
  checkedAt?: Date | null
}

const region = 'us-east-1'

/** An element of `GET /domains`. The region is constant: Postrider has one place. */
export const resendDomainItem = (domain: Listed) => ({
  id: domain.uuid,
  name: domain.name,
  status: statusOf(domain),
  created_at: domain.createdAt.toISOString(),
  region,
  capabilities: { sending: 'enabled', receiving: 'disabled' },
})

/** The answer to the creation of a domain; `GET /domains/:id` has also `object`. */
export function resendDomain(domain: DomainView) {
  const { spf, dkim, returnPath } = domain.dnsRecords
  return { ...resendDomainItem(domain), records: [record('SPF', spf), record('SPF', returnPath), record('DKIM', dkim)] }
}
