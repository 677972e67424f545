/**
 * Each webhook's position in the log and its retries: rows read by the sending process, and deleted when the webhook is deleted or
 * disabled.
 */
import { Refusal } from '#base'
import { type Queryable, sql, type Tx } from '#db'
import { countEventsWithin, findEndOfLog, type LogPosition } from '#events'
import { allEventNames, organisationWide, type Webhook } from './manage-webhooks.ts'
import { type Health, maxRetryDelayMs } from './retry-schedule.ts'

const insertEndpoint = sql`
  insert into webhook_endpoints (webhook_id, epoch, consecutive_failures)
  values ($1, 0, 0)`

const insertPosition = sql`
  insert into webhook_positions (webhook_id, xact, event_id, done_ids, since)
  values ($1, $2::text::xid8, $3, '{}', pg_current_snapshot())`

/** An empty snapshot, because replayed events may be older than the webhook. */
const insertReplay = sql`
  insert into webhook_positions (webhook_id, xact, event_id, done_ids, since, until_xact, after_at, before_at)
  values ($1, $2::text::xid8, 0, '{}', '1:1:', $3::text::xid8, $4, $5)`

const countReplays = sql<{ total: number }>`
  select count(*)::integer as total
  from webhook_positions
  where webhook_id = $1 and until_xact is not null`

const deletePositions = sql`
  delete from webhook_positions
  where webhook_id = any($1)`

const deleteRetries = sql`
  delete from webhook_retries
  where webhook_id = any($1)`

const forgiveFailures = sql`
  update webhook_endpoints
  set consecutive_failures = 0, failing_since = null, probe_at = null, alerted_at = null
  where webhook_id = $1`

const positionsOf = sql<StoredPosition>`
  select webhook_id as "webhookId", id, xact::text as xact, event_id as "eventId", done_ids as "doneIds", since::text as since,
         until_xact::text as "untilXact", after_at as "afterAt", before_at as "beforeAt"
  from webhook_positions
  where webhook_id = any($1)
  order by id`

const healthOf = sql<Health & { webhookId: number }>`
  select webhook_id as "webhookId", consecutive_failures as "consecutiveFailures", failing_since as "failingSince", probe_at as "probeAt", alerted_at as "alertedAt"
  from webhook_endpoints
  where webhook_id = any($1)`

const failingNow = sql<{ count: number; since: Date | null }>`
  select count(*) as count, min(webhook_endpoints.failing_since) as since
  from webhook_endpoints
  join webhooks on webhooks.id = webhook_endpoints.webhook_id
  where webhooks.enabled and webhook_endpoints.failing_since is not null`

/** At most `room` of each webhook, so that no webhook delays another's. Retries due after $4 were written by a clock that was ahead. */
const dueRetries = sql<Retry>`
  select due.webhook_id as "webhookId", due.event_id as id, due.xact::text as xact, due.made
  from unnest($1::bigint[], $2::integer[]) as wanted (webhook_id, room)
  cross join lateral (
    (
      select webhook_id, event_id, xact, made
      from webhook_retries
      where webhook_retries.webhook_id = wanted.webhook_id and due_at <= $3
      order by due_at
      limit wanted.room
    )
    union all
    (
      select webhook_id, event_id, xact, made
      from webhook_retries
      where webhook_retries.webhook_id = wanted.webhook_id and due_at > $4
      order by due_at
      limit wanted.room
    )
    limit wanted.room
  ) as due`

export interface StoredPosition {
  webhookId: number
  id: number
  xact: string
  eventId: number
  /** Beyond the position. */
  doneIds: number[]
  since: string
  /** The last transaction of a replayed part; null: the live log, without an end. */
  untilXact: string | null
  afterAt: Date | null
  beforeAt: Date | null
}

export interface Retry extends LogPosition {
  webhookId: number
  /** Attempts so far. */
  made: number
}

