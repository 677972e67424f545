/**
 * Ends the settings of deleted tenants once nothing is left that they apply to. Until then they outlive their tenants, because emails and
 * calls do.
 */
import { type Db, type Queryable, sql } from '#db'
import { countRecordsLeft } from '#emails'
import { countEventsLeft } from '#events'
import { countEntriesLeft, hasSharedBodies } from '#request-logs'
import { isOfTenant } from '#tenants'
import { countDeliveriesLeft } from '#webhooks'

const deletedTenants = sql<{ tenantId: string }>`
  select tenant_id as "tenantId"
  from (
    select tenant_id
    from tenant_retention
    union
    select tenant_id
    from tenant_address_retention
    union
    select tenant_id
    from tenant_record_retention
    union
    select tenant_id
    from content_visibility
  ) as own
  where not (${isOfTenant})`

const deletions = [
  sql`
  delete from tenant_retention
  where tenant_id = $1`,
  sql`
  delete from tenant_address_retention
  where tenant_id = $1`,
  sql`
  delete from tenant_record_retention
  where tenant_id = $1`,
  sql`
  delete from content_visibility
  where tenant_id = $1`,
]

/** Received mail, and the traces of emails, go with the tenant and with the emails. */
async function hasDataLeft(on: Queryable, tenantId: string): Promise<boolean> {
  for (const count of [countRecordsLeft, countEntriesLeft, countEventsLeft, countDeliveriesLeft])
    if ((await count(on, tenantId)).rows > 0) return true
  return hasSharedBodies(on, tenantId)
}

/** Returns the number of tenants whose settings ended. */
export async function endUnneededSettings(db: Db): Promise<number> {
  let ended = 0
  for (const { tenantId } of await db.rows(deletedTenants)) {
    if (await hasDataLeft(db, tenantId)) continue
    await db.transaction(async (tx) => {
      for (const deletion of deletions) await tx.run(deletion, [tenantId])
    })
    ended++
  }
  return ended
}
