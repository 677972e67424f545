/** The mail that receivers report for a sending domain, over a number of days: totals, days, sources, reporters, and advice. */
import { type Queryable, sql } from '#db'
import { type Advice, adviceBounds, adviseDmarc, type DmarcPolicy } from './dmarc-advice.ts'
import { type DmarcCounts, listDmarcDays, listDmarcSources, type SourceRow } from './dmarc-days.ts'
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
  /** The DMARC record in DNS; undefined if none was found. */
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
  const [series, all, proven, reporters] = await Promise.all([
    listDmarcDays(on, ref, from),
    listDmarcSources(on, ref, from, 'all'),
    listDmarcSources(on, ref, from, 'authenticated'),
    on.rows(byReporter, [ref.tenantId, ref.domainId, new Date(from), maxReporters]),
  ])
  const own = new Set(ownAddresses)
  const isKey = (name: string) => [domain.selector, `${domain.selector}-ed`].some((one) => name === `${one}._domainkey.${domain.name}`)
  const kindOf = (row: SourceRow): SourceKind => (own.has(row.source) ? 'own' : row.signers.some(isKey) ? 'signed' : 'other')
  const sources = all.map((row) => ({ ...row, kind: kindOf(row) }))
  return {
    from,
    totals: totalsOf(series),
    days: series,
    sources: sources.slice(0, maxSources),
    moreSources: Math.max(0, sources.length - maxSources),
    reporters,
    advice: adviseDmarc({
      policy: policyOf(published),
      days: Math.max(0, ...proven.map((row) => row.days)),
      ...shareOf(proven.map((row) => ({ ...row, kind: kindOf(row) }))),
    }),
  }
}

function shareOf(sources: readonly (SourceRow & { kind: SourceKind })[]) {
  const messages = sum(sources, 'messages')
  const known = sources.filter(({ kind }) => kind !== 'other')
  const regularUnaligned = sources.filter(
    (one) =>
      one.kind === 'other' &&
      one.aligned < one.messages / 2 &&
      one.days >= adviceBounds.regularDays &&
      one.messages >= messages * adviceBounds.regularShare,
  )
  return { messages, known: { messages: sum(known, 'messages'), aligned: sum(known, 'aligned') }, regularUnaligned }
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

function policyOf(record: string | undefined): DmarcPolicy | null {
  const [, policy] = /;\s*p\s*=\s*(none|quarantine|reject)\s*(?:;|$)/i.exec(record?.slice(0, 2_000) ?? '') ?? []
  return policy === undefined ? null : (policy.toLowerCase() as DmarcPolicy)
}
