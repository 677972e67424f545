/**
 * The report about one day of a domain in JSON, packed with gzip (RFC 8460 sections 4.4 and 5.1). Policies and failures are limited in number;
 * failures beyond the limit are joined, so that the sums stay right. The same counts give the same report.
 */
import { hash } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import type { TlsReporter } from '#base'
import type { CountedFailure, CountedPolicy, DayOfDomain } from '#delivery'

export interface TlsReportDocument {
  /** `left@right`, the same for every report about this day and domain. */
  id: string
  domain: string
  /** The first and the last second of the day, since the Unix epoch. */
  beginSeconds: number
  endSeconds: number
  packed: Buffer
  successful: number
  failed: number
}

/** Readers have limits too; Postrider's own reads a hundred. */
const maxDetails = 100
const maxLines = 60
const daySeconds = 86_400

export function makeReport(
  { day, domain }: DayOfDomain,
  counted: readonly CountedPolicy[],
  { reporter, senderDomain }: { reporter: TlsReporter; senderDomain: string },
): TlsReportDocument {
  const beginSeconds = Date.parse(`${day}T00:00:00Z`) / 1000
  const id = `${day.replaceAll('-', '')}.${hash('sha256', domain).slice(0, 16)}@${senderDomain}`
  const json = {
    'organization-name': reporter.organisation,
    'date-range': { 'start-datetime': `${day}T00:00:00Z`, 'end-datetime': `${day}T23:59:59Z` },
    'contact-info': reporter.contact,
    'report-id': id,
    policies: counted.map((one) => policyOf(one, domain)),
  }
  return {
    id,
    domain,
    beginSeconds,
    endSeconds: beginSeconds + daySeconds - 1,
    packed: gzipSync(JSON.stringify(json)),
    successful: counted.reduce((sum, one) => sum + one.successful, 0),
    failed: counted.reduce((sum, one) => sum + failedOf(one.failures), 0),
  }
}

const failedOf = (failures: readonly CountedFailure[]) => failures.reduce((sum, one) => sum + one.failed, 0)

function policyOf({ type, lines, successful, failures }: CountedPolicy, domain: string) {
  const patterns = type === 'sts' ? lines.flatMap((line) => (line.startsWith('mx: ') ? [line.slice('mx: '.length)] : [])) : []
  return {
    policy: {
      'policy-type': type,
      ...(lines.length > 0 ? { 'policy-string': lines.slice(0, maxLines) } : {}),
      'policy-domain': domain,
      ...(patterns.length > 0 ? { 'mx-host': patterns.slice(0, maxLines) } : {}),
    },
    summary: { 'total-successful-session-count': successful, 'total-failure-session-count': failedOf(failures) },
    ...(failures.length > 0 ? { 'failure-details': limited(failures).map(detailOf) } : {}),
  }
}

/** At most `maxDetails`: joined by mail server if there are too many, and then by result. */
function limited(failures: readonly CountedFailure[]): readonly CountedFailure[] {
  if (failures.length <= maxDetails) return failures
  const noAddresses = { receivingIp: '', sendingIp: '' }
  const byHost = joined(failures, ({ result, receivingMx }) => `${result} ${receivingMx}`, noAddresses)
  return byHost.length <= maxDetails ? byHost : joined(failures, ({ result }) => result, { ...noAddresses, receivingMx: '' })
}

const joined = (failures: readonly CountedFailure[], nameOf: (one: CountedFailure) => string, without: Partial<CountedFailure>) =>
  [...Map.groupBy(failures, nameOf).values()].map((same) => ({ ...(same[0] as CountedFailure), ...without, failed: failedOf(same) }))

const detailOf = ({ result, receivingMx, receivingIp, sendingIp, reason, failed }: CountedFailure) => ({
  'result-type': result,
  ...(sendingIp === '' ? {} : { 'sending-mta-ip': sendingIp }),
  ...(receivingMx === '' ? {} : { 'receiving-mx-hostname': receivingMx }),
  ...(receivingIp === '' ? {} : { 'receiving-ip': receivingIp }),
  'failed-session-count': failed,
  ...(reason === '' ? {} : { 'failure-reason-code': reason }),
})
