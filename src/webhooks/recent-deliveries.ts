/** The share of recent requests that each webhook took, and how long they lasted, also by hour: bounded, for the pages of webhooks. */
import { type Queryable, sql } from '#db'

export interface RecentDeliveries {
  requests: number
  delivered: number
  medianMs: number
  /** The requests of each hour since the given time, the oldest first. */
  requestsByHour: number[]
  deliveredByHour: number[]
  /** false: there are more requests than are counted. */
  isComplete: boolean
}

/** Of each webhook, the newest. */
const maxRequests = 1000
const hours = 24

/** `hour` null: of all hours. */
const recentOf = sql<{ webhookId: number; hour: number | null; requests: number; delivered: number; medianMs: number }>`
  select wanted.id as "webhookId", recent.hour, count(*)::integer as requests, count(*) filter (where success)::integer as delivered,
         percentile_disc(0.5) within group (order by duration_ms) as "medianMs"
  from unnest($1::bigint[]) as wanted (id)
  cross join lateral (
    select success, duration_ms, floor(extract(epoch from webhook_deliveries.at - $2::timestamptz) / 3600)::integer as hour
    from webhook_deliveries
    where webhook_deliveries.webhook_id = wanted.id and webhook_deliveries.at > $2
    order by webhook_deliveries.at desc
    limit $3
  ) as recent
  group by grouping sets ((wanted.id), (wanted.id, recent.hour))`

/** By the id of the webhook; one without requests in the 24 hours since then is absent. */
export async function recentDeliveries(on: Queryable, webhookIds: readonly number[], since: Date): Promise<Map<number, RecentDeliveries>> {
  const rows = await on.rows(recentOf, [webhookIds, since, maxRequests])
  const byPlace = new Map(rows.map((row) => [`${row.webhookId} ${row.hour}`, row]))
  const byHour = (id: number, key: 'requests' | 'delivered') =>
    Array.from({ length: hours }, (_, hour) => byPlace.get(`${id} ${hour}`)?.[key] ?? 0)
  const sums = rows.filter(({ hour }) => hour === null)
  return new Map(
    sums.map(({ webhookId, requests, delivered, medianMs }) => [
      webhookId,
      {
        requests,
        delivered,
        medianMs,
        requestsByHour: byHour(webhookId, 'requests'),
        deliveredByHour: byHour(webhookId, 'delivered'),
        isComplete: requests < maxRequests,
      },
    ]),
  )
}
