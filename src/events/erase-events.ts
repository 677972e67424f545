/**
 * Erases a person from the event log. The log is long and has no index by email, so that its events are found by statements that only read, and
 * then updated by their keys: a transaction that has written stops all readers of the log.
 */
import { emailIdTimeMs } from '#base'
import { type Db, sql } from '#db'
import { clocksDifferMs, namingMembers } from './event-log.ts'

/** The primary key of an event. */
interface EventKey {
  tenantId: string
  id: number
  at: Date
}

const oldestWriter = sql<{ xact: string }>`
  select pg_snapshot_xmin(pg_current_snapshot())::text as xact`

const ofEmails = sql.part`tenant_id = any($1) and email_id = any($2) and data ?| ${namingMembers}`

/** An event is not older than its email, so that the partitions before the first email are not read. */
const eventsOfEmails = sql<EventKey>`
  select tenant_id as "tenantId", id, at
  from events
  where ${ofEmails} and at >= $3
  order by id`

const eventsSince = sql<EventKey>`
  select tenant_id as "tenantId", id, at
  from events
  where ${ofEmails} and xact >= $3::text::xid8
  order by id`

/** Entries added by request name no email, so that only a scan finds them. */
const eventsOfAddress = sql<EventKey>`
  select tenant_id as "tenantId", id, at
  from events
  where kind in ('SuppressionAdded', 'SuppressionRemoved') and data ->> 'address' = $1 and ($2::text is null or tenant_id = $2)
  order by id`

/** The times of the first and the last leave out the other partitions. */
const blankThese = sql`
  update events
  set data = data - ${namingMembers}
  from unnest($1::text[], $2::bigint[], $3::timestamptz[]) as known (tenant_id, id, at)
  where events.tenant_id = known.tenant_id and events.id = known.id and events.at = known.at and events.at between $4 and $5`

const maxAtOnce = 500
const dayMs = 86_400_000

/** Day by day: for many partitions at once, the database might read them whole. */
async function blankEvents(db: Db, events: readonly EventKey[]): Promise<void> {
  for (const ofDay of Map.groupBy(events, ({ at }) => Math.floor(at.getTime() / dayMs)).values())
    for (let first = 0; first < ofDay.length; first += maxAtOnce) {
      const some = ofDay.slice(first, first + maxAtOnce)
      const times = some.map(({ at }) => at.getTime())
      const keys = [some.map(({ tenantId }) => tenantId), some.map(({ id }) => id), some.map(({ at }) => at)]
      await db.run(blankThese, [...keys, new Date(Math.min(...times)), new Date(Math.max(...times))])
    }
}

/**
 * Removes the texts that name a recipient from the events of these emails; counted data stays. Events that were added while the log was read are
 * found by a second, short read.
 */
export async function eraseFromEvents(db: Db, emails: readonly { tenantId: string; id: string }[]): Promise<void> {
  if (emails.length === 0) return
  const wanted = [[...new Set(emails.map((one) => one.tenantId))], emails.map((one) => one.id)]
  const firstMs = Math.min(...emails.map(({ id }) => emailIdTimeMs(id) ?? 0))
  const before = await db.first(oldestWriter)
  await blankEvents(db, await db.rows(eventsOfEmails, [...wanted, new Date(firstMs - clocksDifferMs)]))
  await blankEvents(db, await db.rows(eventsSince, [...wanted, before?.xact ?? '0']))
}

/** Removes an address (lower case) from the events of suppression lists; `tenantId` null: of all lists. */
export const eraseAddressFromEvents = async (db: Db, address: string, tenantId: string | null): Promise<void> =>
  blankEvents(db, await db.rows(eventsOfAddress, [address, tenantId]))
