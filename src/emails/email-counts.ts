/**
 * Counts of emails by acceptance time and current status, derived from the event log: a chore rolls events up, and a reader adds the later
 * ones, so that a count is always exact (docs/decisions/007-counts-from-the-log.md).
 */
import { emailIdTimeMs } from '#base'
import { type Db, type Queryable, sql, type Tx } from '#db'
import {
  type CountedChange,
  type CountedEvent,
  findTimeAfter,
  type LogPosition,
  nextEventAfter,
  readCountedEvents,
  readTailBySecond,
  readTailByTenant,
} from '#events'
import type { EmailStatus } from './status-transitions.ts'

export const secondMs = 1000
export const quarterHourMs = 900_000
export const dayMs = 86_400_000

export type CountSpan = 'second' | '15min' | 'day'
const spans: readonly [CountSpan, number][] = [
  ['second', secondMs],
  ['15min', quarterHourMs],
  ['day', dayMs],
]

const settledStatuses = ['sent', 'softfail', 'hardfail', 'bounced', 'held'] as const

/**
 * All accepted emails, those by test keys and those with complaints among them, and those with a settled status now; the others are
 * pending.
 */
export type EmailCounts = Record<'accepted' | 'test' | 'complained' | (typeof settledStatuses)[number], number>

export const noEmailCounts = (): EmailCounts => ({
  accepted: 0,
  test: 0,
  complained: 0,
  sent: 0,
  softfail: 0,
  hardfail: 0,
  bounced: 0,
  held: 0,
})
const columns = Object.keys(noEmailCounts()) as (keyof EmailCounts)[]

export function addCounts(to: EmailCounts, more: EmailCounts): EmailCounts {
  for (const column of columns) to[column] += more[column]
  return to
}

/** The number with one of these statuses; undefined: all. Only without statuses can it be limited to test or live mail. */
export function countOf(counts: EmailCounts, statuses: readonly EmailStatus[] | undefined, test?: boolean): number {
  if (statuses === undefined && test !== undefined) return test ? counts.test : counts.accepted - counts.test
  if (statuses === undefined) return counts.accepted
  const pending = counts.accepted - settledStatuses.reduce((sum, one) => sum + counts[one], 0)
  return statuses.reduce((sum, one) => sum + (one === 'pending' ? pending : counts[one]), 0)
}

const position = sql<LogPosition>`
  select xact::text as xact, id
  from email_counts_position`

const lockPosition = sql<LogPosition>`
  select xact::text as xact, id
  from email_counts_position
  for update`

const nextEvent = nextEventAfter(sql.part`email_counts_position`)

const movePosition = sql`
  update email_counts_position
  set xact = $1::text::xid8, id = $2`

const addUp = sql`
  insert into email_counts (tenant_id, span, starts_at, accepted, test, complained, sent, softfail, hardfail, bounced, held)
  select tenant_id, span, starts_at, accepted, test, complained, sent, softfail, hardfail, bounced, held
  from json_to_recordset($1::json) as more (tenant_id text, span text, starts_at timestamptz, accepted bigint, test bigint,
                                            complained bigint, sent bigint, softfail bigint, hardfail bigint, bounced bigint, held bigint)
  order by tenant_id, span, starts_at
  on conflict (tenant_id, span, starts_at) do update
  set accepted = email_counts.accepted + excluded.accepted, test = email_counts.test + excluded.test,
    complained = email_counts.complained + excluded.complained, sent = email_counts.sent + excluded.sent, softfail = email_counts.softfail + excluded.softfail,
    hardfail = email_counts.hardfail + excluded.hardfail, bounced = email_counts.bounced + excluded.bounced,
    held = email_counts.held + excluded.held`

/** The per-second counts of 15 minutes with few emails are not needed: a page there is found by reading the emails. */
const deleteSparse = sql`
  delete from email_counts as second
  where second.span = 'second' and second.starts_at >= $1 and second.starts_at < $2 and (
    select bucket.accepted
    from email_counts as bucket
    where bucket.tenant_id = second.tenant_id and bucket.span = '15min'
      and bucket.starts_at = to_timestamp(floor(extract(epoch from second.starts_at) / 900) * 900)
  ) < $3`

/** The per-second counts of emails beyond their retention are not needed either. */
const deleteUnlisted = sql`
  delete from email_counts
  where span = 'second' and starts_at < $1`

/** Below this number of emails in 15 minutes, the per-second counts may have been deleted. */
export const sparsePerBucket = 2000

const statusAfter: Readonly<Record<string, EmailStatus>> = {
  MessageSent: 'sent',
  MessageDelayed: 'softfail',
  MessageDeliveryFailed: 'hardfail',
  MessageBounced: 'bounced',
  MessageHeld: 'held',
  EmailRetried: 'pending',
  EmailReleased: 'pending',
}

