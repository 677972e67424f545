/** Replaces the addresses in a tenant's old events by hashes, in bounded pages, and counts the events with addresses. */
import { type AddressHasher, unhashedPattern } from '#base'
import { type Db, type Queryable, sql } from '#db'

const oldEvents = sql<{ id: number; at: Date; data: Record<string, unknown> | null }>`
  select id, at, case when data::text ~ $5 then data end as data
  from events
  where tenant_id = $1 and id > $2 and at < $3
  order by id
  limit $4`

/** An erasure that committed meanwhile keeps its event as it is. The times of the first and the last leave out the other partitions. */
const hashEvents = sql`
  update events
  set data = hashed.data
  from unnest($2::bigint[], $3::timestamptz[], $4::jsonb[], $5::jsonb[]) as hashed (id, at, before, data)
  where events.tenant_id = $1 and events.at between $6 and $7 and events.id = hashed.id and events.at = hashed.at
    and events.data = hashed.before`

/** Reads a page of events after the id `after` that happened before `beforeMs`. */
export async function hashAddressesOfEvents(
  db: Db,
  hasher: AddressHasher,
  tenantId: string,
  { after, beforeMs }: { after: number; beforeMs: number },
  most: number,
): Promise<{ last: number | undefined; isWhole: boolean; changed: number }> {
  const page = await db.rows(oldEvents, [tenantId, after, new Date(beforeMs), most, unhashedPattern])
  const due = page
    .filter(({ data }) => data !== null)
    .map((one) => ({ ...one, hashed: hasher.hashInJson(one.data) }))
    .filter(({ data, hashed }) => JSON.stringify(data) !== JSON.stringify(hashed))
  const data = [due.map((one) => one.data), due.map((one) => one.hashed)]
  const times = due.map(({ at }) => at.getTime())
  const bounds = [new Date(Math.min(...times)), new Date(Math.max(...times))]
  if (due.length > 0) await db.run(hashEvents, [tenantId, due.map(({ id }) => id), due.map(({ at }) => at), ...data, ...bounds])
  return { last: page.at(-1)?.id, isWhole: page.length === most, changed: due.length }
}

const eventsLeft = sql<{ rows: number; oldest: Date | null }>`
  select count(*)::integer as rows, min(at) as oldest
  from events
  where tenant_id = $1 and data::text ~ $2`

export const countEventsWithAddresses = async (on: Queryable, tenantId: string): Promise<{ rows: number; oldest: Date | null }> =>
  (await on.first(eventsLeft, [tenantId, unhashedPattern])) ?? { rows: 0, oldest: null }
