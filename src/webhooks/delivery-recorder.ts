/**
 * Records results of webhook requests: the delivery record, the retry and its time, the receiver's health, and the position in the log.
 * Many requests share one transaction, so that these stay consistent. Fenced by the lease's epoch: a process that lost the lease moves no
 * position, but its requests are still recorded.
 */
import { type Clock, type Log, metrics } from '#base'
import { BatchWriter, type Db, sql, type Tx, withPartitions } from '#db'
import { appendEvents, eventTables, type LogPosition } from '#events'
import { deliveryTables, type NewDelivery, recordDeliveries } from './delivery-records.ts'
import type { CursorEntry, LogCursor } from './log-cursor.ts'
import { stopFollowing } from './log-positions.ts'
import type { Webhook } from './manage-webhooks.ts'
import { type Health, isToBeAlerted } from './retry-schedule.ts'

/** Not by a late answer of a URL that the webhook had before. */
const disable = sql<{ id: number }>`
  update webhooks
  set enabled = false, disabled_at = $3, disabled_reason = 'endpoint_gone', updated_at = $3
  from unnest($1::bigint[], $2::text[]) as gone (id, url)
  where webhooks.id = gone.id and webhooks.url = gone.url and webhooks.enabled
  returning webhooks.id`

/** Locked in order and before any other row, as in a change of a webhook, which prevents deadlocks. */
const shareWebhooks = sql<{ id: number }>`
  select id
  from webhooks
  where id = any($1)
  order by id
  for key share`

const saveHealth = sql<{ id: number }>`
  update webhook_endpoints
  set consecutive_failures = seen."consecutiveFailures", failing_since = seen."failingSince", probe_at = seen."probeAt", alerted_at = seen."alertedAt"
  from json_to_recordset($1::json) as seen (
    "webhookId" bigint, epoch bigint, "consecutiveFailures" integer, "failingSince" timestamptz, "probeAt" timestamptz, "alertedAt" timestamptz)
  where webhook_endpoints.webhook_id = seen."webhookId" and webhook_endpoints.epoch = seen.epoch
  returning webhook_id as id`

const movePositions = sql<{ id: number }>`
  update webhook_positions
  set xact = moved.xact::xid8, event_id = moved."eventId", done_ids = moved."doneIds"
  from json_to_recordset($1::json) as moved ("webhookId" bigint, id bigint, xact text, "eventId" bigint, "doneIds" bigint[])
  where webhook_positions.webhook_id = moved."webhookId" and webhook_positions.id = moved.id
  returning webhook_positions.id`

const endPositions = sql`
  delete from webhook_positions
  where id = any($1)`

const addRetries = sql`
  insert into webhook_retries (webhook_id, event_id, xact, made, due_at)
  select "webhookId", id, xact::xid8, made, "dueAt"
  from json_to_recordset($1::json) as failed ("webhookId" bigint, id bigint, xact text, made smallint, "dueAt" timestamptz)
  on conflict do nothing`

const postponeRetries = sql<{ webhookId: number; id: number }>`
  update webhook_retries
  set made = failed.made, due_at = failed."dueAt"
  from json_to_recordset($1::json) as failed ("webhookId" bigint, id bigint, made smallint, "dueAt" timestamptz)
  where webhook_retries.webhook_id = failed."webhookId" and webhook_retries.event_id = failed.id
  returning webhook_id as "webhookId", event_id as id`

const endRetries = sql`
  delete from webhook_retries
  using json_to_recordset($1::json) as ended ("webhookId" bigint, id bigint)
  where webhook_retries.webhook_id = ended."webhookId" and webhook_retries.event_id = ended.id`

/** A webhook as seen by the process that leases it. */
export interface Recorded {
  readonly webhookId: number
  readonly epoch: number
  readonly health: Health
  readonly webhook: Webhook | undefined
  cursors(): readonly LogCursor[]
  /** Sets the time at which the operator was notified of the failure. */
  recordAlerted(at: Date): void
}

export interface Attempted {
  webhookId: number
  epoch: number
  event: LogPosition
  delivery: Omit<NewDelivery, 'willRetry'>
  /** Status 410: the webhook is disabled, unless its URL has changed since. */
  isGone: boolean
  /** The time of the retry; null: no retry. */
  dueAt: Date | null
  /** Of a first attempt: its place in the log. */
  first: { entry: CursorEntry; cursor: LogCursor } | undefined
  /** Called when a further retry of this event may be claimed. */
  retried(): void
}

