/** Delivery records: every HTTP request to a webhook with request and response, kept for 30 days. Partitioned by day. */
import { mentionPattern, wrongField } from '#base'
import { type ColumnTypes, type Db, listRowRanges, type PartitionedTable, type Queryable, searchInSnapshot, sql } from '#db'

/** Records are slightly longer than the default threshold for compression, which reduced measured throughput by a fifth. */
const settings = 'toast_tuple_target = 4080'
export const deliveryTables: readonly PartitionedTable[] = [{ table: 'webhook_deliveries', key: 'time', settings }]

export interface WebhookDelivery {
  id: string
  /** The event's uuid for this webhook. */
  eventUuid: string
  webhookId: number
  webhookName: string
  /** The event's tenant. */
  tenantId: string
  event: string
  /** The URL at the time of the attempt. */
  url: string
  /** 1 is the first. */
  attempt: number
  success: boolean
  statusCode: number | null
  willRetry: boolean
  at: Date
  /** null: the event is not about an email. */
  emailId: string | null
  /** Of the email, as the body names it; null: not named. */
  recipient: string | null
}

export interface WebhookDeliveryDetails extends WebhookDelivery {
  requestHeaders: Record<string, string>
  /** The complete body as sent. */
  payload: string
  responseBody: string | null
  durationMs: number
  error: string | null
}

export interface NewDelivery extends Omit<WebhookDeliveryDetails, 'webhookName' | 'emailId' | 'recipient'> {
  /** Absent: the email that the body names in Postrider's form. */
  emailId?: string | null
}

const recordColumns: ColumnTypes<Required<NewDelivery>> = {
  tenantId: 'text',
  webhookId: 'bigint',
  id: 'uuid',
  eventUuid: 'uuid',
  event: 'text',
  url: 'text',
  attempt: 'smallint',
  success: 'boolean',
  statusCode: 'smallint',
  willRetry: 'boolean',
  at: 'timestamptz',
  durationMs: 'integer',
  requestHeaders: 'jsonb',
  payload: 'text',
  responseBody: 'text',
  error: 'text',
  emailId: 'text',
}

/** A repeated insert after a lost reply has no effect. */
const insertDeliveries = sql`
  insert into webhook_deliveries (tenant_id, webhook_id, id, event_uuid, event, url, attempt, success, status_code, will_retry, at,
                                  duration_ms, request_headers, payload, response_body, error, email_id)
  select "tenantId", "webhookId", id, "eventUuid", event, url, attempt, success, "statusCode", "willRetry", at, "durationMs",
         "requestHeaders", payload, "responseBody", error, "emailId"
  from json_to_recordset($1::json) as made (${sql.columns(recordColumns)})
  on conflict do nothing`

/** The recipient in the bodies of other vendors: SES has its body as a text within another. */
const vendorRecipient = sql.part`'"(?:to|recipient|Recipient|email|Email|destination)\\\\?":\\[?\\\\?"([^"\\\\]{1,255})'`

const listed = sql.part`
  delivery.id, delivery.event_uuid as "eventUuid", delivery.webhook_id as "webhookId", webhook.name as "webhookName", delivery.tenant_id as "tenantId", delivery.event,
  delivery.url, delivery.attempt, delivery.success, delivery.status_code as "statusCode", delivery.will_retry as "willRetry", delivery.at,
  delivery.email_id as "emailId",
  coalesce(substring(delivery.payload from '"to":"([^"]{1,255})"'), substring(delivery.payload from ${vendorRecipient})) as recipient`

const filtered = sql.part`
  from webhook_deliveries as delivery
  join webhooks as webhook on webhook.id = delivery.webhook_id
  where ($1::bigint is null or delivery.webhook_id = $1)
    and ($2::text is null or webhook.tenant_id = $2)
    and ($3::text is null or delivery.tenant_id = $3)
    and ($4::timestamptz is null or delivery.at > $4)
    and ($5::timestamptz is null or delivery.at < $5)
    and ($6::boolean is null or delivery.success = $6)
    and ($7::text is null or delivery.event = $7)
    and ($8::uuid is null or delivery.event_uuid = $8)`

const newestOfEvent = sql.part`
    and not exists (
      select 1
      from webhook_deliveries as later
      where later.webhook_id = delivery.webhook_id and later.event_uuid = delivery.event_uuid and (later.at, later.id) > (delivery.at, delivery.id))`

const listPage = sql<WebhookDelivery>`
  select ${listed}
  ${filtered}
  order by delivery.at desc, delivery.id
  limit $9 offset $10`

const countMatching = sql<{ total: number }>`
  select count(*) as total
  ${filtered}`

const listNewestPage = sql<WebhookDelivery>`
  select ${listed}
  ${filtered} ${newestOfEvent}
  order by delivery.at desc, delivery.id
  limit $9 offset $10`

const countNewest = sql<{ total: number }>`
  select count(*) as total
  ${filtered} ${newestOfEvent}`

const deliveryById = sql<WebhookDeliveryDetails>`
  select ${listed}, delivery.request_headers as "requestHeaders", delivery.payload,
         delivery.response_body as "responseBody", delivery.duration_ms as "durationMs", delivery.error
  from webhook_deliveries as delivery
  join webhooks as webhook on webhook.id = delivery.webhook_id
  where delivery.id = $1
    and ($2::bigint is null or delivery.webhook_id = $2)
    and ($3::text is null or webhook.tenant_id = $3)`

const ofEmail = sql<WebhookDelivery>`
  select ${listed}
  from webhook_deliveries as delivery
  join webhooks as webhook on webhook.id = delivery.webhook_id
  where delivery.email_id = $1 and ($2::text is null or webhook.tenant_id = $2)
  order by delivery.at desc, delivery.id
  limit $3`

