/** The mail that receivers report for a sending domain, over a number of days: totals, days, sources, reporters, and advice. */
import { type Queryable, sql } from '#db'
import { dmarcPolicyOf } from '#domains'
import { type Advice, adviseDmarc } from './dmarc-advice.ts'
import { type DmarcCounts, listDmarcDays, listDmarcSources, readProvenFacts, type SourceRow } from './dmarc-days.ts'
import { dayOf } from './stored-reports.ts'

/** `own`: an address of this installation; `signed`: mail with the domain's own key from elsewhere, such as a forwarder. */
export type SourceKind = 'own' | 'signed' | 'other'

export interface DmarcSummary {
  /** The first day, UTC. */
  from: string
  totals: DmarcCounts
  days: (DmarcCounts & { day: string })[]
  /** Largest first. */
  sources: (SourceRow & { kind: SourceKind })[]
  /** Sources that are not in `sources`. */
  moreSources: number
  reporters: ReporterRow[]
  advice: Advice
}

export interface ReporterRow {
  /** As the report names itself. */
  reporter: string
  /** The domain of the mail's From. */
  sender: string
  authenticated: boolean
  reports: number
  messages: number
  lastReceivedAt: Date
}

export interface SummaryFacts {
  domain: { tenantId: string; id: number; name: string; selector: string }
  /** The DMARC record in DNS; undefined if it was not found. */
  published: string | undefined
  /** Addresses of this installation. */
  ownAddresses: readonly string[]
  days: number
  nowMs: number
}

const maxSources = 200
const maxReporters = 50
const dayMs = 86_400_000

const byReporter = sql<ReporterRow>`
  select reporter, sender, authenticated, count(*)::integer as reports, sum(messages)::double precision as messages, max(received_at) as "lastReceivedAt"
  from domain_reports
  where tenant_id = $1 and domain_id = $2 and kind = 'dmarc' and begins_at >= $3
  group by reporter, sender, authenticated
  order by sum(messages) desc, reporter, sender, authenticated
  limit $4`

export async function summariseDmarc(on: Queryable, { domain, published, ownAddresses, days, nowMs }: SummaryFacts): Promise<DmarcSummary> {
  const ref = { tenantId: domain.tenantId, domainId: domain.id }
  const from = dayOf(nowMs - (days - 1) * dayMs)
  const keys = [domain.selector, `${domain.selector}-ed`].map((selector) => `${selector}._domainkey.${domain.name}`)
  const [series, { sources, all }, proven, reporters] = await Promise.all([
    listDmarcDays(on, ref, from),
    listDmarcSources(on, ref, from, maxSources),
    readProvenFacts(on, ref, from, { addresses: ownAddresses, keys }),
    on.rows(byReporter, [ref.tenantId, ref.domainId, new Date(from), maxReporters]),
  ])
  const own = new Set(ownAddresses)
  const kindOf = ({ source, signers }: SourceRow): SourceKind =>
    own.has(source) ? 'own' : signers.some((one) => keys.includes(one)) ? 'signed' : 'other'
  return {
    from,
    totals: totalsOf(series),
    days: series,
    sources: sources.map((row) => ({ ...row, kind: kindOf(row) })),
    moreSources: all - sources.length,
    reporters,
    advice: adviseDmarc({ policy: dmarcPolicyOf(published ?? ''), ...proven }),
  }
}

const sum = (all: readonly DmarcCounts[], key: keyof DmarcCounts) => all.reduce((total, one) => total + one[key], 0)

const totalsOf = (days: readonly DmarcCounts[]): DmarcCounts => ({
  messages: sum(days, 'messages'),
  aligned: sum(days, 'aligned'),
  dkimAligned: sum(days, 'dkimAligned'),
  spfAligned: sum(days, 'spfAligned'),
  quarantined: sum(days, 'quarantined'),
  rejected: sum(days, 'rejected'),
  unauthenticated: sum(days, 'unauthenticated'),
})
