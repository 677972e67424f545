/** The log itself: events are appended in the transaction that makes them true, and read in the order in which they became visible. */
import { emailIdPrefix, sanitiseJson } from '#base'
import { type PartitionedTable, type Queryable, sql, type Tx } from '#db'

export const eventTables: readonly PartitionedTable[] = [{ table: 'events', key: 'time' }]

/** The names of contract section 13.1, and Postrider's own. The list of those that webhooks may get is in `webhooks`. */
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
  | 'ComplaintReceived'
  | 'RecipientUnsubscribed'
  | 'SuppressionAdded'
  | 'SuppressionRemoved'
  | 'AutoPauseWarning'
  | 'TenantPaused'
  | 'TenantResumed'
  | 'OperatorAction'
  | 'TrafficLimitChanged'
  | 'SendLimitApproaching'
  | 'SendLimitExceeded'
  | 'WebhookFailing'
  | 'MessageReceived'
  | 'ReputationWarning'

/** An event with a new status has the previous status in `data.was`, from which the counts are made. */
export interface NewEvent {
  tenantId: string
  kind: EventKind
  /** Null for an event without an email. */
  emailId: string | null
  at: Date
  data: Record<string, unknown>
}

const append = sql`
  insert into events (tenant_id, at, kind, email_id, data)
  select tenant_id, at, kind, email_id, data
  from unnest($1::text[], $2::timestamptz[], $3::text[], $4::text[], $5::jsonb[]) as happened (tenant_id, at, kind, email_id, data)`

/** The members of an event's data that may name a recipient. */
export const namingMembers = sql.part`array['details', 'output', 'url', 'token', 'ipAddress', 'userAgent', 'bounce', 'address']`

/** Appends to the log; readers see the events after the caller's commit. */
export async function appendEvents(tx: Tx, happened: readonly NewEvent[]): Promise<void> {
  if (happened.length === 0) return
  await tx.run(append, [
    happened.map((event) => event.tenantId),
    happened.map((event) => event.at),
    happened.map((event) => event.kind),
    happened.map((event) => event.emailId),
    happened.map((event) => sanitiseJson(event.data)),
  ])
}

/** For an event's data: its time by a test clock that is ahead. The log itself uses real time. */
export const simulatedAt = (atMs: number, clockOffsetMs: number): { simulatedAt?: number } =>
  clockOffsetMs > 0 ? { simulatedAt: atMs + clockOffsetMs } : {}

/** The data of an outcome without an attempt: a hold, an expiry, a cancellation. `was`: the email's status before. */
export const dataWithoutAttempt = (details: string, was: string, time: { nowMs: number; clockOffsetMs: number }) => ({
  details,
  output: '',
  secure: false,
  seconds: 0,
  classification: null,
  classificationCode: null,
  enhanced: null,
  remoteHost: null,
  was,
  ...simulatedAt(time.nowMs, time.clockOffsetMs),
})

/** The displayed time of an event: by the test clock, if that was ahead. */
export const simulatedMs = ({ at, data }: Pick<LoggedEvent, 'at' | 'data'>): Date =>
  typeof data.simulatedAt === 'number' ? new Date(data.simulatedAt) : at

/** An event as readers of the log get it. */
export interface LoggedEvent extends LogPosition {
  tenantId: string
  kind: EventKind
  emailId: string | null
  at: Date
  data: Record<string, unknown>
}

/** A position in the log: later events have a larger transaction, or the same one and a larger id. */
export interface LogPosition {
  xact: string
  id: number
}

const nextEvents = sql<LoggedEvent>`
  select xact::text as xact, id, tenant_id as "tenantId", kind, email_id as "emailId", at, data
  from events
  where (xact, id) > ($1::text::xid8, $2) and xact < pg_snapshot_xmin(pg_current_snapshot()) and ($4::text is null or tenant_id = $4)
  order by events.xact, events.id
  limit $3`

/** `read`: the events of all tenants among which they are, of which the last is returned too. */
const nextOfTenant = sql<LoggedEvent & { read: number }>`
  select xact::text as xact, id, tenant_id as "tenantId", kind, email_id as "emailId", at, data, read
  from (
    select next.*, row_number() over (order by xact, id) as place, count(*) over () as read
    from (
      select *
      from events
      where (xact, id) > ($1::text::xid8, $2) and xact < pg_snapshot_xmin(pg_current_snapshot())
      order by events.xact, events.id
      limit $3
    ) as next
  ) as numbered
  where tenant_id = $4 or place = read
  order by numbered.xact, numbered.id
  limit $5`

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

