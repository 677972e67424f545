/**
 * Received reports as rows: each counts once, in the transaction that adds its figures. Rows for a domain and a day are limited in number,
 * because anyone can send reports. Those of signed reports are counted apart, so that others cannot take their place, and one signer gets only
 * a part of them. A signed report repeats only one of the same organisation. Retention deletes whole days.
 */
import { createHash } from 'node:crypto'
import { getDomain } from 'tldts'
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
  /** Sources, of a DMARC report. */
  sources: number
  beginMs: number
  endMs: number
}

/** More than all reporters together send in a day. Signed and unsigned reports are counted apart. */
const maxReportsADay = 5_000
const dayMs = 86_400_000
/** Also for signed and unsigned reports apart. */
export const maxRowsADay = 5_000
/** Of one signer's organisation: a stranger may sign for a domain of its own. */
const maxReportsOfSigner = 200
const maxRowsOfSigner = 1_000

const countReports = sql<{ count: number }>`
  select count(*)::integer as count
  from domain_reports
  where tenant_id = $1 and domain_id = $2 and received_at > $3 and authenticated = $4`

/** $4: the organisation, whose names end with it. */
const signedReports = sql<{ count: number; sources: number }>`
  select count(*)::integer as count, coalesce(sum(sources), 0)::integer as sources
  from domain_reports
  where tenant_id = $1 and domain_id = $2 and received_at > $3 and authenticated and right('.' || sender, length($4) + 1) = '.' || $4`

/** Rows of earlier versions have a key without the signer. */
const earlierReport = sql`
  select 1
  from domain_reports
  where tenant_id = $1 and domain_id = $2 and kind = $3 and key = $4 and authenticated and right('.' || sender, length($5) + 1) = '.' || $5`

const insertReport = sql`
  insert into domain_reports (tenant_id, domain_id, kind, key, authenticated, reporter, sender, policy, messages, sources, begins_at, ends_at,
    received_at)
  values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
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

const organisationOf = (sender: string) => getDomain(sender) ?? sender

/** A stranger may know the reporter's name and its next id: the signer distinguishes signed reports. */
function keyOf({ reporter, reportId }: StoredReport, signer: string | undefined): Buffer {
  const name = [reporter.toLowerCase(), reportId]
  return createHash('sha256')
    .update(JSON.stringify(signer === undefined ? name : [...name, signer]))
    .digest()
}

/** The reports of a signer's organisation within a day; none of an unsigned one. */
async function countOfSigner(
  tx: Tx,
  { tenantId, domainId, sender, authenticated }: StoredReport,
  nowMs: number,
): Promise<{ count: number; sources: number }> {
  const values = [tenantId, domainId, new Date(nowMs - dayMs), organisationOf(sender)]
  const found = authenticated ? await tx.first(signedReports, values) : undefined
  return found ?? { count: 0, sources: 0 }
}

/**
 * Adds a new report. `full`: the domain already has too many such reports of this day, signed or not, or of this signer. `sources`: how many
 * of its sources are kept apart.
 */
export async function addStoredReport(
  tx: Tx,
  report: StoredReport,
  nowMs: number,
): Promise<{ effect: 'new'; sources: number } | { effect: 'known' | 'full' }> {
  const { tenantId, domainId, kind, reporter, authenticated, sender, policy, messages, beginMs, endMs } = report
  const received = await tx.first(countReports, [tenantId, domainId, new Date(nowMs - dayMs), authenticated])
  const ofSigner = await countOfSigner(tx, report, nowMs)
  if ((received?.count ?? 0) >= maxReportsADay || ofSigner.count >= maxReportsOfSigner) return { effect: 'full' }
  const sources = Math.min(report.sources, authenticated ? Math.max(0, maxRowsOfSigner - ofSigner.sources) : report.sources)
  if (authenticated && (await tx.first(earlierReport, [tenantId, domainId, kind, keyOf(report, undefined), organisationOf(sender)])))
    return { effect: 'known' }
  const key = keyOf(report, authenticated ? organisationOf(sender) : undefined)
  const times = [new Date(beginMs), new Date(endMs), new Date(nowMs)]
  const values = [tenantId, domainId, kind, key, authenticated, reporter, sender, policy, messages, sources, ...times]
  return (await tx.run(insertReport, values)) > 0 ? { effect: 'new', sources } : { effect: 'known' }
}

/** Deletes reports and figures older than `beforeMs`; returns how many rows. */
export async function deleteOldReports(db: Db, beforeMs: number): Promise<number> {
  let count = await db.run(deleteReports, [new Date(beforeMs)])
  for (const statement of [deleteDmarcDays, deleteTlsDays, deleteTlsFailures]) count += await db.run(statement, [dayOf(beforeMs)])
  return count
}