/** The effect of a change on the counts, if any. */
function changeOf({ kind, was, test, count }: CountedChange): Partial<EmailCounts> | undefined {
  if (kind === 'EmailsAccepted') return { accepted: count, test: test ? count : 0 }
  if (kind === 'ComplaintReceived') return { complained: count }
  const after = statusAfter[kind]
  if (after === undefined || was === null || was === after) return undefined
  const change: Partial<EmailCounts> = {}
  if (after !== 'pending') change[after] = count
  if (was !== 'pending') change[was as (typeof settledStatuses)[number]] = -count
  return change
}

/** The effects of an event: the second of acceptance (ms), and the difference. */
function* changesOf(event: CountedEvent): Generator<{ atMs: number; change: Partial<EmailCounts> }> {
  const { kind, was, test } = event
  const timeMs = emailIdTimeMs(event.emailId ?? '')
  const seconds: [number, number][] =
    kind === 'EmailsAccepted' ? (event.seconds ?? []) : timeMs === undefined ? [] : [[Math.floor(timeMs / secondMs), 1]]
  for (const [second, count] of seconds) {
    const change = changeOf({ kind, was, test, count })
    if (change) yield { atMs: second * secondMs, change }
  }
}

function apply(to: EmailCounts, change: Partial<EmailCounts>): void {
  for (const column of columns) to[column] += change[column] ?? 0
}

const maxEvents = 20_000

/** Rolls up the next events that no earlier event can precede any more; returns how many. */
export async function rollUpCounts(db: Db): Promise<number> {
  if (!(await db.first(nextEvent))) return 0
  return db.transaction(async (tx) => {
    const from = await tx.first(lockPosition)
    if (!from) throw new Error('email_counts_position is empty')
    const events = await readCountedEvents(tx, from, maxEvents)
    const last = events.at(-1)
    if (!last) return 0
    const sums = new Map<string, { tenant_id: string; span: CountSpan; starts_at: Date } & EmailCounts>()
    for (const event of events)
      for (const { atMs, change } of changesOf(event))
        for (const tenantId of [event.tenantId, ''])
          for (const [span, ms] of spans) {
            const startsMs = Math.floor(atMs / ms) * ms
            const key = `${tenantId} ${span} ${startsMs}`
            let sum = sums.get(key)
            if (!sum) {
              sum = { tenant_id: tenantId, span, starts_at: new Date(startsMs), ...noEmailCounts() }
              sums.set(key, sum)
            }
            apply(sum, change)
          }
    await tx.run(addUp, [JSON.stringify([...sums.values()])])
    await tx.run(movePosition, [last.xact, last.id])
    return events.length
  })
}

const pruneAfterMs = 3_600_000
const lookBackMs = 2 * dayMs

/**
 * Deletes per-second counts that no list needs: those of 15-minute intervals that ended an hour to two days ago and have few emails, and
 * those of days without emails.
 */
export async function deleteSeconds(db: Db, oldestEmailMs: number | undefined, nowMs: number): Promise<void> {
  const untilMs = Math.floor((nowMs - pruneAfterMs) / quarterHourMs) * quarterHourMs
  await db.run(deleteSparse, [new Date(untilMs - lookBackMs), new Date(untilMs), sparsePerBucket])
  const firstDayMs = Math.floor((oldestEmailMs ?? nowMs) / dayMs) * dayMs
  await db.run(deleteUnlisted, [new Date(Math.min(firstDayMs, untilMs - lookBackMs))])
}

/** The time from which events are not counted yet, accurate to a day; undefined: all are counted. */
export async function findUncountedMs(on: Queryable): Promise<number | undefined> {
  const from = await on.first(position)
  const at = from && (await findTimeAfter(on, from))
  return at && at.getTime() - dayMs
}

/** One tenant's events ('' for all) after the roll-up, by second of acceptance (ms). `tx` is a snapshot, here and below. */
export async function readTail(tx: Tx, tenantId: string): Promise<Map<number, EmailCounts>> {
  const from = await tx.first(position)
  const tail = new Map<number, EmailCounts>()
  if (!from) return tail
  for (const { second, ...changed } of await readTailBySecond(tx, from, tenantId === '' ? null : tenantId))
    addTo(tail, second * secondMs, changed)
  return tail
}

/** The same for each tenant, or each of `only`, for emails accepted within a period. */
async function readTailOfTenants(tx: Tx, fromMs: number, toMs: number, only: readonly string[] | null): Promise<Map<string, EmailCounts>> {
  const from = await tx.first(position)
  const tail = new Map<string, EmailCounts>()
  if (!from) return tail
  const within = { fromSecond: fromMs / secondMs, toSecond: toMs / secondMs }
  for (const { tenantId, ...changed } of await readTailByTenant(tx, from, within, only)) addTo(tail, tenantId, changed)
  return tail
}