/** The first token of a body is the email's; quotation marks in text from outside are escaped there. */
const emailIn = (payload: string) => /"token":"([0-9A-Za-z]{22})"/.exec(payload)?.[1] ?? null

/** Inserts records; the partitions of their days must exist. */
export async function recordDeliveries(on: Queryable, made: readonly NewDelivery[]): Promise<void> {
  if (made.length === 0) return
  await on.run(insertDeliveries, [
    JSON.stringify(made.map((one) => ({ ...one, emailId: one.emailId === undefined ? emailIn(one.payload) : one.emailId }))),
  ])
}

/** Requests about an email, newest first, to the webhooks of `ownerId` (null: to all). */
export const listDeliveriesOfEmail = (on: Queryable, emailId: string, ownerId: string | null, most: number): Promise<WebhookDelivery[]> =>
  on.rows(ofEmail, [emailId, ownerId, most])

/** The records of one webhook, or of all webhooks of `ownerId`. Absent members match everything; times are exclusive. */
export interface DeliveryScope {
  webhookId?: number | undefined
  ownerId?: string | undefined
}

export interface DeliveryFilter {
  /** The event's tenant. */
  tenantId?: string | undefined
  after?: Date | undefined
  before?: Date | undefined
  success?: boolean | undefined
  event?: string | undefined
  /** All attempts of one event. */
  eventUuid?: string | undefined
  /** Of each event, only the newest attempt, to which the other members apply. */
  isNewest?: boolean | undefined
}

const uuidForm = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

const tooLong = () =>
  wrongField('after', 'begins a period with too many requests', 'validation_error', 'Set after and before to list a shorter period')

/** Returns a page, newest first, and the number of all matches. Refuses a list that takes too long. */
export async function listDeliveries(
  db: Db,
  { webhookId, ownerId }: DeliveryScope,
  { tenantId, after, before, success, event, eventUuid, isNewest = false }: DeliveryFilter,
  page: { number: number; size: number },
): Promise<{ deliveries: WebhookDelivery[]; total: number }> {
  if (eventUuid !== undefined && !uuidForm.test(eventUuid)) return { deliveries: [], total: 0 }
  const wanted = [webhookId, ownerId, tenantId, after, before, success, event, eventUuid].map((one) => one ?? null)
  const offset = (page.number - 1) * page.size
  return searchInSnapshot(db, tooLong, async (tx) => {
    const total = (await tx.first(isNewest ? countNewest : countMatching, wanted))?.total ?? 0
    const statement = isNewest ? listNewestPage : listPage
    return { deliveries: offset < total ? await tx.rows(statement, [...wanted, page.size, offset]) : [], total }
  })
}

export async function findDelivery(
  on: Queryable,
  id: string,
  { webhookId, ownerId }: DeliveryScope,
): Promise<WebhookDeliveryDetails | undefined> {
  return uuidForm.test(id) ? on.first(deliveryById, [id, webhookId ?? null, ownerId ?? null]) : undefined
}

const dropMentions = sql`
  delete from webhook_deliveries
  where at >= $1 and at < $2 and ctid >= $3::text::tid and ctid < $4::text::tid and ($5::text is null or tenant_id = $5)
    and ((position($6 in lower(payload)) > 0 and lower(payload) ~ $7)
      or (position($6 in lower(response_body)) > 0 and lower(response_body) ~ $7))`

/**
 * Deletes the records that contain this address (lower case); returns their number. Each record is read once, in transactions of a few megabytes:
 * one that has written stops the readers of the event log, and reading all records takes minutes. A record that is updated meanwhile may be
 * missed: updates only replace addresses by hashes, which the caller erases after the address.
 */
export async function eraseFromDeliveries(db: Db, address: string, tenantId: string | null): Promise<number> {
  let erased = 0
  for (const table of deliveryTables)
    for (const { from, before, firstRow, endRow } of await listRowRanges(db, table))
      erased += await db.run(dropMentions, [from, before, firstRow, endRow, tenantId, address, mentionPattern(address)])
  return erased
}

const dropOld = sql`
  with old as materialized (
    select tenant_id, id, at
    from webhook_deliveries
    where tenant_id = $1 and at < $2
    limit $3
  )
  delete from webhook_deliveries as delivery
  using old
  -- The time leaves out the younger partitions.
  where delivery.tenant_id = old.tenant_id and delivery.id = old.id and delivery.at = old.at and delivery.at < $2`

const dropOfEmails = sql`
  delete from webhook_deliveries
  where tenant_id = $1 and email_id = any($2)`

/** Deletes records about a tenant's events that are older than `before`; returns their number. */
export const removeOldDeliveries = (on: Queryable, tenantId: string, before: Date, most: number): Promise<number> =>
  on.run(dropOld, [tenantId, before, most])

/** Deletes the records about these emails, of any age. */
export const removeDeliveriesOf = (on: Queryable, tenantId: string, emailIds: readonly string[]): Promise<number> =>
  on.run(dropOfEmails, [tenantId, emailIds])

const deliveriesLeft = sql<{ rows: number; oldest: Date | null }>`
  select count(*)::integer as rows, min(at) as oldest
  from webhook_deliveries
  where tenant_id = $1`

/** The requests about a tenant's events, to webhooks of any owner, and the time of the oldest. */
export const countDeliveriesLeft = async (on: Queryable, tenantId: string): Promise<{ rows: number; oldest: Date | null }> =>
  (await on.first(deliveriesLeft, [tenantId])) ?? { rows: 0, oldest: null }
