/** Webhook leases: which process sends for which webhook. Uses the spool's leases (decision 004), with webhooks as shards. */
import { type Db, sql } from '#db'
import { deregisterProcess, type Leased } from '#spool'

const countAll = sql<{ count: number }>`
  select count(*) as count
  from webhook_endpoints`

export const endpointLeases: Leased = {
  register: sql`
    insert into webhook_processes (id, heartbeat)
    values ($1, 0)`,
  renewHeartbeat: sql<{ shard: number | null; epoch: number | null }>`
    with me as (
      update webhook_processes
      set heartbeat = heartbeat + 1
      where id = $1
      returning id
    )
    select webhook_endpoints.webhook_id as shard, webhook_endpoints.epoch
    from me
    left join webhook_endpoints on webhook_endpoints.owner = me.id`,
  listHeartbeats: sql<{ id: string; heartbeat: number }>`
    select id, heartbeat
    from webhook_processes`,
  removeProcess: sql`
    delete from webhook_processes
    where id = $1 and heartbeat = $2`,
  removeEnded: sql<{ id: string }>`
    delete from webhook_processes
    where starts_with(id, $1)
    returning id`,
  freeAllOf: sql`
    update webhook_endpoints
    set owner = null
    where owner = any($1)`,
  take: sql<{ shard: number; epoch: number }>`
    with free as materialized (
      select webhook_id
      from webhook_endpoints
      where owner is null
        or (webhook_id, owner) in (
          select orphan.webhook_id, orphan.owner
          from webhook_endpoints as orphan
          where orphan.owner not in (select id from webhook_processes)
        )
      order by webhook_id
      limit $2
      for update skip locked
    )
    update webhook_endpoints as endpoint
    set owner = $1, epoch = epoch + 1
    from free
    where endpoint.webhook_id = free.webhook_id
    returning endpoint.webhook_id as shard, epoch`,
  free: sql`
    update webhook_endpoints
    set owner = null
    where owner = $1 and webhook_id = any($2)`,
  count: async (db) => (await db.first(countAll))?.count ?? 0,
}

/** Releases the webhooks of a process known to have ended, so that another takes them over at once. */
export const deregisterSender = (db: Db, processId: string): Promise<void> => deregisterProcess(db, endpointLeases, processId)
