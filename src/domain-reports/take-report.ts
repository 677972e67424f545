/**
 * Applies one received report to one sending domain, in one transaction. A report about another domain, a repetition, and a report that
 * cannot be read have no effect.
 */
import { type Db, type Tx } from '#db'
import type { CheckedDomain } from '#domains'
import type { AggregateReport } from './aggregate-report.ts'
import { addDmarcRows, type DomainRef } from './dmarc-days.ts'
import { addStoredReport, dayOf, type StoredReport } from './stored-reports.ts'
import { addTlsFigures } from './tls-days.ts'
import type { TlsReport } from './tls-report.ts'

export type ReportEffect = 'counted' | 'repeated' | 'foreign' | 'wrong period' | 'too many'

type ReceivedDomain = Pick<CheckedDomain, 'tenantId' | 'id' | 'name'>

export interface ReportOrigin {
  sender: string
  authenticated: boolean
  nowMs: number
}

/** Reports arrive within days; an older one is a mistake or a forgery. */
const maxAgeMs = 60 * 86_400_000
const maxAheadMs = 2 * 86_400_000
const maxPeriodMs = 8 * 86_400_000

/** A report may be about the domain, a name below it, or the organisation that it belongs to; only its rows about the domain count. */
export async function takeAggregate(db: Db, domain: ReceivedDomain, report: AggregateReport, origin: ReportOrigin): Promise<ReportEffect> {
  const rows = report.rows.filter(({ headerFrom }) => isAtOrBelow(headerFrom, domain.name))
  const isAbout = isAtOrBelow(report.policy.domain, domain.name) || isAtOrBelow(domain.name, report.policy.domain)
  if (!isAbout || (rows.length === 0 && report.policy.domain !== domain.name)) return 'foreign'
  const messages = rows.reduce((sum, row) => sum + row.messages, 0)
  return take(
    db,
    domain,
    { ...report, kind: 'dmarc', policy: report.policy.p, messages, sources: rows.length },
    origin,
    (tx, ref, { authenticated, sources }) =>
      addDmarcRows(tx, ref, { day: dayOf(report.beginMs), authenticated, name: domain.name, rows, maxRows: sources }),
  )
}

/** TLS reports are about mail to the domain itself. */
export async function takeTls(db: Db, domain: ReceivedDomain, report: TlsReport, origin: ReportOrigin): Promise<ReportEffect> {
  const policies = report.policies.filter((one) => one.domain === domain.name)
  if (policies.length === 0) return 'foreign'
  const messages = policies.reduce((sum, one) => sum + one.successful + one.failed, 0)
  return take(db, domain, { ...report, kind: 'tls', policy: '', messages, sources: 0 }, origin, (tx, ref, { authenticated }) =>
    addTlsFigures(tx, ref, { day: dayOf(report.beginMs), authenticated, reporter: report.reporter, policies }),
  )
}

/** Whether the period of a report is plausible now. */
export const isInPeriod = ({ beginMs, endMs }: { beginMs: number; endMs: number }, nowMs: number): boolean =>
  beginMs > nowMs - maxAgeMs && beginMs <= endMs && endMs < nowMs + maxAheadMs && endMs - beginMs <= maxPeriodMs

const isAtOrBelow = (name: string, top: string) => name === top || name.endsWith(`.${top}`)

type Figures = Pick<StoredReport, 'kind' | 'messages' | 'sources' | 'reporter' | 'reportId' | 'beginMs' | 'endMs' | 'policy'>

async function take(
  db: Db,
  { tenantId, id: domainId }: ReceivedDomain,
  given: Figures,
  { sender, authenticated, nowMs }: ReportOrigin,
  add: (tx: Tx, ref: DomainRef, facts: { authenticated: boolean; sources: number }) => Promise<void>,
): Promise<ReportEffect> {
  const { kind, messages, sources, reporter, reportId, beginMs, endMs } = given
  if (!isInPeriod(given, nowMs)) return 'wrong period'
  const policy = /^(?:none|quarantine|reject)$/.test(given.policy) ? given.policy : ''
  const ref = { tenantId, domainId }
  const stored = { ...ref, kind, reporter, reportId, sender, authenticated, policy, messages, sources, beginMs, endMs }
  return db.transaction(async (tx) => {
    const added = await addStoredReport(tx, stored, nowMs)
    if (added.effect !== 'new') return added.effect === 'known' ? 'repeated' : 'too many'
    await add(tx, ref, { authenticated, sources: added.sources })
    return 'counted'
  })
}
