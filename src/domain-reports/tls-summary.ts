/** The TLS sessions that senders report for a domain, over a number of days. */
import type { Queryable } from '#db'
import { dayOf } from './stored-reports.ts'
import { listTlsDays, listTlsFailures, listTlsReporters, type TlsCounts, type TlsFailureRow, type TlsReporterRow } from './tls-days.ts'

export interface TlsSummary {
  /** The first day, UTC. */
  from: string
  totals: TlsCounts
  days: (TlsCounts & { day: string })[]
  reporters: TlsReporterRow[]
  failures: TlsFailureRow[]
}

const maxRows = 100
const dayMs = 86_400_000

export async function summariseTls(
  on: Queryable,
  { domain, days, nowMs }: { domain: { tenantId: string; id: number }; days: number; nowMs: number },
): Promise<TlsSummary> {
  const ref = { tenantId: domain.tenantId, domainId: domain.id }
  const from = dayOf(nowMs - (days - 1) * dayMs)
  const [series, reporters, failures] = await Promise.all([
    listTlsDays(on, ref, from),
    listTlsReporters(on, ref, from, maxRows),
    listTlsFailures(on, ref, from, maxRows),
  ])
  const sum = (key: keyof TlsCounts) => series.reduce((total, one) => total + one[key], 0)
  return {
    from,
    totals: { successful: sum('successful'), failed: sum('failed'), unauthenticated: sum('unauthenticated') },
    days: series,
    reporters,
    failures,
  }
}
