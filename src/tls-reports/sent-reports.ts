/** The reports about days of domains, as rows: one for each destination. Final rows stay for the retention of reports. */
import { type Db, type Queryable, sql, type Tx } from '#db'
import type { DayOfDomain } from '#delivery'

export interface SentReport extends DayOfDomain {
  /** The URI; '': it could not be looked up. */
  destination: string
  state: 'waiting' | 'sent' | 'failed'
  tries: number
  nextAt: Date
}

const reportsOf = sql<SentReport>`
  select tls_reports.day::text as day, policy_domain as domain, destination, state, tries, next_at as "nextAt"
  from tls_reports
  join unnest($1::date[], $2::text[]) as given (day, domain) on given.day = tls_reports.day and given.domain = policy_domain
  order by 1, 2, 3`

const addReports = sql`
  insert into tls_reports (day, policy_domain, destination, state, tries, next_at, successful, failed)
  select $1::date, $2, destination, 'waiting', 0, $4, 0, 0
  from unnest($3::text[]) as given (destination)
  on conflict (day, policy_domain, destination) do nothing`

const dropLookUp = sql`
  delete from tls_reports
  where day = $1::date and policy_domain = $2 and destination = ''`

const saveReport = sql`
  insert into tls_reports (day, policy_domain, destination, state, tries, next_at, problem, successful, failed)
  values ($1::date, $2, $3, $4, $5, $6, $7, $8, $9)
  on conflict (day, policy_domain, destination) do update
  set state = excluded.state, tries = excluded.tries, next_at = excluded.next_at, problem = excluded.problem,
    successful = excluded.successful, failed = excluded.failed`

const deleteReports = sql`
  delete from tls_reports
  where day < $1::date`

/** The rows of these days of domains. */
export const listReportsOf = (on: Queryable, days: readonly DayOfDomain[]): Promise<SentReport[]> =>
  on.rows(reportsOf, [days.map(({ day }) => day), days.map(({ domain }) => domain)])

/** Adds the destinations that were looked up, in place of the look-up. */
export async function addDestinations(tx: Tx, { day, domain }: DayOfDomain, destinations: readonly string[], nowMs: number): Promise<void> {
  await tx.run(dropLookUp, [day, domain])
  await tx.run(addReports, [day, domain, destinations, new Date(nowMs)])
}

export interface ReportChange extends SentReport {
  problem: string | null
  successful: number
  failed: number
}

export async function saveSentReport(on: Queryable, given: ReportChange): Promise<void> {
  const { day, domain, destination, state, tries, nextAt, problem, successful, failed } = given
  await on.run(saveReport, [day, domain, destination, state, tries, nextAt, problem, successful, failed])
}

const recentReports = sql<ReportChange>`
  select day::text as day, policy_domain as domain, destination, state, tries, next_at as "nextAt", problem,
    successful::double precision as successful, failed::double precision as failed
  from tls_reports
  order by tls_reports.day desc, policy_domain, destination
  limit $1`

/** The newest first. */
export const listRecentReports = (on: Queryable, limit: number): Promise<ReportChange[]> => on.rows(recentReports, [limit])

/** Deletes the rows of days before `beforeMs`; returns how many. */
export const deleteOldTlsReports = (db: Db, beforeMs: number): Promise<number> =>
  db.run(deleteReports, [new Date(beforeMs).toISOString().slice(0, 10)])
