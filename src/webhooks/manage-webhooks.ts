/**
 * Webhook records: one row, owned by a tenant or (tenant '') by the organisation, with its subscription and its sealed secrets. A replaced
 * secret keeps signing for one day.
 */
import { type Ids, Refusal, type Secrets, wrongField } from '#base'
import { type Queryable, sealedColumns, sql, type Tx } from '#db'

/** Events of contract 13.1 that a webhook may subscribe to by name. */
const contractEvents = [
  'MessageSent',
  'MessageDelayed',
  'MessageDeliveryFailed',
  'MessageBounced',
  'MessageLoaded',
  'MessageLinkClicked',
  'MessageHeld',
  'DomainDNSError',
] as const

/** Sent only to webhooks for all events (contract 13.1). */
const limitEvents = ['SendLimitApproaching', 'SendLimitExceeded'] as const

/** Postrider's own. Only a subscription by name receives them, because receivers of all events know the contract's alone. */
export const namedEvents = [
  'ComplaintReceived',
  'RecipientUnsubscribed',
  'SuppressionAdded',
  'SuppressionRemoved',
  'MessageReceived',
  'ReputationWarning',
] as const

/** The events that `allEvents` means, now and in later releases: exactly those of contract 13.1. */
export const allEventNames = [...contractEvents, ...limitEvents] as const

/** Events that a webhook may subscribe to by name. */
export const webhookEvents = [...contractEvents, ...namedEvents] as const
export type WebhookEvent = (typeof webhookEvents)[number]

/** The reason of a disabled webhook: its receiver answered 410, or a request disabled it. */
export const disabledReasons = ['endpoint_gone', 'requested'] as const

/** The form of bodies and signatures that requests of /v1 may choose: Postrider's, or that of Postal or of SES, whose APIs make no webhooks. */
export const webhookFormats = ['postrider', 'postal', 'ses'] as const

/** Those of other vendors, for webhooks that were created through the vendor's API. */
const vendorFormats = ['resend', 'sendgrid', 'postmark', 'mailgun'] as const
export type WebhookFormat = (typeof webhookFormats)[number] | (typeof vendorFormats)[number]

/** The tenant id of webhooks that get every tenant's events. */
export const organisationWide = ''

export interface Webhook {
  tenantId: string
  id: number
  uuid: string
  name: string
  url: string
  /** Stored, but without effect while `allEvents`. */
  events: WebhookEvent[]
  allEvents: boolean
  enabled: boolean
  /** null: enabled, or the time is unknown. */
  disabledAt: Date | null
  disabledReason: (typeof disabledReasons)[number] | null
  timeoutSeconds: number
  format: WebhookFormat
  /** The first failure since the receiver's last success; null: not failing, or disabled. */
  failingSince: Date | null
  createdAt: Date
  updatedAt: Date
}

type NewWebhook = Omit<Webhook, 'id' | 'disabledAt' | 'disabledReason' | 'failingSince' | 'createdAt' | 'updatedAt'>

export interface StoredWebhook extends Webhook {
  secret: Buffer
  /** Newest first; `sealed` is base64. */
  oldSecrets: { sealed: string; until: string }[]
}

const columns = sql.part`
  tenant_id as "tenantId", id, uuid, name, url, event_names as "events", all_events as "allEvents", enabled,
  disabled_at as "disabledAt", disabled_reason as "disabledReason", timeout_seconds as "timeoutSeconds", format,
  (select failing_since from webhook_endpoints where webhook_id = webhooks.id and webhooks.enabled) as "failingSince",
  secret, old_secrets as "oldSecrets", created_at as "createdAt", updated_at as "updatedAt"`

/** Until the caller commits, no other webhook of this owner is created, so that the count holds. */
const lockOwner = sql`
  select pg_advisory_xact_lock(hashtextextended($1, 7305017))`

const countWebhooksOf = sql<{ total: number }>`
  select count(*) as total
  from webhooks
  where tenant_id = $1`

const insertWebhook = sql<StoredWebhook>`
  insert into webhooks (id, tenant_id, uuid, name, url, event_names, all_events, enabled, timeout_seconds, secret, old_secrets, created_at,
                        updated_at, disabled_at, disabled_reason, format)
  select number, $1, $2::uuid, $3, $4, $5::text[], $6::boolean, $7::boolean, $8::smallint, $9::bytea, '[]', $10::timestamptz, $10,
         case when $7 then null else $10 end, case when $7 then null else 'requested' end, $12
  from unnest($11::integer[]) with ordinality as drawn (number, nth)
  where not exists (select from webhooks where id = number)
  order by nth
  limit 1
  returning ${columns}`

