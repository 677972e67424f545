/** The retention of contents that a tenant has of its own. The hashing of its addresses and the retention of its records may shorten it. */
import { wrongField } from '#base'
import { type Queryable, sql, type Tx } from '#db'
import { getTenant, isOfTenant } from '#tenants'

export const maxContentDays = 3650

export interface TenantRetention {
  tenantId: string
  contentDays: number
  changedAt: Date
}

type KnownRetention = Pick<TenantRetention, 'tenantId' | 'contentDays'>

const retentionOf = sql<{ contentDays: number }>`
  select content_days as "contentDays"
  from tenant_retention
  where tenant_id = $1`

/** A content repeats the addresses and the record, so that it is kept no longer than they are. */
const retentions = sql.part`
  select tenant_id as "tenantId", min(days) as "contentDays", max(changed_at) as "changedAt"
  from (
    select tenant_id, content_days as days, changed_at
    from tenant_retention
    union all
    select tenant_id, hash_days, changed_at
    from tenant_address_retention
    where hash_days is not null
    union all
    select tenant_id, record_days, changed_at
    from tenant_record_retention
  ) as own`

const someRetentions = sql<TenantRetention>`
  ${retentions}
  where tenant_id > $1
  group by tenant_id
  order by tenant_id
  limit $2`

const shortest = sql<{ contentDays: number | null; changedAt: Date | null }>`
  select min("contentDays") as "contentDays", max("changedAt") as "changedAt"
  from (${retentions} where ${isOfTenant} group by tenant_id) as effective`

/** The second part reads all retentions only if '' is asked for. */
const retentionsAmong = sql<KnownRetention>`
  select "tenantId", "contentDays"
  from (${retentions} where tenant_id = any($1::text[]) group by tenant_id) as wanted
  union all
  select '', min("contentDays")
  from (${retentions} where '' = any($1::text[]) and ${isOfTenant} group by tenant_id) as effective
  having count(*) > 0`

const saveRetention = sql`
  insert into tenant_retention (tenant_id, content_days, changed_at)
  values ($1, $2, $3)
  on conflict (tenant_id) do update
  set content_days = excluded.content_days, changed_at = excluded.changed_at`

const deleteRetention = sql`
  delete from tenant_retention
  where tenant_id = $1`

/** Days for which the tenant's contents are kept; null: as the installation's. */
export const getContentDays = async (on: Queryable, tenantId: string): Promise<number | null> =>
  (await on.first(retentionOf, [tenantId]))?.contentDays ?? null

/** Refuses `not_found` and `validation_error`. `days` null: as the installation's. */
export async function setContentDays(tx: Tx, tenantId: string, days: number | null, nowMs: number): Promise<void> {
  await getTenant(tx, tenantId)
  if (days === null) await tx.run(deleteRetention, [tenantId])
  else if (Number.isInteger(days) && days >= 0 && days <= maxContentDays) await tx.run(saveRetention, [tenantId, days, new Date(nowMs)])
  else throw wrongField('contentDays', `must be a whole number of days from 0 to ${maxContentDays}, or null`)
}

/** The retentions in force, in order of the tenants' ids, after this one. */
export const listRetentions = (on: Queryable, afterTenant: string, most: number): Promise<TenantRetention[]> =>
  on.rows(someRetentions, [afterTenant, most])

/** Of these tenants; '' is the shortest retention of the tenants that exist. */
export const listRetentionsAmong = (on: Queryable, tenantIds: readonly string[]): Promise<KnownRetention[]> =>
  on.rows(retentionsAmong, [tenantIds])

/** The shortest retention of the tenants that exist, which calls that concern no single tenant follow. */
export async function findShortestRetention(on: Queryable): Promise<TenantRetention | undefined> {
  const { contentDays = null, changedAt = null } = (await on.first(shortest)) ?? {}
  return contentDays === null || changedAt === null ? undefined : { tenantId: '', contentDays, changedAt }
}
