/**
 * The delivery records of deleted tenants: housekeeping deletes them in small transactions, because a long one that has written stops the readers
 * of the event log.
 */
import { type Db, sql, type Tx } from '#db'

const noteErasure = sql`
  insert into delivery_erasures (tenant_id, until_at)
  values ($1, $2)
  on conflict do nothing`

const erasures = sql<{ tenantId: string; until: Date }>`
  select tenant_id as "tenantId", until_at as until
  from delivery_erasures`

interface Delivery {
  id: string
  at: Date
}

const nextDeliveries = sql<Delivery>`
  select id, at
  from webhook_deliveries
  where tenant_id = $1 and id > $2::uuid and at <= $3
  order by id
  limit $4`

const dropDeliveries = sql`
  delete from webhook_deliveries
  using unnest($2::uuid[], $3::timestamptz[]) as known (id, at)
  where tenant_id = $1 and webhook_deliveries.at >= $4 and webhook_deliveries.at < $5
    and webhook_deliveries.id = known.id and webhook_deliveries.at = known.at`

const endErasure = sql`
  delete from delivery_erasures
  where tenant_id = $1`

const dayMs = 86_400_000
const beforeFirst = '00000000-0000-0000-0000-000000000000'

/** Notes that `deleteRemovedDeliveries` is to delete the records of a tenant being deleted. */
export const noteDeliveriesOf = (tx: Tx, tenantId: string, nowMs: number): Promise<number> =>
  tx.run(noteErasure, [tenantId, new Date(nowMs)])

/** Day by day: for many partitions at once, the database might read them whole. */
async function dropByDay(db: Db, tenantId: string, deliveries: readonly Delivery[]): Promise<void> {
  for (const [day, some] of Map.groupBy(deliveries, ({ at }) => Math.floor(at.getTime() / dayMs))) {
    const keys = [some.map(({ id }) => id), some.map(({ at }) => at)]
    await db.run(dropDeliveries, [tenantId, ...keys, new Date(day * dayMs), new Date((day + 1) * dayMs)])
  }
}

/** Deletes the records about the events of deleted tenants, up to their deletion. */
export async function deleteRemovedDeliveries(db: Db, maxAtOnce = 1000): Promise<void> {
  for (const { tenantId, until } of await db.rows(erasures)) {
    let after: string | undefined = beforeFirst
    while (after !== undefined) {
      const some: Delivery[] = await db.rows(nextDeliveries, [tenantId, after, until, maxAtOnce])
      await dropByDay(db, tenantId, some)
      after = some.at(-1)?.id
    }
    await db.run(endErasure, [tenantId])
  }
}