const everyWebhook = sql<StoredWebhook>`
  select ${columns}
  from webhooks
  order by created_at, id`

const webhooksOf = sql<StoredWebhook>`
  select ${columns}
  from webhooks
  where tenant_id = $1
  order by created_at, id`

const webhookById = sql<StoredWebhook>`
  select ${columns}
  from webhooks
  where id = $1 and ($2::text is null or tenant_id = $2)`

const webhookByUuid = sql<StoredWebhook>`
  select ${columns}
  from webhooks
  where uuid = $1 and ($2::text is null or tenant_id = $2)`

const webhooksById = sql<StoredWebhook>`
  select ${columns}
  from webhooks
  where id = any($1)`

const lockedWebhook = sql<StoredWebhook>`
  select ${columns}
  from webhooks
  where id = $1
  for update`

const saveWebhook = sql<StoredWebhook>`
  update webhooks
  set name = $2, url = $3, event_names = $4, all_events = $5, enabled = $6, timeout_seconds = $7, secret = $8, old_secrets = $9,
      updated_at = $10, format = $11, disabled_at = case when $6 then null when enabled then $10 else disabled_at end,
      disabled_reason = case when $6 then null when enabled then 'requested' else disabled_reason end
  where id = $1
  returning ${columns}`

const deleteWebhook = sql`
  delete from webhooks
  where id = $1`

const deleteWebhooksOf = sql`
  delete from webhooks
  where tenant_id = $1`

const wholeNumber = /^[1-9]\d{0,15}$/
const uuidForm = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

/** By id or uuid; `tenantId` null: of any owner. */
export async function findWebhook(on: Queryable, given: string, tenantId: string | null): Promise<StoredWebhook | undefined> {
  if (wholeNumber.test(given)) return on.first(webhookById, [given, tenantId])
  return uuidForm.test(given) ? on.first(webhookByUuid, [given, tenantId]) : undefined
}

export const findWebhooks = (on: Queryable, ids: readonly number[]): Promise<StoredWebhook[]> => on.rows(webhooksById, [ids])

/** The NOTIFY channel that carries the id of a created or changed webhook. */
export const webhookChanged = 'webhook_changed'

/** `tenantId` null: of all tenants and of the organisation. */
export const listWebhooks = (on: Queryable, tenantId: string | null): Promise<StoredWebhook[]> =>
  tenantId === null ? on.rows(everyWebhook) : on.rows(webhooksOf, [tenantId])

/** Of one owner. Each sending process looks at all its webhooks 25 times a second. */
const maxWebhooks = 200

/** Refuses `validation_error`: too many webhooks. */
export async function addWebhook(
  tx: Tx,
  { tenantId, uuid, name, url, events, allEvents, enabled, timeoutSeconds, format }: NewWebhook,
  sealedSecret: Buffer,
  { nowMs, ids }: { nowMs: number; ids: Ids },
): Promise<StoredWebhook> {
  await tx.run(lockOwner, [tenantId])
  const { total } = (await tx.first(countWebhooksOf, [tenantId])) ?? { total: 0 }
  if (total >= maxWebhooks)
    throw new Refusal('validation_error', {
      message: `${tenantId === organisationWide ? 'the organisation' : 'the tenant'} has ${maxWebhooks} webhooks already`,
      suggestion: 'Delete one first, or give an existing webhook more events',
    })
  const row = await tx.first(insertWebhook, [
    tenantId,
    uuid,
    name,
    url,
    events,
    allEvents,
    enabled,
    timeoutSeconds,
    sealedSecret,
    new Date(nowMs),
    ids.numbers(),
    format,
  ])
  if (!row) throw new Error('failed to save a webhook')
  return row
}

/** Locks the row until the caller commits. */
export const lockWebhook = (tx: Tx, id: number): Promise<StoredWebhook | undefined> => tx.first(lockedWebhook, [id])

