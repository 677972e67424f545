/** Reads a TLS report (RFC 8460 section 4.4) about the domain's incoming mail. Policies, failures and texts are limited. */
import { sanitiseText } from '#base'
import { UnreadableReport } from './unreadable-report.ts'

export interface TlsReport {
  reporter: string
  reportId: string
  beginMs: number
  endMs: number
  policies: TlsPolicyResult[]
}

/** RFC 8460 section 4.4; `other`: any text that it does not define. */
const policyTypes = ['sts', 'tlsa', 'no-policy-found', 'other'] as const
type TlsPolicyType = (typeof policyTypes)[number]

export interface TlsPolicyResult {
  type: TlsPolicyType
  /** Lower case. */
  domain: string
  successful: number
  failed: number
  failures: TlsFailure[]
}

export interface TlsFailure {
  /** RFC 8460 section 4.3, such as `certificate-expired`. */
  result: string
  receivingMx: string
  reason: string
  sessions: number
}

/** Its objects need many times the memory of its text, and no report is so long. */
const maxLength = 4_194_304
const maxPolicies = 100
const maxFailures = 100
const maxTextLength = 300
/** Of one count, and of all counts of a report: the figures of a day then stay far below the limit of bigint. */
const maxSessions = 1e12
/** Node's parser is recursive, and no report is so deep. */
const maxDepth = 20

/** Throws UnreadableReport. */
export function readTlsReport(json: string): TlsReport {
  if (json.length > maxLength) throw new UnreadableReport('is too large')
  if (isDeeper(json)) throw new UnreadableReport(`has more than ${maxDepth} levels`)
  const given = objectOf(parsed(json))
  const range = objectOf(given['date-range'])
  const [beginMs, endMs] = [instantOf(range['start-datetime']), instantOf(range['end-datetime'])]
  const policies = listOf(given.policies).slice(0, maxPolicies).map(policyOf)
  if (policies.length === 0) throw new UnreadableReport('has no policies')
  if (policies.reduce((sum, one) => sum + countedIn(one), 0) > maxSessions)
    throw new UnreadableReport(`counts more than ${maxSessions} sessions`)
  return { reporter: textOf(given['organization-name']), reportId: textOf(given['report-id']), beginMs, endMs, policies }
}

function parsed(json: string): unknown {
  try {
    return JSON.parse(json.replace(/^\ufeff/, ''))
  } catch {
    throw new UnreadableReport('is not JSON')
  }
}

function policyOf(given: unknown): TlsPolicyResult {
  const { policy, summary, 'failure-details': failures } = objectOf(given)
  const { 'policy-type': type, 'policy-domain': domain } = objectOf(policy)
  const counts = objectOf(summary)
  return {
    type: policyTypes.find((one) => one === textOf(type).toLowerCase()) ?? 'other',
    domain: textOf(domain).toLowerCase(),
    successful: countOf(counts['total-successful-session-count']),
    failed: countOf(counts['total-failure-session-count']),
    failures: listOf(failures).slice(0, maxFailures).map(failureOf),
  }
}

const countedIn = ({ successful, failed, failures }: TlsPolicyResult) =>
  failures.reduce((sum, { sessions }) => sum + sessions, successful + failed)

function failureOf(given: unknown): TlsFailure {
  const failure = objectOf(given)
  return {
    result: textOf(failure['result-type']),
    receivingMx: textOf(failure['receiving-mx-hostname']).toLowerCase(),
    reason: textOf(failure['failure-reason-code']) || textOf(failure['failure-error-code']),
    sessions: countOf(failure['failed-session-count']),
  }
}

const objectOf = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {}
const listOf = (value: unknown): unknown[] => (Array.isArray(value) ? value : [])
const textOf = (value: unknown) => (typeof value === 'string' ? sanitiseText(value, maxTextLength).trim() : '')

/** Some reporters write numbers as texts. */
function countOf(value: unknown): number {
  const count = typeof value === 'string' && /^\d{1,13}$/.test(value) ? Number(value) : (value ?? 0)
  if (typeof count !== 'number' || !Number.isInteger(count) || count < 0 || count > maxSessions)
    throw new UnreadableReport('has a count that is not a number')
  return count
}

function instantOf(value: unknown): number {
  const atMs = typeof value === 'string' && value.length <= 40 ? Date.parse(value) : Number.NaN
  if (Number.isNaN(atMs)) throw new UnreadableReport('does not name its period')
  return atMs
}

function isDeeper(json: string): boolean {
  let depth = 0
  let isInText = false
  for (let at = 0; at < json.length; at++) {
    const code = json.charCodeAt(at)
    if (isInText) {
      if (code === 92) at++
      else if (code === 34) isInText = false
    } else if (code === 34) isInText = true
    else if (code === 123 || code === 91) {
      if (++depth > maxDepth) return true
    } else if (code === 125 || code === 93) depth--
  }
  return false
}
