/**
 * The lists of deleted tenants, which may be long. Nothing finds their entries any more, and housekeeping deletes them in small transactions:
 * a long one that has written stops the readers of the event log.
 */
import { type Db, sql, type Tx } from '#db'

/** The condition that an entry is not one of a deleted tenant. */
export const isOfList = sql.part`suppressions.tenant_id not in (select gone.tenant_id from suppression_erasures as gone)`

const noteErasure = sql`
  insert into suppression_erasures (tenant_id)
  values ($1)
  on conflict do nothing`

const erasures = sql<{ tenantId: string }>`
  select tenant_id as "tenantId"
  from suppression_erasures`

const nextEntries = sql<{ address: string }>`
  select address
  from suppressions
  where tenant_id = $1 and address > $2
  order by address
  limit $3`

const dropEntries = sql`
  delete from suppressions
  where tenant_id = $1 and address = any($2::text[])`

const endErasure = sql`
  delete from suppression_erasures
  where tenant_id = $1`

/** Removes the list of a tenant being deleted; `deleteRemovedLists` deletes its entries. */
export const removeSuppressionsOfTenant = (tx: Tx, tenantId: string): Promise<number> => tx.run(noteErasure, [tenantId])

/** Deletes the entries of removed lists. No entry is added to them meanwhile, and no new tenant has the id of a deleted one. */
export async function deleteRemovedLists(db: Db, maxAtOnce = 1000): Promise<void> {
  for (const { tenantId } of await db.rows(erasures)) {
    let after: string | undefined = ''
    while (after !== undefined) {
      const addresses: string[] = (await db.rows(nextEntries, [tenantId, after, maxAtOnce])).map(({ address }) => address)
      if (addresses.length > 0) await db.run(dropEntries, [tenantId, addresses])
      after = addresses.at(-1)
    }
    await db.run(endErasure, [tenantId])
  }
}