/** Applies `change` to the current row; undefined if the webhook no longer exists. */
export async function changeWebhook(
  tx: Tx,
  id: number,
  change: (now: StoredWebhook) => StoredWebhook,
  nowMs: number,
): Promise<{ before: StoredWebhook; after: StoredWebhook } | undefined> {
  const before = await lockWebhook(tx, id)
  if (!before) return undefined
  const { name, url, events, allEvents, enabled, timeoutSeconds, format, secret, oldSecrets } = change(before)
  const saved = [id, name, url, events, allEvents, enabled, timeoutSeconds, secret, JSON.stringify(oldSecrets), new Date(nowMs), format]
  const after = await tx.first(saveWebhook, saved)
  return after && { before, after }
}

export const dropWebhook = (on: Queryable, id: number): Promise<number> => on.run(deleteWebhook, [id])
export const dropWebhooksOf = (tx: Tx, tenantId: string): Promise<number> => tx.run(deleteWebhooksOf, [tenantId])

export type Subscription = Pick<Webhook, 'events' | 'allEvents'>

/** A webhook's new subscription; `stored` is undefined for a new webhook. Refuses an empty subscription. */
export function subscription(
  wanted: { events?: readonly WebhookEvent[] | null | undefined; allEvents?: boolean | null | undefined },
  stored: Subscription | undefined,
): Subscription {
  const given = wanted.events ? [...new Set(wanted.events)] : undefined
  const allEvents = wanted.allEvents ?? (given ? false : (stored?.allEvents ?? true))
  const events = given ?? stored?.events ?? []
  if (!allEvents && events.length === 0) {
    throw given
      ? wrongField('events', 'must not be empty, unless allEvents is true')
      : wrongField('allEvents', 'must be true if events is empty')
  }
  return { events, allEvents }
}

const overlapMs = 86_400_000
/** Bounds the additional signatures of a request, however often the secret is rotated. */
const maxOldSecrets = 5

const sealName = ({ uuid }: Pick<Webhook, 'uuid'>) => `webhook ${uuid}`

export const sealSecret = (webhook: Pick<Webhook, 'uuid'>, octets: Uint8Array, secrets: Secrets): Buffer =>
  secrets.seal(sealName(webhook), octets)

/** The row with a new secret, the old one valid for another day. */
export function rotated(stored: StoredWebhook, sealed: Buffer, nowMs: number): Pick<StoredWebhook, 'secret' | 'oldSecrets'> {
  const replaced = { sealed: stored.secret.toString('base64'), until: new Date(nowMs + overlapMs).toISOString() }
  return { secret: sealed, oldSecrets: [replaced, ...stillValid(stored, nowMs)].slice(0, maxOldSecrets) }
}

const stillValid = ({ oldSecrets }: StoredWebhook, nowMs: number) => oldSecrets.filter(({ until }) => Date.parse(until) > nowMs)

/** All secrets that sign now, the newest first, as bytes without prefix. */
export const openedSecrets = (stored: StoredWebhook, secrets: Secrets, nowMs: number): Buffer[] =>
  [stored.secret, ...stillValid(stored, nowMs).map(({ sealed }) => Buffer.from(sealed, 'base64'))].map((sealed) =>
    secrets.open(sealName(stored), sealed),
  )

type SealedWebhook = Pick<StoredWebhook, 'uuid' | 'secret' | 'oldSecrets'>

const findSealed = sql<SealedWebhook & { key: string }>`
  select id::text as key, uuid, secret, old_secrets as "oldSecrets"
  from webhooks
  where id > coalesce(nullif($2::text, ''), '0')::bigint and (substring(secret from 1 for 5) <> $1::bytea or exists (
    select from jsonb_array_elements(old_secrets) as old (one)
    where substring(decode(one ->> 'sealed', 'base64') from 1 for 5) <> $1::bytea))
  order by id
  limit $3`

const saveSealed = sql`
  update webhooks
  set secret = $2, old_secrets = $3::jsonb
  where id = $1::bigint and secret = $4 and old_secrets = $5::jsonb`

export const sealedSecretsOfWebhooks = sealedColumns<SealedWebhook>({
  columns: ['webhooks.secret', 'webhooks.old_secrets'],
  find: findSealed,
  save: saveSealed,
  sealAnew: ({ key, secret, oldSecrets, ...webhook }, secrets) => {
    const anew = (sealed: Buffer) => secrets.seal(sealName(webhook), secrets.open(sealName(webhook), sealed))
    const oldAnew = oldSecrets.map(({ sealed, until }) => ({ sealed: anew(Buffer.from(sealed, 'base64')).toString('base64'), until }))
    return [key, anew(secret), JSON.stringify(oldAnew), secret, JSON.stringify(oldSecrets)]
  },
})
