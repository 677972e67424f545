/** The share of recent requests that each webhook took, and how long they lasted: bounded, for the list of webhooks. */
import { type Queryable, sql } from '#db'

export interface RecentDeliveries {
  requests: number
  delivered: number
  medianMs: number
  /** false: there are more requests than are counted. */
  isComplete: boolean
}

/** Of each webhook, the newest. */
const maxRequests = 1000

const recentOf = sql<{ webhookId: number; requests: number; delivered: number; medianMs: number }>`
  select asked.id as "webhookId", count(*)::integer as requests, count(*) filter (where success)::integer as delivered,
         percentile_disc(0.5) within group (order by duration_ms) as "medianMs"
  from unnest($1::bigint[]) as asked (id)
  cross join lateral (
    select success, duration_ms
    from webhook_deliveries
    where webhook_deliveries.webhook_id = asked.id and webhook_deliveries.at > $2
    order by webhook_deliveries.at desc
    limit $3
  ) as recent
  group by asked.id`

/** By the id of the webhook; one without requests since then is absent. */
export async function recentDeliveries(on: Queryable, webhookIds: readonly number[], since: Date): Promise<Map<number, RecentDeliveries>> {
  const rows = await on.rows(recentOf, [webhookIds, since, maxRequests])
  return new Map(rows.map(({ webhookId, ...counts }) => [webhookId, { ...counts, isComplete: counts.requests < maxRequests }]))
}
