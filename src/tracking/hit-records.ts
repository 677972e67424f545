/**
 * The table of opens and clicks: written in batches with their events, and found by email.
 */
import { emailIdTimeMs, metrics, storable } from '#base'
import { type Db, makingDays, type PartitionedTable, type Queryable, sql, type Tx } from '#db'
import { findDelivered } from '#emails'
import { appendEvents, eventTables, simulatedAt } from '#events'
import type { Source } from './machine-rules.ts'
import { type Judgement, judge } from './machines.ts'

export const trackingTables: readonly PartitionedTable[] = [{ table: 'hits', key: 'email-id' }]

/** A tracking event: a load of the open pixel, or a use of a tracked link. */
export interface Hit {
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
export interface NotedHit extends Hit {
  id: string
  isOneOfSeveral: boolean
  isAfterHead: boolean
  /** For a simulated reader: the clock offset of `at`, by the tenant's test clock. */
  aheadMs?: number
}

export interface StoredHit {
  kind: 'open' | 'click'
  url: string
  at: Date
  ipAddress: string
  userAgent: string
  source: Source
  reason: string
}

export interface Activity {
  /** Oldest first. */
  hits: StoredHit[]
  counts: Record<'open' | 'click', Record<Source, number>>
}

/** Limit for one email; more add no information, and would let any holder of a link fill the disk. */
const mostOfEmail = 1000
/** Number of earlier clicks of one email that are examined. */
const mostBefore = 20
const burstMs = 1000
const headMs = 60_000
const longestAgent = 500

const insertHits = sql<{ id: string }>`
  insert into hits (tenant_id, email_id, at, id, kind, url, ip_address, user_agent, source, reason)
  select tenant_id, email_id, at, id, kind, url, ip_address, user_agent, source, reason
  from json_to_recordset($1::json) as hit (tenant_id text, email_id text, at timestamptz, id text, kind text, url text, ip_address text,
                                           user_agent text, source text, reason text)
  on conflict do nothing
  returning id`

const countOf = sql<{ tenantId: string; emailId: string; total: number }>`
  select asked.tenant_id as "tenantId", asked.email_id as "emailId", (
      select count(*)
      from (
        select 1
        from hits
        where hits.tenant_id = asked.tenant_id and hits.email_id = asked.email_id
        limit $3
      ) as kept
    ) as total
  from unnest($1::text[], $2::text[]) as asked (tenant_id, email_id)`

interface Before {
  emailId: string
  at: Date
  url: string
  ipAddress: string
  isHead: boolean
}

const clicksSince = sql<Before>`
  select asked.email_id as "emailId", hit.at, hit.url, hit.ip_address as "ipAddress", hit.reason = 'head-request' as "isHead"
  from unnest($1::text[], $2::text[]) as asked (tenant_id, email_id)
  cross join lateral (
    select at, url, ip_address, reason
    from hits
    where hits.tenant_id = asked.tenant_id and hits.email_id = asked.email_id and hits.at >= $3 and kind = 'click'
    order by hits.at desc
    limit $4
  ) as hit`

const hitsOf = sql<StoredHit>`
  select kind, url, at, ip_address as "ipAddress", user_agent as "userAgent", source, reason
  from hits
  where tenant_id = $1 and email_id = $2
  order by at, id`

const blankHits = sql`
  update hits
  set url = '', ip_address = '', user_agent = ''
  where tenant_id = any($1) and email_id = any($2)`

/** At most a thousand opens and clicks of an email are kept. */
export async function listHits(on: Queryable, { tenantId, id }: { tenantId: string; id: string }): Promise<Activity> {
  const hits = await on.rows(hitsOf, [tenantId, id])
  const counts: Activity['counts'] = { open: { human: 0, machine: 0, unknown: 0 }, click: { human: 0, machine: 0, unknown: 0 } }
  for (const { kind, source } of hits) counts[kind][source]++
  return { hits, counts }
}

/** Keeps the fact of an open or a click, and deletes its origin and its URL. */
export const eraseFromHits = (on: Queryable, emails: readonly { tenantId: string; id: string }[]): Promise<number> =>
  on.run(blankHits, [[...new Set(emails.map((one) => one.tenantId))], emails.map((one) => one.id)])

/**
 * Writes the batch with its events in one transaction; repeating it is harmless. Events whose email cannot be recorded are counted and
 * left out.
 */
export async function writeHits(db: Db, batch: readonly NotedHit[]): Promise<void> {
  const written = await makingDays(db, () => db.transaction((tx) => writeIn(tx, batch)), [
    { tables: trackingTables, timesMs: batch.map(({ emailId, at }) => emailIdTimeMs(emailId) ?? at.getTime()) },
    { tables: eventTables, timesMs: batch.map(({ at, aheadMs = 0 }) => at.getTime() - aheadMs) },
  ])
  for (const { kind, source } of written.hits) metrics.hits.inc({ kind, source })
  for (const why of ['no such email', 'too many'] as const) if (written[why] > 0) metrics.hitsDropped.inc({ why }, written[why])
}

async function writeIn(tx: Tx, batch: readonly NotedHit[]) {
  const emails = distinct(batch)
  const parameters = [emails.map((one) => one.tenantId), emails.map((one) => one.id)]
  const delivered = new Map((await findDelivered(tx, emails)).map((one) => [one.id, one.deliveredAt?.getTime() ?? null]))
  const totals = new Map((await tx.rows(countOf, [...parameters, mostOfEmail])).map((one) => [one.emailId, one.total]))
  const before = await clicksBefore(tx, batch)
  const left = { 'no such email': 0, 'too many': 0 }
  const judged: (NotedHit & Judgement)[] = []
  for (const hit of batch) {
    const deliveredAtMs = delivered.get(hit.emailId)
    const total = totals.get(hit.emailId) ?? 0
    if (deliveredAtMs === undefined) left['no such email']++
    else if (total >= mostOfEmail) left['too many']++
    else {
      totals.set(hit.emailId, total + 1)
      const around = { deliveredAtMs, ...besides(hit, before.get(hit.emailId) ?? []) }
      judged.push({ ...hit, ...judge({ ...hit, atMs: hit.at.getTime() }, around) })
    }
  }
  if (judged.length === 0) return { hits: judged, ...left }
  const inserted = new Set((await tx.rows(insertHits, [JSON.stringify(judged.map(toRow))])).map((one) => one.id))
  const hits = judged.filter((one) => inserted.has(one.id))
  await appendEvents(tx, hits.map(eventOf))
  return { hits, ...left }
}

const distinct = (batch: readonly NotedHit[]) => [
  ...new Map(batch.map(({ tenantId, emailId }) => [emailId, { tenantId, id: emailId }])).values(),
]

/** Reads the stored clicks: another process may have written them. */
async function clicksBefore(tx: Tx, batch: readonly NotedHit[]): Promise<Map<string, Before[]>> {
  const clicks = batch.filter((one) => one.kind === 'click')
  if (clicks.length === 0) return new Map()
  const emails = distinct(clicks)
  const since = new Date(Math.min(...clicks.map((one) => one.at.getTime())) - headMs)
  const rows = await tx.rows(clicksSince, [emails.map((one) => one.tenantId), emails.map((one) => one.id), since, mostBefore])
  return Map.groupBy(rows, (row) => row.emailId)
}

function besides(hit: NotedHit, before: readonly Before[]): Pick<NotedHit, 'isOneOfSeveral' | 'isAfterHead'> {
  const agoMs = (other: Before) => hit.at.getTime() - other.at.getTime()
  return {
    isOneOfSeveral: hit.isOneOfSeveral || before.some((one) => one.url !== hit.url && Math.abs(agoMs(one)) < burstMs),
    isAfterHead:
      hit.isAfterHead ||
      before.some((one) => one.isHead && one.url === hit.url && one.ipAddress === hit.ipAddress && agoMs(one) >= 0 && agoMs(one) < headMs),
  }
}

const toRow = (hit: NotedHit & Judgement) => ({
  tenant_id: hit.tenantId,
  email_id: hit.emailId,
  at: hit.at,
  id: hit.id,
  kind: hit.kind,
  url: storable(hit.url, hit.url.length),
  ip_address: hit.ipAddress,
  user_agent: storable(hit.userAgent, longestAgent),
  source: hit.source,
  reason: hit.reason,
})

const eventOf = (hit: NotedHit & Judgement) => ({
  tenantId: hit.tenantId,
  kind: hit.kind === 'open' ? ('MessageLoaded' as const) : ('MessageLinkClicked' as const),
  emailId: hit.emailId,
  at: new Date(hit.at.getTime() - (hit.aheadMs ?? 0)),
  data: {
    ...(hit.kind === 'click' ? { url: storable(hit.url, hit.url.length), token: hit.token } : {}),
    ipAddress: hit.ipAddress,
    userAgent: storable(hit.userAgent, longestAgent),
    source: hit.source,
    reason: hit.reason,
    ...simulatedAt(hit.at.getTime() - (hit.aheadMs ?? 0), hit.aheadMs ?? 0),
  },
})
