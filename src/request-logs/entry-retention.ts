/** Deletes old entries of one tenant, in bounded pages, and counts those that are left. Tenant '' has the calls for no single tenant. */
import { type Queryable, sql } from '#db'

const dropOld = sql`
  with old as materialized (
    select tenant_id, at, request_id
    from request_logs
    where tenant_id = $1 and at < $2
    order by at, request_id
    limit $3
  )
  delete from request_logs as entry
  using old
  -- The time leaves out the younger partitions.
  where entry.tenant_id = old.tenant_id and entry.at = old.at and entry.at < $2 and entry.request_id = old.request_id`

const entriesLeft = sql<{ rows: number; oldest: Date | null }>`
  select count(*)::integer as rows, min(at) as oldest
  from request_logs
  where tenant_id = $1`

/** Deletes entries that are older than `before`, the oldest first; returns their number. Shared bodies have another retention. */
export const removeOldEntries = (on: Queryable, tenantId: string, before: Date, most: number): Promise<number> =>
  on.run(dropOld, [tenantId, before, most])

export const countEntriesLeft = async (on: Queryable, tenantId: string): Promise<{ rows: number; oldest: Date | null }> =>
  (await on.first(entriesLeft, [tenantId])) ?? { rows: 0, oldest: null }