export interface DeliveryRecorder {
  add(endpoint: Recorded, attempted: Attempted): void
  /** Drops the event's retries, because there is no notification to send any more. */
  drop(endpoint: Recorded, event: LogPosition, dropped: () => void): void
  /** Its position has moved past events that it is not subscribed to. */
  move(endpoint: Recorded): void
  /** Whether the buffer has room. */
  hasRoom(): boolean
  /** Resolves when the buffer is empty. */
  emptied(): Promise<void>
}

type Item = {
  endpoint: Recorded
  attempted?: Attempted
  /** The database rejects the content of the request or its response. */
  isUnrecordable?: boolean
  dropped?: { event: LogPosition; done: () => void }
}

const maxWaiting = 2000
/** A transaction waits this long for further entries. */
const gatherMs = 15

/** Opens the recorder of one webhook process. A request that the database rejects for its content is not recorded; its event moves on. */
export function openDeliveryRecorder({ db, clock, log }: { db: Db; clock: Clock; log: Log }): DeliveryRecorder {
  /** Webhooks with a new position, which the next transaction stores. */
  let moved = new Set<Recorded>()

  const writer = new BatchWriter<Item>({
    clock,
    gatherMs,
    // All of it is idempotent, so that a repetition after a lost reply need not look its rows up.
    async write(batch) {
      const moves = moved
      moved = new Set()
      try {
        const endpoints = new Set([...batch.map(({ endpoint }) => endpoint), ...moves])
        await withPartitions(db, () => write(db, clock, log, batch, endpoints), [
          { tables: deliveryTables, timesMs: batch.flatMap(({ attempted }) => attempted?.delivery.at.getTime() ?? []) },
          { tables: eventTables, timesMs: [clock.nowMs()] },
        ])
      } catch (error) {
        for (const one of moves) moved.add(one)
        throw error
      }
    },
    onDone({ attempted, dropped }) {
      attempted?.retried()
      dropped?.done()
    },
    onRejected(item, error) {
      if (item.attempted && !item.isUnrecordable) {
        item.isUnrecordable = true
        log.error({ err: error, webhook: item.attempted.webhookId }, 'failed to store a webhook request; it is not recorded')
      } else warnOfRetry(error)
      return 'retry'
    },
    onRetry: (error) => warnOfRetry(error),
  })
  const warnOfRetry = (error: unknown) =>
    log.warn({ err: error, requests: writer.waiting }, 'failed to record webhook deliveries; retrying')

  return {
    add(endpoint, attempted) {
      metrics.webhookRequests.inc({ outcome: attempted.delivery.success ? 'success' : 'failure' })
      writer.add({ endpoint, attempted })
    },
    drop(endpoint, event, done) {
      writer.add({ endpoint, dropped: { event, done } })
    },
    move(endpoint) {
      moved.add(endpoint)
      writer.flush()
    },
    hasRoom: () => writer.waiting < maxWaiting,
    emptied: () => writer.emptied(),
  }
}

async function write(db: Db, clock: Clock, log: Log, batch: readonly Item[], endpoints: ReadonlySet<Recorded>): Promise<void> {
  const attempts = batch.flatMap(({ attempted }) => attempted ?? [])
  const entries = attempts.flatMap(({ first }) => first?.entry ?? [])
  const nowMs = clock.nowMs()
  const gone = attempts.filter(({ isGone }) => isGone)
  const failing = [...endpoints].filter(({ health, webhook }) => webhook && isToBeAlerted(health, nowMs))

  for (const entry of entries) entry.isBeingRecorded = true
  const work = async (tx: Tx) => {
    const disabled = gone.length > 0 ? await disableGone(tx, gone, nowMs) : []
    const present = new Set((await tx.rows(shareWebhooks, [[...endpoints].map(({ webhookId }) => webhookId)])).map(({ id }) => id))
    const health = [...endpoints].map((one) => ({ webhookId: one.webhookId, epoch: one.epoch, ...one.health }))
    for (const one of failing)
      Object.assign(health.find(({ webhookId }) => webhookId === one.webhookId) ?? {}, { alertedAt: new Date(nowMs) })
    const mine = new Set((await tx.rows(saveHealth, [JSON.stringify(health)])).map(({ id }) => id))
    const cursors = await moveFollowers(
      tx,
      [...endpoints].filter(({ webhookId }) => mine.has(webhookId)),
    )
    const willRetry = await writeRetries(tx, batch, { mine, cursors })
    await recordDeliveries(
      tx,
      batch.flatMap(({ attempted, isUnrecordable }) =>
        attempted && !isUnrecordable && present.has(attempted.webhookId)
          ? [{ ...attempted.delivery, willRetry: willRetry.has(attempted) }]
          : [],
      ),
    )
    const alerted = failing.filter(({ webhookId }) => mine.has(webhookId))
    await appendEvents(
      tx,
      alerted.map((one) => failingEvent(one, nowMs)),
    )
    return disabled
  }
  // After a failure the next transaction may be smaller, so no position may be beyond its contents.
  let disabled: readonly number[]
  try {
    disabled = await db.transaction(work)
    for (const entry of entries) entry.isRecorded = true
  } finally {
    for (const entry of entries) entry.isBeingRecorded = false
  }
  for (const one of failing) {
    one.recordAlerted(new Date(nowMs))
    const { failingSince, consecutiveFailures } = one.health
    log.warn(
      { webhook: one.webhookId, failingSince, consecutiveFailures },
      'a webhook has failed for 24 hours; only its receiver can fix it',
    )
  }
  for (const webhook of disabled) log.warn({ webhook }, 'a webhook returned 410 Gone; disabled')
}

