/**
 * The log of all that happened to emails. Webhooks, usage, live view and timelines read it; nothing else tells anybody anything.
 * Owns: events. Uses: base, db. Used by: emails, spool, tracking, accept, delivery, returns, webhooks, usage, housekeeping, http.
 * Promises: an event is appended in the transaction that makes it true.
 */
import { storableJson } from '#base'
import { type PartitionedTable, type Queryable, type Sql, sql, type Tx } from '#db'

export const eventTables: readonly PartitionedTable[] = [{ table: 'events', key: 'time' }]

/** The names of contract section 13.1, and our own, which are never sent to webhooks. */
export type EventKind =
  | 'MessageSent'
  | 'MessageDelayed'
  | 'MessageDeliveryFailed'
  | 'MessageBounced'
  | 'MessageHeld'
  | 'MessageLoaded'
  | 'MessageLinkClicked'
  | 'EmailsAccepted'
  | 'EmailRetried'
  | 'EmailReleased'
  | 'DomainDNSError'
  | 'EmailComplained'
  | 'TenantWarned'
  | 'TenantPaused'
  | 'TenantResumed'
  | 'OperatorAction'
  | 'DeliveryShaped'
  | 'SendLimitApproaching'
  | 'SendLimitExceeded'
  | 'WebhookFailing'

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
  set data = data - array['details', 'output', 'url', 'token', 'ipAddress', 'userAgent', 'bounce']
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
    happened.map((event) => storableJson(event.data)),
  ])
}

/** For an event's data: when it happened by a test clock that is ahead; the log itself is kept in real time. */
export const simulatedAt = (atMs: number, aheadMs: number): { simulatedAt?: number } => (aheadMs > 0 ? { simulatedAt: atMs + aheadMs } : {})

/** When an event happened as it is told: by the test clock, where that was ahead. */
export const toldAt = ({ at, data }: Pick<LoggedEvent, 'at' | 'data'>): Date =>
  typeof data.simulatedAt === 'number' ? new Date(data.simulatedAt) : at

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

/** An event as whoever follows the log reads it. */
export interface LoggedEvent extends LogPosition {
  tenantId: string
  kind: EventKind
  emailId: string | null
  at: Date
  data: Record<string, unknown>
}

