/** Checks a TLS report against RFC 8460 section 4.4 and 4.3; returns the faults in words. Written from the RFC, and not from the program. */

const isoSecond = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:Z|[+-]\d{2}:\d{2})$/
const address = /^[^\s@<>]+@[^\s@<>]+$/
const host = /^[a-z0-9_-]+(?:\.[a-z0-9_-]+)*$/
const ip = /^(?:\d{1,3}(?:\.\d{1,3}){3}|[0-9a-f:]+)$/

/** RFC 8460 section 4.3.1, 4.3.2.1 and 4.3.2.2. */
const resultTypes = [
  'starttls-not-supported',
  'certificate-host-mismatch',
  'certificate-expired',
  'certificate-not-trusted',
  'validation-failure',
  'tlsa-invalid',
  'dnssec-invalid',
  'dane-required',
  'sts-policy-fetch-error',
  'sts-policy-invalid',
  'sts-webpki-invalid',
]

type Check = (value: unknown) => boolean
const isText: Check = (value) => typeof value === 'string' && value !== ''
const matches =
  (form: RegExp): Check =>
  (value) =>
    typeof value === 'string' && form.test(value)
const isCount: Check = (value) => typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
const oneOf =
  (texts: readonly string[]): Check =>
  (value) =>
    typeof value === 'string' && texts.includes(value)
const listOf =
  (check: Check): Check =>
  (value) =>
    Array.isArray(value) && value.length > 0 && value.every(check)

interface Form {
  required: Record<string, Check>
  optional?: Record<string, Check>
}

const forms: Record<'report' | 'range' | 'policy' | 'summary' | 'failure', Form> = {
  report: {
    required: {
      'organization-name': isText,
      'date-range': (value) => faultsOf('date-range', value, forms.range).length === 0,
      'contact-info': matches(address),
      'report-id': isText,
      policies: listOf((value) => policyFaults(value).length === 0),
    },
  },
  range: { required: { 'start-datetime': matches(isoSecond), 'end-datetime': matches(isoSecond) } },
  policy: {
    required: { 'policy-type': oneOf(['tlsa', 'sts', 'no-policy-found']), 'policy-domain': matches(host) },
    optional: { 'policy-string': listOf(isText), 'mx-host': listOf(matches(/^(?:\*\.)?[a-z0-9_-]+(?:\.[a-z0-9_-]+)*$/)) },
  },
  summary: { required: { 'total-successful-session-count': isCount, 'total-failure-session-count': isCount } },
  failure: {
    required: { 'result-type': oneOf(resultTypes), 'failed-session-count': isCount },
    optional: {
      'sending-mta-ip': matches(ip),
      'receiving-mx-hostname': matches(host),
      'receiving-mx-helo': isText,
      'receiving-ip': matches(ip),
      'additional-information': isText,
      'failure-reason-code': isText,
    },
  },
}

function faultsOf(name: string, value: unknown, { required, optional = {} }: Form): string[] {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return [`${name} is not an object`]
  const given = value as Record<string, unknown>
  const missing = Object.keys(required).filter((field) => !(field in given))
  const all = { ...required, ...optional }
  return [
    ...missing.map((field) => `${name} has no ${field}`),
    ...Object.entries(given).flatMap(([field, content]) => {
      const check = all[field]
      if (!check) return [`${name} has the unknown field ${field}`]
      return check(content) ? [] : [`${name}: ${field} is ${JSON.stringify(content)}`]
    }),
  ]
}

function policyFaults(value: unknown): string[] {
  const { policy, summary, 'failure-details': details = [], ...others } = (value ?? {}) as Record<string, unknown>
  const failures = Array.isArray(details) ? details : [details]
  const sum = failures.reduce((total: number, one) => total + Number((one as Record<string, unknown>)['failed-session-count']), 0)
  const counted = (summary as Record<string, unknown> | undefined)?.['total-failure-session-count']
  return [
    ...Object.keys(others).map((field) => `a policy has the unknown field ${field}`),
    ...faultsOf('policy', policy, forms.policy),
    ...faultsOf('summary', summary, forms.summary),
    ...failures.flatMap((one) => faultsOf('failure', one, forms.failure)),
    ...(counted === sum ? [] : [`${String(counted)} failed sessions, and ${sum} in the details`]),
  ]
}

export function tlsReportFaults(report: unknown): string[] {
  const { policies } = (report ?? {}) as { policies?: unknown[] }
  return [...faultsOf('report', report, forms.report), ...(Array.isArray(policies) ? policies.flatMap(policyFaults) : [])]
}
