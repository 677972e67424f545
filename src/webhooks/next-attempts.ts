/** The times of the next attempts of failed deliveries. A retry is stored by its event's number, a delivery by the event's uuid. */
import { type Queryable, sql } from '#db'
import type { WebhookDelivery } from './delivery-records.ts'
import { maxRetryDelayMs } from './retry-schedule.ts'
import { eventUuid } from './send-request.ts'

interface PendingRetry {
  webhookId: number
  webhookUuid: string
  eventId: number
  made: number
  dueAt: Date
}

/** More retries than this are not looked through: the times of the others stay unknown. */
const maxRetries = 10_000

const pendingRetries = sql<PendingRetry>`
  select webhook_retries.webhook_id as "webhookId", webhooks.uuid as "webhookUuid", event_id as "eventId", made, due_at as "dueAt"
  from webhook_retries
  join webhooks on webhooks.id = webhook_retries.webhook_id
  where webhook_retries.webhook_id = any($1) and made = any($2) and due_at >= $3 and due_at <= $4
  order by due_at
  limit $5`

/** A delivery as its owner sees it. */
export type ShownDelivery<Delivery extends WebhookDelivery = WebhookDelivery> = Delivery & {
  /** Null: the event was delivered or given up, or a later attempt was made. */
  nextAttemptAt: Date | null
}

/** Only the last attempt of an event has a next one. */
export async function withNextAttempts<Delivery extends WebhookDelivery>(
  on: Queryable,
  deliveries: readonly Delivery[],
): Promise<ShownDelivery<Delivery>[]> {
  const failed = deliveries.filter(({ willRetry }) => willRetry)
  const due = new Map<string, Date>()
  if (failed.length > 0) {
    const timesMs = failed.map(({ at }) => at.getTime())
    const retries = await on.rows(pendingRetries, [
      [...new Set(failed.map(({ webhookId }) => webhookId))],
      [...new Set(failed.map(({ attempt }) => attempt))],
      new Date(Math.min(...timesMs)),
      new Date(Math.max(...timesMs) + maxRetryDelayMs),
      maxRetries,
    ])
    for (const { webhookUuid, eventId, made, dueAt } of retries) due.set(`${eventUuid({ uuid: webhookUuid }, eventId)} ${made}`, dueAt)
  }
  return deliveries.map((one) => ({ ...one, nextAttemptAt: (one.willRetry && due.get(`${one.eventUuid} ${one.attempt}`)) || null }))
}
