/** The figures of DMARC reports by day, source and From domain: adding those of one report, and reading those of a period. */
import { type Queryable, sql, type Tx } from '#db'
import type { AggregateRow } from './aggregate-report.ts'
import { type AdviceFacts, adviceBounds } from './dmarc-advice.ts'
import { maxRowsADay } from './stored-reports.ts'

export interface DomainRef {
  tenantId: string
  domainId: number
}

const countRows = sql<{ count: number }>`
  select count(*)::integer as count
  from dmarc_days
  where tenant_id = $1 and domain_id = $2 and day = $3::date and authenticated = $4`

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

/** Of the last day with any, separated by spaces. */
const lastSigners = sql.part`(array_agg(array_to_string(signers, ' ') order by day desc) filter (where cardinality(signers) > 0))[1]`

/** Strangers can add many sources, so the database selects the largest, and only of these the names are read. */
const largestSources = sql<
  Omit<SourceRow, 'signers' | 'spfDomains'> & { signers: string | null; spfDomains: string | null; allSources: number }
>`
  with largest as (
    select source, header_from, count(*) over () as all_sources
    from dmarc_days
    where tenant_id = $1 and domain_id = $2 and day >= $3::date
    group by source, header_from
    order by sum(messages) desc, source, header_from
    limit $4
  )
  select source, header_from as "headerFrom", ${counts}, count(distinct day)::integer as days, max(day)::text as "lastDay",
    ${lastSigners} as signers,
    (array_agg(array_to_string(spf_domains, ' ') order by day desc) filter (where cardinality(spf_domains) > 0))[1] as "spfDomains",
    max(all_sources)::integer as "allSources"
  from largest
  join dmarc_days using (source, header_from)
  where tenant_id = $1 and domain_id = $2 and day >= $3::date
  group by source, header_from
  order by sum(messages) desc, source, header_from`

/** Of reports with a valid signature: a source has one row a day. `regular` has few sources, because each has a share of all messages. */
const provenFigures = sql<{ days: number; messages: number; knownMessages: number; knownAligned: number; regular: string[] }>`
  with sources as (
    select source, sum(messages) as messages, sum(aligned) as aligned, count(*) as days,
      source = any($4::text[]) or coalesce(string_to_array(${lastSigners}, ' ') && $5::text[], false) as known
    from dmarc_days
    where tenant_id = $1 and domain_id = $2 and day >= $3::date and authenticated
    group by source, header_from
  ), total as (
    select coalesce(sum(messages), 0)::double precision as messages,
      coalesce(sum(messages) filter (where known), 0)::double precision as known_messages,
      coalesce(sum(aligned) filter (where known), 0)::double precision as known_aligned
    from sources
  )
  select messages, known_messages as "knownMessages", known_aligned as "knownAligned",
    (
      select count(distinct day)::integer
      from dmarc_days
      where tenant_id = $1 and domain_id = $2 and day >= $3::date and authenticated and messages > 0
    ) as days,
    array(
      select source
      from sources
      where not known and aligned * 2 < sources.messages and days >= $6 and sources.messages >= total.messages * $7::double precision
      order by sources.messages desc, source
    ) as regular
  from total`

const byDay = sql<DmarcCounts & { day: string }>`
  select day::text as day, ${counts}
  from dmarc_days
  where tenant_id = $1 and domain_id = $2 and day >= $3::date
  group by day
  order by day`

/**
 * Adds the figures of one report. If its day then had too many sources in such reports, signed or not, they are counted together. `maxRows`: so
 * many of its sources are kept apart, the largest ones.
 */
export async function addDmarcRows(
  tx: Tx,
  { tenantId, domainId }: DomainRef,
  report: { day: string; authenticated: boolean; name: string; rows: readonly AggregateRow[]; maxRows: number },
): Promise<void> {
  const { day, authenticated, name, maxRows } = report
  const rows = report.rows.length <= maxRows ? report.rows : largestOf(report.rows, maxRows, name)
  const stored = (await tx.first(countRows, [tenantId, domainId, day, authenticated]))?.count ?? 0
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

function largestOf(rows: readonly AggregateRow[], count: number, headerFrom: string): AggregateRow[] {
  const sorted = rows.filter(({ source }) => source !== '').toSorted((one, other) => other.messages - one.messages)
  const others = rows.filter(({ source }) => source === '')
  return [...sorted.slice(0, count), ...together([...sorted.slice(count), ...others], headerFrom)]
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

/** The largest `limit`, largest first, and how many there are in all. */
export async function listDmarcSources(
  on: Queryable,
  { tenantId, domainId }: DomainRef,
  sinceDay: string,
  limit: number,
): Promise<{ sources: SourceRow[]; all: number }> {
  const rows = await on.rows(largestSources, [tenantId, domainId, sinceDay, limit])
  const names = (text: string | null) => (text === null ? [] : text.split(' '))
  const sources = rows.map((given) => {
    const { allSources: _, ...row } = given
    return { ...row, signers: names(row.signers), spfDomains: names(row.spfDomains) }
  })
  return { sources, all: rows[0]?.allSources ?? 0 }
}

/** The facts for advice that reports with a valid signature prove. `keys`: names with the selector, as in `signers`. */
export async function readProvenFacts(
  on: Queryable,
  { tenantId, domainId }: DomainRef,
  sinceDay: string,
  known: { addresses: readonly string[]; keys: readonly string[] },
): Promise<Omit<AdviceFacts, 'policy'>> {
  const { regularDays, regularShare } = adviceBounds
  const found = await on.first(provenFigures, [tenantId, domainId, sinceDay, known.addresses, known.keys, regularDays, regularShare])
  const { days = 0, messages = 0, knownMessages = 0, knownAligned = 0, regular = [] } = found ?? {}
  return { days, messages, known: { messages: knownMessages, aligned: knownAligned }, regularUnaligned: regular }
}

/** Days without messages are absent. */
export const listDmarcDays = (
  on: Queryable,
  { tenantId, domainId }: DomainRef,
  sinceDay: string,
): Promise<(DmarcCounts & { day: string })[]> => on.rows(byDay, [tenantId, domainId, sinceDay])