const firstAfter = sql<{ at: Date }>`
  select at
  from events
  where (xact, id) > ($1::text::xid8, $2)
  order by events.xact, events.id
  limit 1`

/** The next events in order, of one tenant or all, up to the first open transaction that could still write an earlier one. */
export const readEvents = (on: Queryable, after: LogPosition, maximum: number, tenantId: string | null = null): Promise<LoggedEvent[]> =>
  on.rows(nextEvents, [after.xact, after.id, maximum, tenantId])

/** Events of all tenants that one read for a tenant passes. */
const maxPassed = 5000

/**
 * As `readEvents`, for a tenant with few events in a long part of the log: its events among the next thousands, and the last of those, which
 * may be of another tenant. `isFull`: there may be further events already.
 */
export async function readTenantEvents(
  on: Queryable,
  after: LogPosition,
  { tenantId, maximum }: { tenantId: string; maximum: number },
): Promise<{ logged: LoggedEvent[]; isFull: boolean }> {
  const logged = await on.rows(nextOfTenant, [after.xact, after.id, maxPassed, tenantId, maximum])
  return { logged, isFull: logged.length === maximum || logged[0]?.read === maxPassed }
}

/** Before the first event. */
export const startOfLog: LogPosition = { xact: '0', id: 0 }

/** The position after the last event that `readEvents` would return. */
export const findEndOfLog = async (on: Queryable): Promise<LogPosition> => (await on.first(lastEvent, [])) ?? startOfLog

/** The time of the first event after a position. */
export const findTimeAfter = async (on: Queryable, { xact, id }: LogPosition): Promise<Date | undefined> =>
  (await on.first(firstAfter, [xact, id]))?.at

/** The remaining events at these positions, in no particular order. */
export const findEventsAt = (on: Queryable, positions: readonly LogPosition[]): Promise<LoggedEvent[]> =>
  on.rows(eventsAt, [positions.map(({ xact }) => xact), positions.map(({ id }) => id)])

/** Whether `readEvents` returns all events of this transaction and of earlier ones, that is, whether all of them have ended. */
export const isReadable = async (on: Queryable, xact: string): Promise<boolean> =>
  (await on.first(transactionEnded, [xact]))?.isReadable ?? false

/** The number of events of these kinds between two times, both exclusive, and the transactions of the first and the last in the log. */
export async function countEventsWithin(
  on: Queryable,
  { after, before, kinds, tenantId }: { after: Date; before: Date; kinds: readonly string[]; tenantId: string | null },
): Promise<{ count: number; first: string; last: string } | undefined> {
  const found = await on.first(eventsWithin, [after, before, kinds, tenantId])
  return found?.first && found.last ? { count: found.count, first: found.first, last: found.last } : undefined
}

/** Allows for processes whose clocks differ. */
export const clocksDifferMs = 3_600_000

/** An event is not older than its email, so that the partitions before the period are not read. */
const emailsWith = sql<{ emailId: string }>`
  select distinct email_id as "emailId"
  from events
  where kind = $1 and email_id is not null and ($2::text is null or tenant_id = $2) and ($3::text is null or email_id >= $3)
    and ($4::text is null or email_id < $4) and ($5::timestamptz is null or at > $5)
  order by email_id desc
  limit $6`

/** The newest emails with an event of this kind, among those accepted within a period; `tenantId` null: of all tenants. Scans the log. */
export async function listEmailsWithEvent(
  on: Queryable,
  kind: EventKind,
  { tenantId, after, before }: { tenantId: string | null; after?: Date | undefined; before?: Date | undefined },
  most: number,
): Promise<string[]> {
  const prefix = (at: Date | undefined) => (at ? emailIdPrefix(at.getTime()) : null)
  const since = after ? new Date(after.getTime() - clocksDifferMs) : null
  return (await on.rows(emailsWith, [kind, tenantId, prefix(after), prefix(before), since, most])).map(({ emailId }) => emailId)
}

const eventsLeft = sql<{ rows: number; oldest: Date | null }>`
  select count(*)::integer as rows, min(at) as oldest
  from events
  where tenant_id = $1`

/** The events of a tenant, and the time of the oldest. */
export const countEventsLeft = async (on: Queryable, tenantId: string): Promise<{ rows: number; oldest: Date | null }> =>
  (await on.first(eventsLeft, [tenantId])) ?? { rows: 0, oldest: null }