function addTo<Key>(tail: Map<Key, EmailCounts>, key: Key, changed: CountedChange): void {
  const counts = tail.get(key) ?? noEmailCounts()
  apply(counts, changeOf(changed) ?? {})
  tail.set(key, counts)
}

const sumColumns = sql.part`
  coalesce(sum(accepted), 0)::bigint as accepted, coalesce(sum(test), 0)::bigint as test,
  coalesce(sum(complained), 0)::bigint as complained, coalesce(sum(sent), 0)::bigint as sent,
  coalesce(sum(softfail), 0)::bigint as softfail, coalesce(sum(hardfail), 0)::bigint as hardfail,
  coalesce(sum(bounced), 0)::bigint as bounced, coalesce(sum(held), 0)::bigint as held`

/** Whole days in the middle ($2 to $3), 15-minute intervals before and after them ($1 and $4). */
const between = sql.part`(
    span = 'day' and starts_at >= $2 and starts_at < $3
    or span = '15min' and (starts_at >= $1 and starts_at < $2 or starts_at >= $3 and starts_at < $4)
  )`

const sumOfTenant = sql<EmailCounts>`
  select ${sumColumns}
  from email_counts
  where tenant_id = $5 and ${between}`

const sumsByTenant = sql<EmailCounts & { tenantId: string }>`
  select tenant_id as "tenantId", ${sumColumns}
  from email_counts
  where tenant_id <> '' and ($5::text[] is null or tenant_id = any($5)) and ${between}
  group by tenant_id`

const sumsByBucket = sql<EmailCounts & { bucket: number }>`
  select width_bucket(starts_at, $4::timestamptz[]) - 1 as bucket, ${sumColumns}
  from email_counts
  where tenant_id = $1 and span = '15min' and starts_at >= $2 and starts_at < $3
  group by 1`

/** Borders for `between`; all times are multiples of 15 minutes. */
function borders(fromMs: number, toMs: number): Date[] {
  const [first, last] = [Math.ceil(fromMs / dayMs) * dayMs, Math.floor(toMs / dayMs) * dayMs]
  const [begin, end] = last > first ? [first, last] : [toMs, toMs]
  return [fromMs, begin, end, toMs].map((ms) => new Date(ms))
}

/**
 * Counts the emails accepted from `fromMs` to before `toMs`, both multiples of 15 minutes; `tenantId` '' for all tenants together.
 * Requires a snapshot: events rolled up between two statements would be missing from both.
 */
export async function countsIn(tx: Tx, tenantId: string, fromMs: number, toMs: number): Promise<EmailCounts> {
  const counts = { ...noEmailCounts(), ...(await tx.first(sumOfTenant, [...borders(fromMs, toMs), tenantId])) }
  for (const [atMs, change] of await readTail(tx, tenantId)) if (atMs >= fromMs && atMs < toMs) addCounts(counts, change)
  return counts
}

/** The same for each tenant with emails, or for each of `only`. */
export async function countsByTenant(
  tx: Tx,
  fromMs: number,
  toMs: number,
  only: readonly string[] | null = null,
): Promise<Map<string, EmailCounts>> {
  const sums = new Map<string, EmailCounts>()
  for (const { tenantId, ...counts } of await tx.rows(sumsByTenant, [...borders(fromMs, toMs), only])) sums.set(tenantId, counts)
  for (const [tenantId, change] of await readTailOfTenants(tx, fromMs, toMs, only))
    sums.set(tenantId, addCounts(sums.get(tenantId) ?? noEmailCounts(), change))
  return sums
}

/** The same for each bucket; `starts` are their start times in order, multiples of 15 minutes, and the last one ends at `toMs`. */
export async function countsInBuckets(tx: Tx, tenantId: string, starts: readonly number[], toMs: number): Promise<EmailCounts[]> {
  const buckets = starts.map(() => noEmailCounts())
  const fromMs = starts[0]
  if (fromMs === undefined) return buckets
  const dates = starts.map((ms) => new Date(ms))
  for (const { bucket, ...counts } of await tx.rows(sumsByBucket, [tenantId, new Date(fromMs), new Date(toMs), dates]))
    addCounts(buckets[bucket] ?? noEmailCounts(), counts)
  for (const [atMs, change] of await readTail(tx, tenantId)) {
    if (atMs < fromMs || atMs >= toMs) continue
    const bucket = starts.findLastIndex((ms) => ms <= atMs)
    addCounts(buckets[bucket] ?? noEmailCounts(), change)
  }
  return buckets
}
