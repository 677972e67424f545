/** The figures of a day by sending domain, egress source and provider: adding counted outcomes, reading a period, deleting old days. */
import { type ColumnTypes, type Db, type Queryable, type Sql, sql, type Tx } from '#db'

/** Attempts are accepted, deferred, failed or blocked; each has one of these results. */
export interface OutcomeCounts {
  accepted: number
  /** Accepted over TLS. */
  secured: number
  deferred: number
  failed: number
  /** Refused as spam or for reputation, for a time or permanently. */
  blocked: number
  /** Reports that arrived on the day, whenever the email was sent. */
  bounced: number
  complained: number
}

export const noCounts = (): OutcomeCounts => ({ accepted: 0, secured: 0, deferred: 0, failed: 0, blocked: 0, bounced: 0, complained: 0 })

export interface DayRow extends OutcomeCounts {
  tenant_id: string
  /** UTC, such as `2026-03-01`. */
  day: string
  test: boolean
  domain: string
  source: string
  provider: string
}

const columns: ColumnTypes<DayRow> = {
  tenant_id: 'text',
  day: 'text',
  test: 'boolean',
  domain: 'text',
  source: 'text',
  provider: 'text',
  accepted: 'bigint',
  secured: 'bigint',
  deferred: 'bigint',
  failed: 'bigint',
  blocked: 'bigint',
  bounced: 'bigint',
  complained: 'bigint',
}

const addRows = sql`
  insert into reputation_days (tenant_id, day, test, domain, source, provider, accepted, secured, deferred, failed, blocked, bounced, complained)
  select tenant_id, day::date, test, domain, source, provider, accepted, secured, deferred, failed, blocked, bounced, complained
  from json_to_recordset($1::json) as given (${sql.columns(columns)})
  order by tenant_id, test, day, domain, source, provider
  on conflict (tenant_id, test, day, domain, source, provider) do update
  set accepted = reputation_days.accepted + excluded.accepted, secured = reputation_days.secured + excluded.secured,
    deferred = reputation_days.deferred + excluded.deferred, failed = reputation_days.failed + excluded.failed,
    blocked = reputation_days.blocked + excluded.blocked, bounced = reputation_days.bounced + excluded.bounced,
    complained = reputation_days.complained + excluded.complained`

/** Both values of `test`, so that the index of days is used. */
const deleteDays = sql`
  delete from reputation_days
  where test in (false, true) and day < $1::date`

const sums = sql.part`
  coalesce(sum(accepted), 0)::double precision as accepted, coalesce(sum(secured), 0)::double precision as secured,
  coalesce(sum(deferred), 0)::double precision as deferred, coalesce(sum(failed), 0)::double precision as failed,
  coalesce(sum(blocked), 0)::double precision as blocked, coalesce(sum(bounced), 0)::double precision as bounced,
  coalesce(sum(complained), 0)::double precision as complained`

/** $1 is the tenant in both scopes. */
const matching = sql.part`
  test = $2 and day >= $3::date and day <= $4::date and ($5::text is null or domain = $5) and ($6::text is null or source = $6)
    and ($7::text is null or provider = $7)`

type Group = OutcomeCounts & { name: string; allGroups: number }

/** The largest groups first. Each statement has its own scope, so that the index of a tenant's rows or of the days is used. */
const readersOf = (scope: Sql<unknown>) => {
  const groupsBy = (key: Sql<unknown>) => sql<Group>`
    select ${key} as name, ${sums}, (count(*) over ())::integer as "allGroups"
    from reputation_days
    where ${scope} and ${matching}
    group by ${key}
    order by sum(accepted + deferred + failed + blocked) desc, ${key}
    limit $8`
  return {
    groups: { domain: groupsBy(sql.part`domain`), source: groupsBy(sql.part`source`), provider: groupsBy(sql.part`provider`) },
    days: sql<OutcomeCounts & { day: string }>`
      select day::text as day, ${sums}
      from reputation_days
      where ${scope} and ${matching}
      group by day
      order by day
      limit $8`,
  }
}
const ofTenant = readersOf(sql.part`tenant_id = $1`)
const ofAll = readersOf(sql.part`$1::text is null`)

export const groupings = ['domain', 'source', 'provider'] as const
export type Grouping = (typeof groupings)[number]

export interface ReputationFilter {
  /** Null: all tenants. */
  tenantId: string | null
  test: boolean
  /** The first and the last day, UTC. */
  from: string
  to: string
  domain?: string | undefined
  source?: string | undefined
  provider?: string | undefined
}

/** The UTC day of a time. */
export const utcDayOf = (atMs: number): string => new Date(atMs).toISOString().slice(0, 10)

export const addDayRows = async (tx: Tx, rows: readonly DayRow[]): Promise<void> => {
  if (rows.length > 0) await tx.run(addRows, [JSON.stringify(rows)])
}

/** Deletes the days before the one of `beforeMs`; returns how many rows. */
export const deleteOldDays = (db: Db, beforeMs: number): Promise<number> => db.run(deleteDays, [utcDayOf(beforeMs)])

const valuesOf = ({ tenantId, test, from, to, domain, source, provider }: ReputationFilter, limit: number) => [
  tenantId,
  test,
  from,
  to,
  domain ?? null,
  source ?? null,
  provider ?? null,
  limit,
]

/** The largest groups, and how many there are in all. */
export async function listGroups(
  on: Queryable,
  filter: ReputationFilter,
  by: Grouping,
  limit: number,
): Promise<{ groups: (OutcomeCounts & { name: string })[]; all: number }> {
  const { groups } = filter.tenantId === null ? ofAll : ofTenant
  const rows = await on.rows(groups[by], valuesOf(filter, limit))
  return { groups: rows.map(groupOf), all: rows[0]?.allGroups ?? 0 }
}

function groupOf(row: Group): OutcomeCounts & { name: string } {
  const { allGroups: _, ...group } = row
  return group
}

/** Days without figures are absent. */
export const listDays = (on: Queryable, filter: ReputationFilter, limit: number): Promise<(OutcomeCounts & { day: string })[]> =>
  on.rows((filter.tenantId === null ? ofAll : ofTenant).days, valuesOf(filter, limit))
