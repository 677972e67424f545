/** The figures of TLS reports by day: adding those of one report, and reading those of a period. */
import { type Queryable, sql, type Tx } from '#db'
import type { DomainRef } from './dmarc-days.ts'
import { maxRowsADay } from './stored-reports.ts'
import type { TlsFailure, TlsPolicyResult } from './tls-report.ts'

const countSessions = sql<{ count: number }>`
  select count(*)::integer as count
  from tls_days
  where tenant_id = $1 and domain_id = $2 and day = $3::date and authenticated = $4`

const countFailures = sql<{ count: number }>`
  select count(*)::integer as count
  from tls_failures
  where tenant_id = $1 and domain_id = $2 and day = $3::date and authenticated = $4`

/** A larger figure does not grow further; otherwise it could pass the limit of bigint, and no report of its day would be counted. */
const maxFigure = sql.part`1000000000000000`

const addSessions = sql`
  insert into tls_days (tenant_id, domain_id, day, reporter, authenticated, policy_type, successful, failed)
  select $1, $2, $3::date, $4, $5, policy_type, successful, failed
  from unnest($6::text[], $7::bigint[], $8::bigint[]) as given (policy_type, successful, failed)
  order by policy_type
  on conflict (tenant_id, domain_id, day, reporter, policy_type, authenticated) do update
  set successful = least(tls_days.successful, ${maxFigure}) + excluded.successful,
    failed = least(tls_days.failed, ${maxFigure}) + excluded.failed`

const addFailures = sql`
  insert into tls_failures (tenant_id, domain_id, day, authenticated, result, receiving_mx, failed, reason)
  select $1, $2, $3::date, $4, result, receiving_mx, failed, reason
  from unnest($5::text[], $6::text[], $7::bigint[], $8::text[]) as given (result, receiving_mx, failed, reason)
  order by result, receiving_mx
  on conflict (tenant_id, domain_id, day, result, receiving_mx, authenticated) do update
  set failed = least(tls_failures.failed, ${maxFigure}) + excluded.failed, reason = excluded.reason`

export interface TlsCounts {
  successful: number
  failed: number
  /** Sessions in reports without a valid signature of their sender; included in the others. */
  unauthenticated: number
}

export interface TlsReporterRow extends TlsCounts {
  /** '': more reporters than are kept. */
  reporter: string
  policyType: string
  lastDay: string
}

export interface TlsFailureRow {
  result: string
  receivingMx: string
  /** Sessions. */
  failed: number
  reason: string
  lastDay: string
}

const counts = sql.part`
  sum(successful)::double precision as successful, sum(failed)::double precision as failed,
  coalesce(sum(successful + failed) filter (where not authenticated), 0)::double precision as unauthenticated`

const byReporter = sql<TlsReporterRow>`
  select reporter, policy_type as "policyType", ${counts}, max(day)::text as "lastDay"
  from tls_days
  where tenant_id = $1 and domain_id = $2 and day >= $3::date
  group by reporter, policy_type
  order by sum(successful + failed) desc, reporter, policy_type
  limit $4`

const byDay = sql<TlsCounts & { day: string }>`
  select day::text as day, ${counts}
  from tls_days
  where tenant_id = $1 and domain_id = $2 and day >= $3::date
  group by day
  order by day`

const byFailure = sql<TlsFailureRow>`
  select result, receiving_mx as "receivingMx", sum(failed)::double precision as failed, max(day)::text as "lastDay",
    (array_agg(reason order by day desc))[1] as reason
  from tls_failures
  where tenant_id = $1 and domain_id = $2 and day >= $3::date
  group by result, receiving_mx
  order by sum(failed) desc, result, receiving_mx
  limit $4`

interface TlsFigures {
  day: string
  authenticated: boolean
  reporter: string
  policies: readonly TlsPolicyResult[]
}

/** Adds the figures of one report. If its day then had too many rows of such reports, signed or not, they are counted together. */
export async function addTlsFigures(tx: Tx, ref: DomainRef, given: TlsFigures): Promise<void> {
  await addSessionsOf(tx, ref, given)
  await addFailuresOf(tx, ref, given)
}

async function addSessionsOf(tx: Tx, { tenantId, domainId }: DomainRef, given: TlsFigures): Promise<void> {
  const { day, authenticated, reporter } = given
  const sessions = Map.groupBy(given.policies, ({ type }) => type)
  const sums = [...sessions].map(([type, all]) => ({ type, successful: sumOf(all, 'successful'), failed: sumOf(all, 'failed') }))
  const stored = (await tx.first(countSessions, [tenantId, domainId, day, authenticated]))?.count ?? 0
  await tx.run(addSessions, [
    tenantId,
    domainId,
    day,
    stored + sums.length <= maxRowsADay ? reporter : '',
    authenticated,
    sums.map(({ type }) => type),
    sums.map(({ successful }) => successful),
    sums.map(({ failed }) => failed),
  ])
}

async function addFailuresOf(tx: Tx, { tenantId, domainId }: DomainRef, { day, authenticated, policies }: TlsFigures): Promise<void> {
  const failures = policies.flatMap((one) => one.failures)
  const stored = (await tx.first(countFailures, [tenantId, domainId, day, authenticated]))?.count ?? 0
  const apart = byKind(failures)
  const rows = stored + apart.length <= maxRowsADay ? apart : byKind(failures.map((one) => ({ ...one, result: 'other', receivingMx: '' })))
  await tx.run(addFailures, [
    tenantId,
    domainId,
    day,
    authenticated,
    rows.map(({ result }) => result),
    rows.map(({ receivingMx }) => receivingMx),
    rows.map(({ sessions }) => sessions),
    rows.map(({ reason }) => reason),
  ])
}

function byKind(failures: readonly TlsFailure[]): TlsFailure[] {
  const kinds = Map.groupBy(failures, ({ result, receivingMx }) => `${result} ${receivingMx}`)
  return [...kinds.values()].map((all) => ({ ...(all[0] as TlsFailure), sessions: sumOf(all, 'sessions') }))
}

const sumOf = <Key extends string>(all: readonly Record<Key, number>[], key: Key) => all.reduce((total, one) => total + one[key], 0)

export const listTlsReporters = (
  on: Queryable,
  { tenantId, domainId }: DomainRef,
  sinceDay: string,
  limit: number,
): Promise<TlsReporterRow[]> => on.rows(byReporter, [tenantId, domainId, sinceDay, limit])

export const listTlsDays = (on: Queryable, { tenantId, domainId }: DomainRef, sinceDay: string): Promise<(TlsCounts & { day: string })[]> =>
  on.rows(byDay, [tenantId, domainId, sinceDay])

export const listTlsFailures = (
  on: Queryable,
  { tenantId, domainId }: DomainRef,
  sinceDay: string,
  limit: number,
): Promise<TlsFailureRow[]> => on.rows(byFailure, [tenantId, domainId, sinceDay, limit])
