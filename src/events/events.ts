/**
 * The log of all that happened to emails. Webhooks, usage, live view and timelines read it; nothing else tells anybody anything.
 * Owns: events. Uses: db. Used by: emails, accept, delivery, housekeeping.
 * Promises: an event is appended in the transaction that makes it true.
 */
import { type PartitionedTable, type Queryable, sql, type Tx } from '#db'

export const eventTables: readonly PartitionedTable[] = [{ table: 'events', key: 'time' }]

/** The names of contract section 13.1, and our own, which begin with Email and are never sent to webhooks. */
export type EventKind =
  | 'MessageSent'
  | 'MessageDelayed'
  | 'MessageDeliveryFailed'
  | 'MessageBounced'
  | 'MessageHeld'
  | 'EmailsAccepted'
  | 'EmailRetried'
  | 'EmailReleased'
  | 'DomainDNSError'

/** What is told of a status carries the status before as `data.was`, which the counts are made of. */
export interface NewEvent {
  tenantId: string
  kind: EventKind
  /** Null for what is of no email. */
  emailId: string | null
  at: Date
  data: Record<string, unknown>
}

const append = sql`
  insert into events (tenant_id, at, kind, email_id, data)
  select tenant_id, at, kind, email_id, data
  from unnest($1::text[], $2::timestamptz[], $3::text[], $4::text[], $5::jsonb[]) as happened (tenant_id, at, kind, email_id, data)`

const blankEvents = sql`
  update events
  set data = data - 'details' - 'output'
  where tenant_id = any($1) and email_id = any($2)`

/** Takes the texts that name a recipient out of the events of these emails; what is counted stays. */
export const eraseFromEvents = (on: Queryable, emails: readonly { tenantId: string; id: string }[]): Promise<number> =>
  on.run(blankEvents, [[...new Set(emails.map((one) => one.tenantId))], emails.map((one) => one.id)])

/** Appends to the log; readers see it when the caller commits. */
export async function appendEvents(tx: Tx, happened: readonly NewEvent[]): Promise<void> {
  if (happened.length === 0) return
  await tx.run(append, [
    happened.map((event) => event.tenantId),
    happened.map((event) => event.at),
    happened.map((event) => event.kind),
    happened.map((event) => event.emailId),
    happened.map((event) => JSON.stringify(event.data)),
  ])
}

/** What a count needs of an event. */
export interface CountedEvent extends LogPosition {
  tenantId: string
  kind: EventKind
  emailId: string | null
  was: string | null
  /** Of accepted emails: how many in which unix second. */
  seconds: [second: number, count: number][] | null
  test: boolean | null
}

/** A place in the log: what comes later has a larger transaction, or the same one and a larger id. */
export interface LogPosition {
  xact: string
  id: number
}

const countedColumns = sql.part`
  xact::text as xact, id, tenant_id as "tenantId", kind, email_id as "emailId", data ->> 'was' as was, data -> 'seconds' as seconds,
  (data -> 'test')::boolean as test`

/** Ordered by the column and not by its text of the same name: '9' comes before '10'. */
const countedEvents = sql<CountedEvent>`
  select ${countedColumns}
  from events
  where (xact, id) > ($1::text::xid8, $2) and xact < pg_snapshot_xmin(pg_current_snapshot())
  order by events.xact, events.id
  limit $3`

const countedTail = sql<CountedEvent>`
  select ${countedColumns}
  from events
  where (xact, id) > ($1::text::xid8, $2) and ($3::text is null or tenant_id = $3)
  order by events.xact, events.id
  limit $4`

const firstAfter = sql<{ at: Date }>`
  select at
  from events
  where (xact, id) > ($1::text::xid8, $2)
  order by events.xact, events.id
  limit 1`

/** The next events in order, as far as no transaction is open that could still write one before them. */
export const readCountedEvents = (on: Queryable, after: LogPosition, most: number): Promise<CountedEvent[]> =>
  on.rows(countedEvents, [after.xact, after.id, most])

const tailAtOnce = 10_000

/** Every event after a position that the transaction's snapshot shows, some at a time; of one tenant, or all. */
export async function* readCountedTail(tx: Tx, from: LogPosition, tenantId: string | null): AsyncGenerator<CountedEvent> {
  for (let after = from; ; ) {
    const some = await tx.rows(countedTail, [after.xact, after.id, tenantId, tailAtOnce])
    yield* some
    const last = some.at(-1)
    if (!last || some.length < tailAtOnce) return
    after = last
  }
}

/** When the first event after a position happened. */
export const findTimeAfter = async (on: Queryable, { xact, id }: LogPosition): Promise<Date | undefined> =>
  (await on.first(firstAfter, [xact, id]))?.at