/** So many emails went from one status to that of `kind`, or were accepted. */
export interface CountedChange {
  kind: EventKind
  was: string | null
  test: boolean | null
  count: number
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

/** Text of our own making, no value. */
const fragment = (text: string) => sql.part(Object.assign([text], { raw: [] }))

const nextEvents = sql<LoggedEvent>`
  select xact::text as xact, id, tenant_id as "tenantId", kind, email_id as "emailId", at, data
  from events
  where (xact, id) > ($1::text::xid8, $2) and xact < pg_snapshot_xmin(pg_current_snapshot()) and ($4::text is null or tenant_id = $4)
  order by events.xact, events.id
  limit $3`

const judgedHours = sql<JudgedHour & { lastXact: string; lastId: number }>`
  with next as (
    select xact, id, tenant_id, kind, at, data
    from events
    where (xact, id) > ($1::text::xid8, $2) and xact < pg_snapshot_xmin(pg_current_snapshot())
    order by events.xact, events.id
    limit $3
  ),
  last as (
    select xact, id
    from next
    order by next.xact desc, next.id desc
    limit 1
  )
  select tenant_id as "tenantId", to_timestamp(floor(extract(epoch from at) / 3600) * 3600) as hour,
    count(*) filter (where kind in ('MessageSent', 'MessageDeliveryFailed') and not coalesce((data -> 'simulated')::boolean, false)) as ended,
    count(*) filter (
      where kind in ('MessageDeliveryFailed', 'MessageBounced') and (data -> 'classificationCode') <@ '[10, 11, 12]'::jsonb
        and not coalesce((data -> 'simulated')::boolean, false)
    ) as "recipientFaults",
    count(*) filter (where kind = 'EmailComplained' and not coalesce((data -> 'simulated')::boolean, false)) as complaints,
    (select last.xact::text from last) as "lastXact", (select last.id from last) as "lastId"
  from next
  group by 1, 2
  order by 1, 2`

/** The limit comes first: how much is read depends on neither how much there is nor what it is. */
const endsAmong = (last: Sql<unknown>) => sql<AttemptEnd>`
  select kind, tenant_id as "tenantId", email_id as "emailId", at, data ->> 'classification' as classification,
    data ->> 'details' as details, data ->> 'output' as output, coalesce((data -> 'simulated')::boolean, false) as simulated
  from (
    select kind, tenant_id, email_id, at, data, xact, id
    from events
    ${last}
    limit $1
  ) as recent
  where at > $2 and ($3::text is null or tenant_id = $3) and email_id is not null
    and kind in ('MessageSent', 'MessageDelayed', 'MessageDeliveryFailed', 'MessageBounced')
  order by at desc`
const endsOfAll = endsAmong(sql.part`order by xact desc, id desc`)
const endsOfTenant = endsAmong(sql.part`where tenant_id = $3 order by id desc`)

const eventsAt = sql<LoggedEvent>`
  select events.xact::text as xact, events.id, tenant_id as "tenantId", kind, email_id as "emailId", at, data
  from unnest($1::text[], $2::bigint[]) as wanted (xact, id)
  join events on events.xact = wanted.xact::xid8 and events.id = wanted.id`

const eventsWithin = sql<{ count: number; first: string | null; last: string | null }>`
  select count(*) as count, min(xact)::text as first, max(xact)::text as last
  from events
  where at > $1 and at < $2 and kind = any($3::text[]) and ($4::text is null or tenant_id = $4)`

const transactionEnded = sql<{ isReadable: boolean }>`
  select $1::text::xid8 < pg_snapshot_xmin(pg_current_snapshot()) as "isReadable"`

const lastEvent = sql<LogPosition>`
  select xact::text as xact, id
  from events
  where xact < pg_snapshot_xmin(pg_current_snapshot())
  order by events.xact desc, events.id desc
  limit 1`

const digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
/** The second of acceptance that an email id begins with, as `emailIdTimeMs` reads it. */
const acceptedSecond = fragment(
  `(${Array.from({ length: 8 }, (_, index) => `(strpos('${digits}', substr(email_id, ${index + 1}, 1)) - 1) * ${62 ** (7 - index)}::bigint`).join(' + ')}) / 1000`,
)

/**
 * The events after a position. Order and limit keep the planner on the index, whatever a prepared plan takes the position for: a tail is
 * mostly empty, at the end of a log of many millions.
 */
const unread = (where: Sql<unknown>) => sql.part`(
      select tenant_id, email_id, kind, data
      from events
      where (xact, id) > ($1::text::xid8, $2) and ${where}
      order by xact, id
      limit (select $3::bigint)
    ) as unread`

/** Summed in the database: a tail is millions of events long after a foreign transaction has kept the roll-up from going on. */
const countedTail = (ofTenants: Sql<unknown>) => sql.part`
    select tenant_id, ${acceptedSecond} as second, kind, data ->> 'was' as was, false as test, 1 as count
    from ${unread(sql.part`email_id is not null and ${ofTenants}`)}
    union all
    select tenant_id, (pair -> 0)::bigint, kind, null, (data -> 'test')::boolean, (pair -> 1)::integer
    from ${unread(sql.part`kind = 'EmailsAccepted' and ${ofTenants}`)}, jsonb_array_elements(data -> 'seconds') as pair`

const endless = Number.MAX_SAFE_INTEGER

const tailBySecond = sql<CountedChange & { second: number }>`
  select second, kind, was, test, sum(count)::bigint as count
  from (${countedTail(sql.part`($4::text is null or tenant_id = $4)`)}
  ) as counted
  group by second, kind, was, test`

const tailByTenant = sql<CountedChange & { tenantId: string }>`
  select tenant_id as "tenantId", kind, was, test, sum(count)::bigint as count
  from (${countedTail(sql.part`($4::text[] is null or tenant_id = any($4))`)}
  ) as counted
  where second >= $5 and second < $6
  group by tenant_id, kind, was, test`

const firstAfter = sql<{ at: Date }>`
  select at
  from events
  where (xact, id) > ($1::text::xid8, $2)
  order by events.xact, events.id
  limit 1`

/** The next events in order, as far as no transaction is open that could still write one before them. */
export const readCountedEvents = (on: Queryable, after: LogPosition, most: number): Promise<CountedEvent[]> =>
  on.rows(countedEvents, [after.xact, after.id, most])

/** What every event after a position that is visible now changes, by second of acceptance; of one tenant, or all. */
export const readTailBySecond = (on: Queryable, after: LogPosition, tenantId: string | null) =>
  on.rows(tailBySecond, [after.xact, after.id, endless, tenantId])

/** The same by tenant, of emails accepted within a time (unix seconds); of some tenants, or all. */
export const readTailByTenant = (
  on: Queryable,
  after: LogPosition,
  within: { fromSecond: number; toSecond: number },
  only: readonly string[] | null,
) => on.rows(tailByTenant, [after.xact, after.id, endless, only, within.fromSecond, within.toSecond])

/** The next events in order, of one tenant or all, as far as no transaction is open that could still write one before them. */
export const readEvents = (on: Queryable, after: LogPosition, most: number, tenantId: string | null = null): Promise<LoggedEvent[]> =>
  on.rows(nextEvents, [after.xact, after.id, most, tenantId])

/** What a tenant's live mail of an hour came to. */
export interface JudgedHour {
  tenantId: string
  hour: Date
  /** Emails accepted by their servers, or failed for good. */
  ended: number
  /** Failures and bounces that suppress their recipient (contract section 7.2). */
  recipientFaults: number
  complaints: number
}

/** The next events summed up by tenant and hour, and how far that was; undefined when there are none. */
export async function judgeEvents(
  on: Queryable,
  after: LogPosition,
  most: number,
): Promise<{ hours: JudgedHour[]; last: LogPosition } | undefined> {
  const rows = await on.rows(judgedHours, [after.xact, after.id, most])
  const [first] = rows
  return first && { hours: rows, last: { xact: first.lastXact, id: first.lastId } }
}

/** How an attempt ended, or what came back later. */
export interface AttemptEnd {
  kind: 'MessageSent' | 'MessageDelayed' | 'MessageDeliveryFailed' | 'MessageBounced'
  tenantId: string
  emailId: string
  at: Date
  classification: string | null
  details: string | null
  output: string | null
  simulated: boolean
}

/** The ends of attempts since `after`, newest first, as far as they are among the last `most` events of the tenant, or of all. */
export const readRecentEnds = (on: Queryable, tenantId: string | null, after: Date, most: number): Promise<AttemptEnd[]> =>
  on.rows(tenantId === null ? endsOfAll : endsOfTenant, [most, after, tenantId])

/** Before the first event. */
export const startOfLog: LogPosition = { xact: '0', id: 0 }

/** After the last event that `readEvents` would give. */
export const findEndOfLog = async (on: Queryable): Promise<LogPosition> => (await on.first(lastEvent, [])) ?? startOfLog

/** When the first event after a position happened. */
export const findTimeAfter = async (on: Queryable, { xact, id }: LogPosition): Promise<Date | undefined> =>
  (await on.first(firstAfter, [xact, id]))?.at

/** The events at these positions, as far as they are still there, in no order. */
export const findEventsAt = (on: Queryable, positions: readonly LogPosition[]): Promise<LoggedEvent[]> =>
  on.rows(eventsAt, [positions.map(({ xact }) => xact), positions.map(({ id }) => id)])

/** `readEvents` will give every event of this transaction and of those before it: none of them is open. */
export const isReadable = async (on: Queryable, xact: string): Promise<boolean> =>
  (await on.first(transactionEnded, [xact]))?.isReadable ?? false

/** How many events of these kinds happened between two moments, both exclusive, and the transactions of the first and the last in the log. */
export async function countEventsWithin(
  on: Queryable,
  { after, before, kinds, tenantId }: { after: Date; before: Date; kinds: readonly string[]; tenantId: string | null },
): Promise<{ count: number; first: string; last: string } | undefined> {
  const found = await on.first(eventsWithin, [after, before, kinds, tenantId])
  return found?.first && found.last ? { count: found.count, first: found.first, last: found.last } : undefined
}
