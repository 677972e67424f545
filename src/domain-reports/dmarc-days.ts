/** The figures of DMARC reports by day, source and From domain: adding those of one report, and reading those of a period. */
import { type Queryable, sql, type Tx } from '#db'
import type { AggregateRow } from './aggregate-report.ts'
import { maxRowsADay } from './stored-reports.ts'

export interface DomainRef {
  tenantId: string
  domainId: number
}

const countRows = sql<{ count: number }>`
  select count(*)::integer as count
  from dmarc_days
  where tenant_id = $1 and domain_id = $2 and day = $3::date`

const addRows = sql`
  insert into dmarc_days (tenant_id, domain_id, day, authenticated, source, header_from, messages, aligned, dkim_aligned, spf_aligned,
    quarantined, rejected, signers, spf_domains)
  select $1, $2, $3::date, $4, source, header_from, messages, aligned, dkim_aligned, spf_aligned, quarantined, rejected,
    string_to_array(signers, ' '), string_to_array(spf_domains, ' ')
  from unnest($5::text[], $6::text[], $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[], $13::text[],
    $14::text[])
    as given (source, header_from, messages, aligned, dkim_aligned, spf_aligned, quarantined, rejected, signers, spf_domains)
  order by source, header_from
  on conflict (tenant_id, domain_id, day, source, header_from, authenticated) do update
  set messages = dmarc_days.messages + excluded.messages,
    aligned = dmarc_days.aligned + excluded.aligned,
    dkim_aligned = dmarc_days.dkim_aligned + excluded.dkim_aligned,
    spf_aligned = dmarc_days.spf_aligned + excluded.spf_aligned,
    quarantined = dmarc_days.quarantined + excluded.quarantined,
    rejected = dmarc_days.rejected + excluded.rejected,
    signers = case when cardinality(excluded.signers) > 0 then excluded.signers else dmarc_days.signers end,
    spf_domains = case when cardinality(excluded.spf_domains) > 0 then excluded.spf_domains else dmarc_days.spf_domains end`

export interface DmarcCounts {
  messages: number
  aligned: number
  dkimAligned: number
  spfAligned: number
  quarantined: number
  rejected: number
  /** In reports without a valid signature of their sender; included in `messages`. */
  unauthenticated: number
}

export interface SourceRow extends DmarcCounts {
  /** '': more sources than are kept. */
  source: string
  headerFrom: string
  /** Days with at least one message. */
  days: number
  lastDay: string
  signers: string[]
  spfDomains: string[]
}

const counts = sql.part`
  sum(messages)::double precision as messages, sum(aligned)::double precision as aligned,
  sum(dkim_aligned)::double precision as "dkimAligned", sum(spf_aligned)::double precision as "spfAligned",
  sum(quarantined)::double precision as quarantined, sum(rejected)::double precision as rejected,
  coalesce(sum(messages) filter (where not authenticated), 0)::double precision as unauthenticated`

const bySource = sql<Omit<SourceRow, 'signers' | 'spfDomains'> & { signers: string | null; spfDomains: string | null }>`
  select source, header_from as "headerFrom", ${counts}, count(distinct day)::integer as days, max(day)::text as "lastDay",
    (array_agg(array_to_string(signers, ' ') order by day desc) filter (where cardinality(signers) > 0))[1] as signers,
    (array_agg(array_to_string(spf_domains, ' ') order by day desc) filter (where cardinality(spf_domains) > 0))[1] as "spfDomains"
  from dmarc_days
  where tenant_id = $1 and domain_id = $2 and day >= $3::date and (authenticated or $4::boolean)
  group by source, header_from
  order by sum(messages) desc, source, header_from`

const byDay = sql<DmarcCounts & { day: string }>`
  select day::text as day, ${counts}
  from dmarc_days
  where tenant_id = $1 and domain_id = $2 and day >= $3::date
  group by day
  order by day`

/** Adds the figures of one report. Of a day with too many sources, new ones are counted together. */
export async function addDmarcRows(
  tx: Tx,
  { tenantId, domainId }: DomainRef,
  { day, authenticated, name, rows }: { day: string; authenticated: boolean; name: string; rows: readonly AggregateRow[] },
): Promise<void> {
  const stored = (await tx.first(countRows, [tenantId, domainId, day]))?.count ?? 0
  const kept = stored + rows.length <= maxRowsADay ? rows : together(rows, name)
  const column = <Value>(value: (row: AggregateRow) => Value) => kept.map(value)
  await tx.run(addRows, [
    tenantId,
    domainId,
    day,
    authenticated,
    column((row) => row.source),
    column((row) => row.headerFrom),
    column((row) => row.messages),
    column((row) => row.aligned),
    column((row) => row.dkimAligned),
    column((row) => row.spfAligned),
    column((row) => row.quarantined),
    column((row) => row.rejected),
    column((row) => row.signers.join(' ')),
    column((row) => row.spfDomains.join(' ')),
  ])
}

function together(rows: readonly AggregateRow[], headerFrom: string): AggregateRow[] {
  const sum = (key: 'messages' | 'aligned' | 'dkimAligned' | 'spfAligned' | 'quarantined' | 'rejected') =>
    rows.reduce((total, row) => total + row[key], 0)
  return [
    {
      source: '',
      headerFrom,
      messages: sum('messages'),
      aligned: sum('aligned'),
      dkimAligned: sum('dkimAligned'),
      spfAligned: sum('spfAligned'),
      quarantined: sum('quarantined'),
      rejected: sum('rejected'),
      signers: [],
      spfDomains: [],
    },
  ]
}

/** Largest first. `authenticated`: only figures of reports with a valid signature of their sender. */
export async function listDmarcSources(
  on: Queryable,
  { tenantId, domainId }: DomainRef,
  sinceDay: string,
  which: 'all' | 'authenticated',
): Promise<SourceRow[]> {
  const rows = await on.rows(bySource, [tenantId, domainId, sinceDay, which === 'all'])
  const names = (text: string | null) => (text === null ? [] : text.split(' '))
  return rows.map((row) => ({ ...row, signers: names(row.signers), spfDomains: names(row.spfDomains) }))
}

/** Days without messages are absent. */
export const listDmarcDays = (
  on: Queryable,
  { tenantId, domainId }: DomainRef,
  sinceDay: string,
): Promise<(DmarcCounts & { day: string })[]> => on.rows(byDay, [tenantId, domainId, sinceDay])
