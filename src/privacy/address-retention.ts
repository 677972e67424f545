/** Days after which the addresses of a tenant are hashed. Contents, which repeat the addresses, are kept no longer. */
import { wrongField } from '#base'
import { type Queryable, sql, type Tx } from '#db'
import { getTenant, isOfTenant } from '#tenants'
import { maxContentDays } from './manage-retention.ts'

export interface AddressRetention {
  tenantId: string
  hashDays: number
  changedAt: Date
}

const columns = sql.part`
  tenant_id as "tenantId", hash_days as "hashDays", changed_at as "changedAt"`

const retentionOf = sql<{ hashDays: number | null }>`
  select hash_days as "hashDays"
  from tenant_address_retention
  where tenant_id = $1`

const someRetentions = sql<AddressRetention>`
  select ${columns}
  from tenant_address_retention
  where tenant_id > $1 and hash_days is not null
  order by tenant_id
  limit $2`

const saveRetention = sql`
  insert into tenant_address_retention (tenant_id, hash_days, changed_at)
  values ($1, $2, $3)
  on conflict (tenant_id) do update
  set hash_days = excluded.hash_days, changed_at = excluded.changed_at`

const shortest = sql<{ hashDays: number | null; changedAt: Date | null }>`
  select min(hash_days) as "hashDays", max(changed_at) as "changedAt"
  from tenant_address_retention
  where ${isOfTenant}`

/** The row stays, because searches look for hashes as long as there may be some. */
const endRetention = sql`
  update tenant_address_retention
  set hash_days = null, changed_at = $2
  where tenant_id = $1`

const anyRetention = sql`
  select
  from tenant_address_retention
  where $1::text is null or tenant_id = $1
  limit 1`

/** null: addresses are not hashed. */
export const getHashDays = async (on: Queryable, tenantId: string): Promise<number | null> =>
  (await on.first(retentionOf, [tenantId]))?.hashDays ?? null

/** Refuses `not_found` and `validation_error`. `days` null: not hashed. */
export async function setHashDays(tx: Tx, tenantId: string, days: number | null, nowMs: number): Promise<void> {
  await getTenant(tx, tenantId)
  if (days === null) await tx.run(endRetention, [tenantId, new Date(nowMs)])
  else if (Number.isInteger(days) && days >= 1 && days <= maxContentDays) await tx.run(saveRetention, [tenantId, days, new Date(nowMs)])
  else throw wrongField('hashAddressesAfterDays', `must be a whole number of days from 1 to ${maxContentDays}, or null`)
}

/** Whether addresses of a tenant may be hashed; `tenantId` null: of any. */
export const mayHaveHashes = async (on: Queryable, tenantId: string | null): Promise<boolean> =>
  (await on.first(anyRetention, [tenantId])) !== undefined

/** In order of the tenants' ids, after this one. */
export const listAddressRetentions = (on: Queryable, afterTenant: string, most: number): Promise<AddressRetention[]> =>
  on.rows(someRetentions, [afterTenant, most])

/** The shortest of the tenants that exist, which calls that concern no single tenant follow. */
export async function findShortestHashing(on: Queryable): Promise<AddressRetention | undefined> {
  const { hashDays = null, changedAt = null } = (await on.first(shortest)) ?? {}
  return hashDays === null || changedAt === null ? undefined : { tenantId: '', hashDays, changedAt }
}