/** Returns the webhooks that still had the URL. */
async function disableGone(tx: Tx, gone: readonly Attempted[], nowMs: number): Promise<number[]> {
  const columns = [gone.map(({ webhookId }) => webhookId), gone.map(({ delivery }) => delivery.url)]
  const disabled = (await tx.rows(disable, [...columns, new Date(nowMs)])).map(({ id }) => id)
  if (disabled.length > 0) await stopFollowing(tx, disabled)
  return disabled
}

const failingEvent = ({ webhookId, webhook, health: { failingSince, consecutiveFailures } }: Recorded, nowMs: number) => ({
  tenantId: webhook?.tenantId ?? '',
  kind: 'WebhookFailing' as const,
  emailId: null,
  at: new Date(nowMs),
  data: { webhookId, name: webhook?.name, failingSince, consecutiveFailures },
})

/** Returns the followers that still exist; a disabled webhook has no follower. */
async function moveFollowers(tx: Tx, endpoints: readonly Recorded[]): Promise<Set<number>> {
  const at = endpoints.flatMap((endpoint) =>
    endpoint.cursors().map((cursor) => ({ webhookId: endpoint.webhookId, cursor, ...cursor.position() })),
  )
  if (at.length === 0) return new Set()
  const rows = at.map(({ webhookId, cursor, xact, id, doneIds }) => ({ webhookId, id: cursor.id, xact, eventId: id, doneIds }))
  const alive = await tx.rows(movePositions, [JSON.stringify(rows)])
  const over = at.filter(({ isOver }) => isOver).map(({ cursor }) => cursor.id)
  if (over.length > 0) await tx.run(endPositions, [over])
  return new Set(alive.map(({ id }) => id))
}

/** Returns the attempts that will be retried. */
async function writeRetries(
  tx: Tx,
  batch: readonly Item[],
  { mine, cursors }: { mine: ReadonlySet<number>; cursors: ReadonlySet<number> },
): Promise<Set<Attempted>> {
  const attempts = batch.flatMap(({ attempted }) => (attempted && mine.has(attempted.webhookId) ? [attempted] : []))
  const row = ({ webhookId, event, delivery, dueAt }: Attempted) => ({ webhookId, ...event, made: delivery.attempt, dueAt })
  const failedFirst = attempts.filter(({ first, dueAt }) => dueAt !== null && first && cursors.has(first.cursor.id))
  const failedAgain = attempts.filter(({ first, dueAt }) => dueAt !== null && !first)
  const ended = [
    ...attempts.filter(({ dueAt }) => dueAt === null).map(row),
    ...batch.flatMap(({ endpoint, dropped }) => (dropped ? [{ webhookId: endpoint.webhookId, ...dropped.event }] : [])),
  ]
  if (failedFirst.length > 0) await tx.run(addRetries, [JSON.stringify(failedFirst.map(row))])
  const postponed = failedAgain.length === 0 ? [] : await tx.rows(postponeRetries, [JSON.stringify(failedAgain.map(row))])
  if (ended.length > 0) await tx.run(endRetries, [JSON.stringify(ended)])
  const stillThere = new Set(postponed.map(({ webhookId, id }) => `${webhookId}/${id}`))
  return new Set([...failedFirst, ...failedAgain.filter(({ webhookId, event }) => stillThere.has(`${webhookId}/${event.id}`))])
}
