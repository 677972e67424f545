/**
 * Records the reports that were applied, by email, so that each is applied once.
 */
import { emailIdPrefix } from '#base'
import { type PartitionedTable, type Queryable, sql, type Tx } from '#db'

/** Partitioned by day by the time in email ids, and kept as long as emails are. */
export const returnTables: readonly PartitionedTable[] = [{ table: 'reports', key: 'email-id' }]

export interface ReportRecord {
  tenantId: string
  emailId: string
  key: string
  kind: 'bounce' | 'complaint'
  matchedBy: 'return path' | 'trace header' | 'message id'
  at: Date
}

const insertReport = sql`
  insert into reports (tenant_id, email_id, dedupe_key, kind, matched_by, at)
  values ($1, $2, $3, $4, $5, $6)
  on conflict (tenant_id, email_id, dedupe_key) do nothing`

const reportByKey = sql<{ key: string }>`
  select dedupe_key as key
  from reports
  where tenant_id = $1 and email_id = $2 and dedupe_key = $3`

/** Returns false if the report is already recorded. */
export const addReport = async (tx: Tx, { tenantId, emailId, key, kind, matchedBy, at }: ReportRecord): Promise<boolean> =>
  (await tx.run(insertReport, [tenantId, emailId, key, kind, matchedBy, at])) === 1

export const hasReport = async (on: Queryable, { tenantId, emailId, key }: ReportRecord): Promise<boolean> =>
  (await on.first(reportByKey, [tenantId, emailId, key])) !== undefined

/** The key of the complaint that took effect; an email has at most one. */
export const complaintKey = 'complaint'

const newestComplained = sql<{ emailId: string }>`
  select email_id as "emailId"
  from reports
  where dedupe_key = $1 and ($2::text is null or tenant_id = $2) and ($3::text is null or email_id >= $3)
    and ($4::text is null or email_id < $4)
  order by email_id desc
  limit $5`

/** The newest emails that caused complaints, among those accepted within a period; `tenantId` null: of all tenants. */
export const listComplained = async (
  on: Queryable,
  { tenantId, after, before }: { tenantId: string | null; after?: Date | undefined; before?: Date | undefined },
  most: number,
): Promise<string[]> => {
  const prefix = (at: Date | undefined) => (at ? emailIdPrefix(at.getTime()) : null)
  const rows = await on.rows(newestComplained, [complaintKey, tenantId, prefix(after), prefix(before), most])
  return rows.map(({ emailId }) => emailId)
}

const complainedBetween = sql<{ emailId: string }>`
  select distinct email_id as "emailId"
  from reports
  where kind = 'complaint' and ($1::text is null or tenant_id = $1) and email_id >= $2 and email_id < $3`

/** The emails accepted in a period that caused complaints; `tenantId` null: of all tenants. */
export const findComplained = async (on: Queryable, tenantId: string | null, fromMs: number, toMs: number): Promise<string[]> =>
  (await on.rows(complainedBetween, [tenantId, emailIdPrefix(fromMs), emailIdPrefix(toMs)])).map(({ emailId }) => emailId)

const complaintsAmong = sql<{ emailId: string; at: Date }>`
  select email_id as "emailId", min(at) as at
  from reports
  where tenant_id = any($1) and email_id = any($2) and kind = 'complaint' and matched_by <> 'message id'
  group by email_id`

/** The times of the applied complaints about these emails, by email id. */
export async function findComplaints(
  on: Queryable,
  emails: readonly { tenantId: string; emailId: string }[],
): Promise<ReadonlyMap<string, Date>> {
  const rows = await on.rows(complaintsAmong, [[...new Set(emails.map((one) => one.tenantId))], emails.map((one) => one.emailId)])
  return new Map(rows.map(({ emailId, at }) => [emailId, at]))
}

/** The time of the complaint about an email; null without one. */
export const findComplaint = async (on: Queryable, { tenantId, id }: { tenantId: string; id: string }): Promise<Date | null> =>
  (await findComplaints(on, [{ tenantId, emailId: id }])).get(id) ?? null
