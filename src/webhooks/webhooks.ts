/**
 * Webhooks: who is told of what happens, how a receiver knows that it was us, and what became of each request. One kind of record,
 * seen as a tenant's or as the organisation's. The events themselves are sent by whoever follows the log.
 * Owns: webhooks, webhook_deliveries, webhook_signing_keys. Uses: base, dkim, net, bounces, db, tenants, events, emails.
 * Used by: housekeeping, http, cli, main.
 * Promises: nothing is sent to an address that is not allowed; secrets and keys are sealed in the database; every request but a test
 * leaves a record.
 */
import { type Clock, type Ids, type Random, Refusal, refuseOddText, type Secrets } from '#base'
import type { Db, Tx } from '#db'
import type { Post, PostOutcome } from '#net'
import { findOrganisation, type Tenants } from '#tenants'
import { bodyOctets, samplePayload } from './body.ts'
import {
  type Delivery,
  type DeliveryDetails,
  type DeliveryFilter,
  type DeliveryScope,
  dropDeliveriesOf,
  findDelivery,
  listDeliveries,
  recordDelivery,
} from './deliveries.ts'
import {
  addWebhook,
  changeWebhook,
  dropWebhook,
  dropWebhooksOf,
  findWebhook,
  listWebhooks,
  openedSecrets,
  organisationWide,
  rotated,
  type StoredWebhook,
  sealSecret,
  subscription,
  type Webhook,
  type WebhookEvent,
} from './records.ts'
import { type Jwk, openInstallationKeys, shownSecret, signedHeaders } from './signing.ts'

export { samplePayload, webhookBody } from './body.ts'
export { type Delivery, type DeliveryDetails, deliveryTables, eraseFromDeliveries, type NewDelivery, recordDelivery } from './deliveries.ts'
export { openForward } from './forward.ts'
export { type Live, type LiveEvent, type LiveStep, openLive, parsePosition, positionText } from './live.ts'
export { openBodies, type PreparedBody, type ToldEvent, toldEvents } from './payload.ts'
export { organisationWide, type Webhook, type WebhookEvent, webhookEvents } from './records.ts'

export interface WebhooksDeps {
  db: Db
  clock: Clock
  ids: Ids
  random: Random
  secrets: Secrets
  tenants: Tenants
  post: Post
  config: { webhookSignatureHeader: string }
  /** Of this program, for the User-Agent. */
  version: string
}

/** Undefined and null: as it is, or as is usual for a new one. */
export interface Changes {
  name?: string | null | undefined
  url?: string | null | undefined
  events?: readonly WebhookEvent[] | null | undefined
  allEvents?: boolean | null | undefined
  enabled?: boolean | null | undefined
  timeoutSeconds?: number | null | undefined
  rotateSecret?: boolean | null | undefined
}

export interface Shown {
  webhook: Webhook
  /** `whsec_…`, where it may be told. */
  secret?: string
}

export interface TestResult extends PostOutcome {
  success: boolean
}

export interface Replayed {
  success: boolean
  statusCode: number | null
  durationMs: number
  newDeliveryId: string
  at: Date
}

/** A scope of null is the whole organisation; `organisationWide` its own webhooks. What is not there is refused with `not_found`. */
export interface Webhooks {
  create(tenantId: string, wanted: Changes & { name: string; url: string }): Promise<Shown>
  list(tenantId: string): Promise<Webhook[]>
  get(id: string, scope: string | null, options?: { reveal?: boolean | undefined }): Promise<Shown>
  update(id: string, scope: string | null, changes: Changes): Promise<Shown>
  remove(id: string, scope: string | null): Promise<void>
  /** Posts one sample at once, whether enabled or not. `marked`: with `_test`. */
  test(id: string, scope: string | null, event: WebhookEvent, marked: boolean): Promise<TestResult>
  listDeliveries(
    scope: DeliveryScope,
    filter: DeliveryFilter,
    page: { number: number; size: number },
  ): Promise<{ deliveries: Delivery[]; total: number }>
  getDelivery(id: string, scope: DeliveryScope): Promise<DeliveryDetails>
  replay(id: string, scope: DeliveryScope): Promise<Replayed>
  /** The public keys that receivers verify with. */
  jwks(): Promise<{ keys: Jwk[] }>
}

