/** The retention that a tenant has of its own. */
import { wrongField } from '#base'
import { type Queryable, sql, type Tx } from '#db'
import { getTenant } from '#tenants'

export const maxContentDays = 3650

export interface TenantRetention {
  tenantId: string
  contentDays: number
  changedAt: Date
}

type KnownRetention = Pick<TenantRetention, 'tenantId' | 'contentDays'>

const columns = sql.part`
  tenant_id as "tenantId", content_days as "contentDays", changed_at as "changedAt"`

const retentionOf = sql<TenantRetention>`
  select ${columns}
  from tenant_retention
  where tenant_id = $1`

const someRetentions = sql<TenantRetention>`
  select ${columns}
  from tenant_retention
  where tenant_id > $1
  order by tenant_id
  limit $2`

const shortest = sql<{ contentDays: number | null; changedAt: Date | null }>`
  select min(content_days) as "contentDays", max(changed_at) as "changedAt"
  from tenant_retention`

/** The second part reads the table only if '' is asked for. */
const retentionsAmong = sql<KnownRetention>`
  select tenant_id as "tenantId", content_days as "contentDays"
  from tenant_retention
  where tenant_id = any($1::text[])
  union all
  select '', min(content_days)
  from tenant_retention
  where '' = any($1::text[])
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

/** In order of the tenants' ids, after this one. */
export const listRetentions = (on: Queryable, afterTenant: string, most: number): Promise<TenantRetention[]> =>
  on.rows(someRetentions, [afterTenant, most])

/** Of these tenants; '' is the shortest retention of all. */
export const listRetentionsAmong = (on: Queryable, tenantIds: readonly string[]): Promise<KnownRetention[]> =>
  on.rows(retentionsAmong, [tenantIds])

/** The shortest retention that a tenant has, which calls that concern no single tenant follow. */
export async function findShortestRetention(on: Queryable): Promise<TenantRetention | undefined> {
  const { contentDays = null, changedAt = null } = (await on.first(shortest)) ?? {}
  return contentDays === null || changedAt === null ? undefined : { tenantId: '', contentDays, changedAt }
}
