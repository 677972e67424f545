/**
 * The table of opens and clicks: written in batches with their events, and found by email.
 */
import { emailIdPrefix, emailIdTimeMs, metrics, sanitiseText } from '#base'
import { type Db, type PartitionedTable, type Queryable, sql, type Tx, withPartitions } from '#db'
import { findDeliveryTimes, keysByDay } from '#emails'
import { appendEvents, eventTables, simulatedAt } from '#events'
import { classifyRequest, type Judgement } from './bot-detection.ts'
import type { AgentKind } from './bot-rules.ts'

export const trackingTables: readonly PartitionedTable[] = [{ table: 'tracking_events', key: 'email-id' }]

/** A tracking event: a load of the open pixel, or a use of a tracked link. */
export interface TrackingEvent {
  kind: 'open' | 'click'
  tenantId: string
  emailId: string
  /** Empty for an open. */
  url: string
  token: string
  at: Date
  ipAddress: string
  userAgent: string
  isHead: boolean
  /** The request declares itself a prefetch. */
  isPrefetch: boolean
}

/** A tracking event with the evidence of those at about the same time. */
export interface NewTrackingEvent extends TrackingEvent {
  id: string
  isOneOfSeveral: boolean
  isAfterHead: boolean
  /** For a simulated reader: the clock offset of `at`, by the tenant's test clock. */
  clockOffsetMs?: number
}

export interface StoredTrackingEvent {
  kind: 'open' | 'click'
  url: string
  at: Date
  ipAddress: string
  userAgent: string
  source: AgentKind
  reason: string
}

export interface Activity {
  /** Oldest first. */
  trackingEvents: StoredTrackingEvent[]
  counts: Record<'open' | 'click', Record<AgentKind, number>>
}

/** Limit for one email; more add no information, and would let any holder of a link fill the disk. */
const maxPerEmail = 1000
/** Number of earlier clicks of one email that are examined. */
const maxEarlier = 20
const burstMs = 1000
const headMs = 60_000
const maxAgentLength = 500

const insertTrackingEvents = sql<{ id: string }>`
  insert into tracking_events (tenant_id, email_id, at, id, kind, url, ip_address, user_agent, source, reason)
  select tenant_id, email_id, at, id, kind, url, ip_address, user_agent, source, reason
  from json_to_recordset($1::json) as hit (tenant_id text, email_id text, at timestamptz, id text, kind text, url text, ip_address text,
                                           user_agent text, source text, reason text)
  on conflict do nothing
  returning id`

const countOf = sql<{ tenantId: string; emailId: string; total: number }>`
  select wanted.tenant_id as "tenantId", wanted.email_id as "emailId", (
      select count(*)
      from (
        select 1
        from tracking_events
        where tracking_events.tenant_id = wanted.tenant_id and tracking_events.email_id = wanted.email_id
        limit $3
      ) as kept
    ) as total
  from unnest($1::text[], $2::text[]) as wanted (tenant_id, email_id)`

interface Before {
  emailId: string
  at: Date
  url: string
  ipAddress: string
  isHead: boolean
}

const clicksSince = sql<Before>`
  select wanted.email_id as "emailId", hit.at, hit.url, hit.ip_address as "ipAddress", hit.reason = 'head-request' as "isHead"
  from unnest($1::text[], $2::text[]) as wanted (tenant_id, email_id)
  cross join lateral (
    select at, url, ip_address, reason
    from tracking_events
    where tracking_events.tenant_id = wanted.tenant_id and tracking_events.email_id = wanted.email_id and tracking_events.at >= $3 and kind = 'click'
    order by tracking_events.at desc
    limit $4
  ) as hit`

const trackingEventsOf = sql<StoredTrackingEvent>`
  select kind, url, at, ip_address as "ipAddress", user_agent as "userAgent", source, reason
  from tracking_events
  where tenant_id = $1 and email_id = $2
  order by at, id`

const trackingEventsAmong = sql<StoredTrackingEvent & { emailId: string }>`
  select email_id as "emailId", kind, url, at, ip_address as "ipAddress", user_agent as "userAgent", source, reason
  from tracking_events
  where tenant_id = $1 and email_id = any($2)
  order by at, id
  limit $3`

/** The first open and the first click of an email by people; requests of programs are left out. */
export interface ReaderMarks {
  openedAt: Date | null
  clickedAt: Date | null
}

const marksAmong = sql<ReaderMarks & { emailId: string }>`
  select email_id as "emailId", min(at) filter (where kind = 'open') as "openedAt", min(at) filter (where kind = 'click') as "clickedAt"
  from tracking_events
  where tenant_id = any($1) and email_id = any($2) and source <> 'machine'
  group by email_id`