const secretOctets = 32
const usualTimeoutSeconds = 5
const testWithinMs = 5000
/** An API call is answered within 30 seconds, whatever a webhook's own limit is. */
const longestReplayMs = 28_000

export function openWebhooks(deps: WebhooksDeps): Webhooks {
  const { db, clock, ids, random, secrets, tenants, post } = deps
  const keys = openInstallationKeys(deps)

  const stored = async (id: string, scope: string | null): Promise<StoredWebhook> => {
    const found = await findWebhook(db, id, scope)
    if (!found) throw new Refusal('not_found', { message: 'there is no such webhook' })
    return found
  }
  const newSecret = () => random(new Uint8Array(secretOctets))
  const currentSecret = (webhook: StoredWebhook) => {
    const [octets] = openedSecrets(webhook, secrets, clock.nowMs())
    return shownSecret(octets as Buffer)
  }

  /** One signed request, as it was sent and answered. */
  const send = async (
    webhook: StoredWebhook,
    { uuid, event, body, withinMs }: { uuid: string; event: string; body: Buffer; withinMs: number },
  ) => {
    const [key] = await keys()
    if (!key) throw new Error('there is no signing key')
    const nowMs = clock.nowMs()
    const headers = signedHeaders(
      { uuid, event, attempt: 1, body, nowMs },
      { secrets: openedSecrets(webhook, secrets, nowMs), key, signatureHeader: deps.config.webhookSignatureHeader, version: deps.version },
    )
    return { outcome: await post.post({ url: webhook.url, headers, body, withinMs }), headers, nowMs }
  }

  return {
    async create(tenantId, wanted) {
      if ((await tenants.find(tenantId))?.status === 'archived')
        throw new Refusal('tenant_archived', { message: 'the tenant is archived; it gets no new webhooks' })
      await checkTexts(wanted, post)
      const octets = newSecret()
      const uuid = ids.uuid()
      const webhook = await addWebhook(
        db,
        {
          tenantId,
          uuid,
          name: wanted.name,
          url: wanted.url,
          ...subscription(wanted, undefined),
          enabled: wanted.enabled ?? true,
          timeoutSeconds: wanted.timeoutSeconds ?? usualTimeoutSeconds,
        },
        sealSecret({ uuid }, octets, secrets),
        clock.nowMs(),
      )
      return { webhook, secret: shownSecret(octets) }
    },
    list: (tenantId) => listWebhooks(db, tenantId),
    async get(id, scope, { reveal = false } = {}) {
      const webhook = await stored(id, scope)
      return { webhook, ...(reveal ? { secret: currentSecret(webhook) } : {}) }
    },
    async update(id, scope, changes) {
      const known = await stored(id, scope)
      await checkTexts(changes, post)
      const octets = changes.rotateSecret ? newSecret() : undefined
      const nowMs = clock.nowMs()
      const change = (now: StoredWebhook): StoredWebhook => ({
        ...now,
        name: changes.name ?? now.name,
        url: changes.url ?? now.url,
        ...subscription(changes, now),
        enabled: changes.enabled ?? now.enabled,
        timeoutSeconds: changes.timeoutSeconds ?? now.timeoutSeconds,
        ...(octets ? rotated(now, sealSecret(now, octets, secrets), nowMs) : {}),
      })
      const webhook = await db.transaction((tx) => changeWebhook(tx, known.id, change, nowMs))
      if (!webhook) throw new Refusal('not_found', { message: 'there is no such webhook' })
      return { webhook, ...(octets ? { secret: shownSecret(octets) } : {}) }
    },
    async remove(id, scope) {
      if ((await dropWebhook(db, (await stored(id, scope)).id)) === 0)
        throw new Refusal('not_found', { message: 'there is no such webhook' })
    },
    async test(id, scope, event, marked) {
      const webhook = await stored(id, scope)
      const organisation = await findOrganisation(db)
      const tenant = webhook.tenantId === organisationWide ? await tenants.default() : await tenants.find(webhook.tenantId)
      if (!organisation || !tenant) throw new Error('the tenant of a webhook is not there')
      const uuid = ids.uuid()
      const nowMs = clock.nowMs()
      const facts = { nowMs, emailId: ids.emailId(nowMs), uuid: ids.uuid(), tenant, organisationSlug: organisation.slug }
      const payload = samplePayload(event, facts)
      const body = bodyOctets({ event, timestamp: Math.floor(nowMs) / 1000, uuid, tenantId: tenant.id, payload }, marked)
      const { outcome } = await send(webhook, { uuid, event, body, withinMs: testWithinMs })
      return { ...outcome, success: isSuccess(outcome) }
    },
    listDeliveries: (scope, filter, page) => listDeliveries(db, scope, filter, page),
    getDelivery: (id, scope) => delivery(id, scope),
    async replay(id, scope) {
      const original = await delivery(id, scope)
      const webhook = await stored(String(original.webhookId), null)
      if (!webhook.enabled) throw new Refusal('webhook_disabled', { message: 'the webhook is disabled' })
      const body = Buffer.from(original.payload)
      const withinMs = Math.min(webhook.timeoutSeconds * 1000, longestReplayMs)
      const { eventUuid, event, tenantId, webhookId, payload } = original
      const { outcome, headers, nowMs } = await send(webhook, { uuid: eventUuid, event, body, withinMs })
      const made = {
        eventUuid,
        event,
        tenantId,
        webhookId,
        payload,
        id: ids.uuid(),
        url: webhook.url,
        attempt: 1,
        success: isSuccess(outcome),
        statusCode: outcome.statusCode,
        willRetry: false,
        at: new Date(nowMs),
        requestHeaders: headers,
        responseBody: outcome.body,
        durationMs: outcome.durationMs,
        error: outcome.error,
      }
      await recordDelivery(db, made)
      return { success: made.success, statusCode: made.statusCode, durationMs: made.durationMs, newDeliveryId: made.id, at: made.at }
    },
    jwks: async () => ({ keys: (await keys()).map(({ jwk }) => jwk) }),
  }

  async function delivery(id: string, scope: DeliveryScope): Promise<DeliveryDetails> {
    const found = await findDelivery(db, id, scope)
    if (!found) throw new Refusal('not_found', { message: 'there is no such delivery' })
    return found
  }
}

const isSuccess = ({ statusCode }: PostOutcome) => statusCode !== null && statusCode >= 200 && statusCode < 300

/** Refuses a URL that is none, or that leads where nothing is sent to; a name that cannot be looked up may be one day. */
async function checkTexts({ name, url }: Changes, post: Post): Promise<void> {
  if (name) refuseOddText('name', name)
  if (!url) return
  refuseOddText('url', url)
  const verdict = await post.look(url)
  if (verdict.kind !== 'malformed' && verdict.kind !== 'refused') return
  const { message } = verdict
  throw new Refusal(verdict.kind === 'refused' ? 'webhook_url_not_allowed' : 'validation_error', {
    field: 'url',
    message: `url ${message}`,
    details: [{ field: 'url', message }],
  })
}

/** All that a tenant has here; the caller removes the tenant. */
export async function removeWebhooksOfTenant(tx: Tx, tenantId: string): Promise<void> {
  await dropDeliveriesOf(tx, tenantId)
  await dropWebhooksOf(tx, tenantId)
}
