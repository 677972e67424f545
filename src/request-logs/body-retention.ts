/**
 * Removes the bodies of old entries of one tenant, in bounded pages, and counts those that are left. The entries stay. Tenant '' has the
 * calls that concern no single tenant.
 */
import { type Db, type Queryable, sql } from '#db'

/** The last entry of a page, in the order of a tenant's log. */
export interface LogPlace {
  at: Date
  requestId: string
}

export const beforeFirstEntry: LogPlace = { at: new Date(0), requestId: '' }

const oldShared = sql<{ at: Date; id: string }>`
  select at, id
  from request_log_bodies
  where tenant_id = $1 and at < $2
  order by at, id
  limit $3`

/** The times of the first and the last row leave out the other partitions. */
const dropShared = sql`
  delete from request_log_bodies
  using unnest($2::timestamptz[], $3::text[]) as ended (at, id)
  where tenant_id = $1 and request_log_bodies.at between $4 and $5 and request_log_bodies.at = ended.at and request_log_bodies.id = ended.id`

/** `at >= $2` leaves out partitions, which a comparison of rows does not. */
const oldEntries = sql<LogPlace & { hasBodies: boolean }>`
  select at, request_id as "requestId", bodies is not null as "hasBodies"
  from request_logs
  where tenant_id = $1 and at >= $2 and (at, request_id) > ($2, $3) and at < $4
  order by at, request_id
  limit $5`

/** Such an entry names shared bodies that do not exist. */
const dropOwn = sql`
  update request_logs
  set shared_at = request_logs.at, shared_id = request_logs.request_id, shared_nth = 0, bodies = null
  from unnest($2::timestamptz[], $3::text[]) as ended (at, request_id)
  where tenant_id = $1 and request_logs.at between $4 and $5 and request_logs.at = ended.at and request_logs.request_id = ended.request_id
    and bodies is not null`

const anyShared = sql`
  select
  from request_log_bodies
  where tenant_id = $1
  limit 1`

const spanOf = (rows: readonly { at: Date }[]) => [rows[0]?.at, rows.at(-1)?.at]

const entriesWithBodies = sql<{ rows: number; oldest: Date | null }>`
  select count(*)::integer as rows, min(request_logs.at) as oldest
  from request_logs
  left join request_log_bodies as shared
    on shared.tenant_id = request_logs.tenant_id and shared.at = request_logs.shared_at and shared.id = request_logs.shared_id
  where request_logs.tenant_id = $1 and (request_logs.bodies is not null or shared.id is not null)`

/** Removes bodies that several entries share, the oldest first, if the first entry is older; returns the number of rows. */
export async function removeSharedBodies(db: Db, tenantId: string, before: Date, most: number): Promise<number> {
  const old = await db.rows(oldShared, [tenantId, before, most])
  return old.length === 0 ? 0 : db.run(dropShared, [tenantId, old.map(({ at }) => at), old.map(({ id }) => id), ...spanOf(old)])
}

/** Reads entries after `after`, and removes the bodies that they have in their own row. `last` undefined: there are no more. */
export async function removeOwnBodies(
  db: Db,
  tenantId: string,
  { after, before }: { after: LogPlace; before: Date },
  most: number,
): Promise<{ last: LogPlace | undefined; isWhole: boolean }> {
  const page = await db.rows(oldEntries, [tenantId, after.at, after.requestId, before, most])
  const old = page.filter(({ hasBodies }) => hasBodies)
  const ids = old.map(({ requestId }) => requestId)
  if (old.length > 0) await db.run(dropOwn, [tenantId, old.map(({ at }) => at), ids, ...spanOf(old)])
  return { last: page.at(-1), isWhole: page.length === most }
}

/** The entries of a tenant whose bodies are stored. */
export const countBodiesLeft = async (on: Queryable, tenantId: string): Promise<{ rows: number; oldest: Date | null }> =>
  (await on.first(entriesWithBodies, [tenantId])) ?? { rows: 0, oldest: null }

export const hasSharedBodies = async (on: Queryable, tenantId: string): Promise<boolean> =>
  (await on.first(anyShared, [tenantId])) !== undefined