const emailsTracked = sql<{ emailId: string }>`
  select distinct email_id as "emailId"
  from tracking_events
  where kind = $1 and source <> 'machine' and ($2::text is null or tenant_id = $2) and ($3::text is null or email_id >= $3)
    and ($4::text is null or email_id < $4)
  order by email_id desc
  limit $5`

/** The emails are in order: the first and the last leave out the other partitions. */
const these = sql.part`tenant_id = $1 and email_id between $2 and $3 and email_id = any($4)`

const blankTrackingEvents = sql`
  update tracking_events
  set url = '', ip_address = '', user_agent = ''
  where ${these}`

/** At most a thousand opens and clicks of an email are kept. */
export async function listHits(on: Queryable, { tenantId, id }: { tenantId: string; id: string }): Promise<Activity> {
  const trackingEvents = await on.rows(trackingEventsOf, [tenantId, id])
  const counts: Activity['counts'] = { open: { human: 0, machine: 0, unknown: 0 }, click: { human: 0, machine: 0, unknown: 0 } }
  for (const { kind, source } of trackingEvents) counts[kind][source]++
  return { trackingEvents, counts }
}

/** The oldest `most` opens and clicks of these emails of one tenant together, by email id. */
export async function findHits(
  on: Queryable,
  tenantId: string,
  ids: readonly string[],
  most: number,
): Promise<Map<string, StoredTrackingEvent[]>> {
  return Map.groupBy(await on.rows(trackingEventsAmong, [tenantId, ids, most]), ({ emailId }) => emailId)
}

/** The opens and clicks of these emails, by email id. */
export async function findReaderMarks(
  on: Queryable,
  emails: readonly { tenantId: string; emailId: string }[],
): Promise<ReadonlyMap<string, ReaderMarks>> {
  const rows = await on.rows(marksAmong, [[...new Set(emails.map((one) => one.tenantId))], emails.map((one) => one.emailId)])
  return new Map(rows.map(({ emailId, ...marks }) => [emailId, marks]))
}

/** The newest emails that people opened, or whose links they used, among those accepted within a period. */
export async function listTrackedEmails(
  on: Queryable,
  kind: TrackingEvent['kind'],
  { tenantId, after, before }: { tenantId: string | null; after?: Date | undefined; before?: Date | undefined },
  most: number,
): Promise<string[]> {
  const prefix = (at: Date | undefined) => (at ? emailIdPrefix(at.getTime()) : null)
  return (await on.rows(emailsTracked, [kind, tenantId, prefix(after), prefix(before), most])).map(({ emailId }) => emailId)
}

/** Keeps the fact of an open or a click, and deletes its origin and its URL. */
export async function eraseFromHits(on: Queryable, emails: readonly { tenantId: string; id: string }[]): Promise<void> {
  for (const keys of keysByDay(emails)) await on.run(blankTrackingEvents, keys)
}

const dropHits = sql`
  delete from tracking_events
  where ${these}`

/** Deletes the opens and clicks of these emails, whose ids are in order. */
export const removeHits = (on: Queryable, tenantId: string, ids: readonly string[]): Promise<number> =>
  on.run(dropHits, [tenantId, ids[0], ids.at(-1), ids])

/**
 * Writes the batch with its events in one transaction; repeating it is harmless. Events whose email cannot be recorded are counted and
 * left out.
 */
export async function writeTrackingEvents(db: Db, batch: readonly NewTrackingEvent[]): Promise<void> {
  const written = await withPartitions(db, () => db.transaction((tx) => writeIn(tx, batch)), [
    { tables: trackingTables, timesMs: batch.map(({ emailId, at }) => emailIdTimeMs(emailId) ?? at.getTime()) },
    { tables: eventTables, timesMs: batch.map(({ at, clockOffsetMs = 0 }) => at.getTime() - clockOffsetMs) },
  ])
  for (const { kind, source } of written.trackingEvents) metrics.trackingEvents.inc({ kind, source })
  for (const reason of ['no such email', 'too many'] as const)
    if (written[reason] > 0) metrics.trackingEventsDropped.inc({ reason }, written[reason])
}

