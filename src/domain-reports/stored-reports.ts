/**
 * Received reports as rows: each counts once, in the transaction that adds its figures. Rows for a domain and a day are limited in number,
 * because anyone can send reports. Those of signed reports are counted apart, so that others cannot take their place. Retention deletes whole
 * days.
 */
import { createHash } from 'node:crypto'
import { type Db, sql, type Tx } from '#db'

export interface StoredReport {
  tenantId: string
  domainId: number
  kind: 'dmarc' | 'tls'
  reporter: string
  reportId: string
  sender: string
  authenticated: boolean
  policy: string
  messages: number
  beginMs: number
  endMs: number
}

/** More than all reporters together send in a day. Signed and unsigned reports are counted apart. */
const maxReportsADay = 5_000
const dayMs = 86_400_000
/** Also for signed and unsigned reports apart. */
export const maxRowsADay = 5_000

const countReports = sql<{ count: number }>`
  select count(*)::integer as count
  from domain_reports
  where tenant_id = $1 and domain_id = $2 and received_at > $3 and authenticated = $4`

const insertReport = sql`
  insert into domain_reports (tenant_id, domain_id, kind, key, authenticated, reporter, sender, policy, messages, begins_at, ends_at,
    received_at)
  values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
  on conflict do nothing`

const deleteReports = sql`
  delete from domain_reports
  where received_at < $1`

const deleteDmarcDays = sql`
  delete from dmarc_days
  where day < $1::date`

const deleteTlsDays = sql`
  delete from tls_days
  where day < $1::date`

const deleteTlsFailures = sql`
  delete from tls_failures
  where day < $1::date`

/** The UTC day of a time. */
export const dayOf = (atMs: number): string => new Date(atMs).toISOString().slice(0, 10)

/** Whether the report is new. `full`: the domain already has too many such reports, signed or not, of this day. */
export async function addStoredReport(tx: Tx, report: StoredReport, nowMs: number): Promise<'new' | 'known' | 'full'> {
  const { tenantId, domainId, kind, reporter, reportId, authenticated, sender, policy, messages, beginMs, endMs } = report
  const key = createHash('sha256')
    .update(JSON.stringify([reporter.toLowerCase(), reportId]))
    .digest()
  const received = await tx.first(countReports, [tenantId, domainId, new Date(nowMs - dayMs), authenticated])
  if ((received?.count ?? 0) >= maxReportsADay) return 'full'
  const times = [new Date(beginMs), new Date(endMs), new Date(nowMs)]
  const values = [tenantId, domainId, kind, key, authenticated, reporter, sender, policy, messages, ...times]
  return (await tx.run(insertReport, values)) > 0 ? 'new' : 'known'
}

/** Deletes reports and figures older than `beforeMs`; returns how many rows. */
export async function deleteOldReports(db: Db, beforeMs: number): Promise<number> {
  let count = await db.run(deleteReports, [new Date(beforeMs)])
  for (const statement of [deleteDmarcDays, deleteTlsDays, deleteTlsFailures]) count += await db.run(statement, [dayOf(beforeMs)])
  return count
}
