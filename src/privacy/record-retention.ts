/** Days after which the records of a tenant's emails are reduced. Contents are kept no longer. */
import { wrongField } from '#base'
import { type Queryable, sql, type Tx } from '#db'
import { getTenant, isOfTenant } from '#tenants'
import { maxContentDays } from './manage-retention.ts'

export interface RecordRetention {
  tenantId: string
  recordDays: number
  changedAt: Date
}

const retentionOf = sql<{ recordDays: number }>`
  select record_days as "recordDays"
  from tenant_record_retention
  where tenant_id = $1`

const someRetentions = sql<RecordRetention>`
  select tenant_id as "tenantId", record_days as "recordDays", changed_at as "changedAt"
  from tenant_record_retention
  where tenant_id > $1
  order by tenant_id
  limit $2`

const shortest = sql<{ recordDays: number | null; changedAt: Date | null }>`
  select min(record_days) as "recordDays", max(changed_at) as "changedAt"
  from tenant_record_retention
  where ${isOfTenant}`

const saveRetention = sql`
  insert into tenant_record_retention (tenant_id, record_days, changed_at)
  values ($1, $2, $3)
  on conflict (tenant_id) do update
  set record_days = excluded.record_days, changed_at = excluded.changed_at`

const deleteRetention = sql`
  delete from tenant_record_retention
  where tenant_id = $1`

/** null: records are kept as the installation's. */
export const getRecordDays = async (on: Queryable, tenantId: string): Promise<number | null> =>
  (await on.first(retentionOf, [tenantId]))?.recordDays ?? null

/** Refuses `not_found` and `validation_error`. `days` null: as the installation's. */
export async function setRecordDays(tx: Tx, tenantId: string, days: number | null, nowMs: number): Promise<void> {
  await getTenant(tx, tenantId)
  if (days === null) await tx.run(deleteRetention, [tenantId])
  else if (Number.isInteger(days) && days >= 1 && days <= maxContentDays) await tx.run(saveRetention, [tenantId, days, new Date(nowMs)])
  else throw wrongField('recordDays', `must be a whole number of days from 1 to ${maxContentDays}, or null`)
}

/** In order of the tenants' ids, after this one. */
export const listRecordRetentions = (on: Queryable, afterTenant: string, most: number): Promise<RecordRetention[]> =>
  on.rows(someRetentions, [afterTenant, most])

/** The shortest of the tenants that exist, which calls that concern no single tenant follow. */
export async function findShortestRecords(on: Queryable): Promise<RecordRetention | undefined> {
  const { recordDays = null, changedAt = null } = (await on.first(shortest)) ?? {}
  return recordDays === null || changedAt === null ? undefined : { tenantId: '', recordDays, changedAt }
}