async function writeIn(tx: Tx, batch: readonly NewTrackingEvent[]) {
  const emails = distinct(batch)
  const parameters = [emails.map((one) => one.tenantId), emails.map((one) => one.id)]
  const delivered = new Map((await findDeliveryTimes(tx, emails)).map((one) => [one.id, one.deliveredAt?.getTime() ?? null]))
  const totals = new Map((await tx.rows(countOf, [...parameters, maxPerEmail])).map((one) => [one.emailId, one.total]))
  const before = await clicksBefore(tx, batch)
  const left = { 'no such email': 0, 'too many': 0 }
  const judged: (NewTrackingEvent & Judgement)[] = []
  for (const trackingEvent of batch) {
    const deliveredAtMs = delivered.get(trackingEvent.emailId)
    const total = totals.get(trackingEvent.emailId) ?? 0
    if (deliveredAtMs === undefined) left['no such email']++
    else if (total >= maxPerEmail) left['too many']++
    else {
      totals.set(trackingEvent.emailId, total + 1)
      const around = { deliveredAtMs, ...besides(trackingEvent, before.get(trackingEvent.emailId) ?? []) }
      judged.push({ ...trackingEvent, ...classifyRequest({ ...trackingEvent, atMs: trackingEvent.at.getTime() }, around) })
    }
  }
  if (judged.length === 0) return { trackingEvents: judged, ...left }
  const inserted = new Set((await tx.rows(insertTrackingEvents, [JSON.stringify(judged.map(toRow))])).map((one) => one.id))
  const trackingEvents = judged.filter((one) => inserted.has(one.id))
  await appendEvents(tx, trackingEvents.map(eventOf))
  return { trackingEvents, ...left }
}

const distinct = (batch: readonly NewTrackingEvent[]) => [
  ...new Map(batch.map(({ tenantId, emailId }) => [emailId, { tenantId, id: emailId }])).values(),
]

/** Reads the stored clicks: another process may have written them. */
async function clicksBefore(tx: Tx, batch: readonly NewTrackingEvent[]): Promise<Map<string, Before[]>> {
  const clicks = batch.filter((one) => one.kind === 'click')
  if (clicks.length === 0) return new Map()
  const emails = distinct(clicks)
  const since = new Date(Math.min(...clicks.map((one) => one.at.getTime())) - headMs)
  const rows = await tx.rows(clicksSince, [emails.map((one) => one.tenantId), emails.map((one) => one.id), since, maxEarlier])
  return Map.groupBy(rows, (row) => row.emailId)
}

function besides(trackingEvent: NewTrackingEvent, before: readonly Before[]): Pick<NewTrackingEvent, 'isOneOfSeveral' | 'isAfterHead'> {
  const agoMs = (other: Before) => trackingEvent.at.getTime() - other.at.getTime()
  return {
    isOneOfSeveral: trackingEvent.isOneOfSeveral || before.some((one) => one.url !== trackingEvent.url && Math.abs(agoMs(one)) < burstMs),
    isAfterHead:
      trackingEvent.isAfterHead ||
      before.some(
        (one) =>
          one.isHead &&
          one.url === trackingEvent.url &&
          one.ipAddress === trackingEvent.ipAddress &&
          agoMs(one) >= 0 &&
          agoMs(one) < headMs,
      ),
  }
}

const toRow = (trackingEvent: NewTrackingEvent & Judgement) => ({
  tenant_id: trackingEvent.tenantId,
  email_id: trackingEvent.emailId,
  at: trackingEvent.at,
  id: trackingEvent.id,
  kind: trackingEvent.kind,
  url: sanitiseText(trackingEvent.url, trackingEvent.url.length),
  ip_address: trackingEvent.ipAddress,
  user_agent: sanitiseText(trackingEvent.userAgent, maxAgentLength),
  source: trackingEvent.source,
  reason: trackingEvent.reason,
})

const eventOf = (trackingEvent: NewTrackingEvent & Judgement) => ({
  tenantId: trackingEvent.tenantId,
  kind: trackingEvent.kind === 'open' ? ('MessageLoaded' as const) : ('MessageLinkClicked' as const),
  emailId: trackingEvent.emailId,
  at: new Date(trackingEvent.at.getTime() - (trackingEvent.clockOffsetMs ?? 0)),
  data: {
    ...(trackingEvent.kind === 'click'
      ? { url: sanitiseText(trackingEvent.url, trackingEvent.url.length), token: trackingEvent.token }
      : {}),
    ipAddress: trackingEvent.ipAddress,
    userAgent: sanitiseText(trackingEvent.userAgent, maxAgentLength),
    source: trackingEvent.source,
    reason: trackingEvent.reason,
    ...simulatedAt(trackingEvent.at.getTime() - (trackingEvent.clockOffsetMs ?? 0), trackingEvent.clockOffsetMs ?? 0),
  },
})

const hitsLeft = sql<{ rows: number; oldest: Date | null }>`
  select count(*)::integer as rows, min(at) as oldest
  from tracking_events
  where tenant_id = $1`

/** The opens and clicks of a tenant's emails, and the time of the oldest. */
export const countHitsLeft = async (on: Queryable, tenantId: string): Promise<{ rows: number; oldest: Date | null }> =>
  (await on.first(hitsLeft, [tenantId])) ?? { rows: 0, oldest: null }
