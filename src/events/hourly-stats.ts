/** Delivery outcomes for automatic pauses and statistics: a tenant's hours, and the ends of recent attempts. */
import { type Queryable, type Sql, sql } from '#db'
import type { LogPosition } from './event-log.ts'

/** The outcome of every attempt names `simulated`; a cancelled or expired email fails without an attempt, and its event does not. */
const hourlyStats = sql<HourlyStats & { lastXact: string; lastId: number }>`
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
    count(*) filter (where kind in ('MessageSent', 'MessageDeliveryFailed') and (data -> 'simulated')::boolean = false) as completed,
    count(*) filter (
      where kind in ('MessageDeliveryFailed', 'MessageBounced') and (data -> 'classificationCode') <@ '[10, 11, 12]'::jsonb
        and not coalesce((data -> 'simulated')::boolean, false)
    ) as "invalidRecipients",
    count(*) filter (where kind = 'ComplaintReceived' and not coalesce((data -> 'simulated')::boolean, false)) as complaints,
    (select last.xact::text from last) as "lastXact", (select last.id from last) as "lastId"
  from next
  group by 1, 2
  order by 1, 2`

/** The limit comes first, so that the rows read depend neither on the log's size nor on its content. */
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
    and (kind in ('MessageSent', 'MessageDelayed', 'MessageBounced') or (kind = 'MessageDeliveryFailed' and data -> 'simulated' is not null))
  order by at desc`
const endsOfAll = endsAmong(sql.part`order by xact desc, id desc`)
const endsOfTenant = endsAmong(sql.part`where tenant_id = $3 order by id desc`)

/** Totals of a tenant's live mail in one hour. */
export interface HourlyStats {
  tenantId: string
  hour: Date
  /** Emails delivered or permanently failed. */
  completed: number
  /** Failures and bounces that suppress their recipient (contract section 7.2). */
  invalidRecipients: number
  complaints: number
}

/** Sums the next events by tenant and hour, and returns the position reached; undefined without further events. */
export async function summariseEvents(
  on: Queryable,
  after: LogPosition,
  maximum: number,
): Promise<{ hours: HourlyStats[]; last: LogPosition } | undefined> {
  const rows = await on.rows(hourlyStats, [after.xact, after.id, maximum])
  const [first] = rows
  return first && { hours: rows, last: { xact: first.lastXact, id: first.lastId } }
}

/** The end of an attempt, or a later report. */
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

/** The ends of attempts since `after`, newest first, among the last `maximum` events of the tenant, or of all. */
export const readRecentEnds = (on: Queryable, tenantId: string | null, after: Date, maximum: number): Promise<AttemptEnd[]> =>
  on.rows(tenantId === null ? endsOfAll : endsOfTenant, [maximum, after, tenantId])