/** Creates a new webhook's position; it gets all events committed after this transaction's current statement. */
export async function addEndpoint(tx: Tx, { id, enabled }: Webhook): Promise<void> {
  await tx.run(insertEndpoint, [id])
  if (enabled) await startFollowing(tx, id)
}

/** Starts at the current end of the log and resets the failure count. */
export async function startFollowing(tx: Tx, webhookId: number): Promise<void> {
  const end = await findEndOfLog(tx)
  await tx.run(forgiveFailures, [webhookId])
  await tx.run(insertPosition, [webhookId, end.xact, end.id])
}

/** Drops the webhooks' retries and unsent events. */
export async function stopFollowing(tx: Tx, webhookIds: readonly number[]): Promise<void> {
  await tx.run(deletePositions, [webhookIds])
  await tx.run(deleteRetries, [webhookIds])
}

export const forgive = (tx: Tx, webhookId: number): Promise<number> => tx.run(forgiveFailures, [webhookId])

const everyKind: ReadonlySet<string> = new Set(allEventNames)

export const hears = ({ allEvents, events, tenantId }: Webhook, event: { kind: string; tenantId: string }): boolean =>
  (tenantId === organisationWide || tenantId === event.tenantId) &&
  (allEvents ? everyKind.has(event.kind) : events.some((one) => one === event.kind))

/** A part of the log that is sent again; the times are exclusive. */
export interface ReplayRange {
  after: Date
  before: Date
}

/** The counted events of a range that a webhook is subscribed to, and the transactions of the first and the last. */
export interface CountedRange extends ReplayRange {
  count: number
  first: string
  last: string
}

/** Counts without locks: a transaction that has written stops all readers of the log. Undefined without an event. */
export async function countReplay(on: Queryable, webhook: Webhook, range: ReplayRange): Promise<CountedRange | undefined> {
  const kinds = webhook.allEvents ? [...everyKind] : webhook.events
  const tenantId = webhook.tenantId === organisationWide ? null : webhook.tenantId
  const found = await countEventsWithin(on, { ...range, kinds, tenantId })
  return found && { ...range, ...found }
}

/** Each is read as often as the log itself. */
const maxReplays = 10

/** Replays the counted range; the caller has locked the webhook. Refuses `validation_error`: too many replays at once. */
export async function addReplay(tx: Tx, webhookId: number, { first, last, after, before }: CountedRange): Promise<void> {
  const { total } = (await tx.first(countReplays, [webhookId])) ?? { total: 0 }
  if (total >= maxReplays)
    throw new Refusal('validation_error', {
      message: `${maxReplays} ranges are being replayed to this webhook`,
      suggestion: 'Wait until one of them is sent, or replay one longer range',
    })
  await tx.run(insertReplay, [webhookId, first, last, after, before])
}

export const findPositions = (on: Queryable, webhookIds: readonly number[]): Promise<StoredPosition[]> => on.rows(positionsOf, [webhookIds])

export const findHealth = (on: Queryable, webhookIds: readonly number[]): Promise<(Health & { webhookId: number })[]> =>
  on.rows(healthOf, [webhookIds])

/** The number of enabled webhooks that fail now, and the longest time that one has failed. */
export async function measureFailing(on: Queryable, nowMs: number): Promise<{ webhooks: number; maxMs: number }> {
  const { count = 0, since = null } = (await on.first(failingNow)) ?? {}
  return { webhooks: count, maxMs: since === null ? 0 : Math.max(0, nowMs - since.getTime()) }
}

/** The due retries of these webhooks, the longest overdue first, at most `room` for each. */
export const findDueRetries = (on: Queryable, wanted: readonly { webhookId: number; room: number }[], nowMs: number): Promise<Retry[]> =>
  on.rows(dueRetries, [
    wanted.map(({ webhookId }) => webhookId),
    wanted.map(({ room }) => room),
    new Date(nowMs),
    new Date(nowMs + maxRetryDelayMs),
  ])
