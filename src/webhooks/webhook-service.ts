/** The operations on webhooks and on the record of their requests, as the API offers them. */
import { type Clock, type Ids, type Random, Refusal, rejectUnstorableText, type Secrets, type Traces, wrongField } from '#base'
import { type Db, searchInSnapshot } from '#db'
import type { Post, PostOutcome } from '#net'
import { findOrganisation, type Tenants, tenantForNew } from '#tenants'
import {
  type DeliveryFilter,
  type DeliveryScope,
  findDelivery,
  listDeliveries,
  listDeliveriesOfEmail,
  recordDeliveries,
  type WebhookDelivery,
  type WebhookDeliveryDetails,
} from './delivery-records.ts'
import { addEndpoint, addReplay, countReplay, forgive, type ReplayRange, startFollowing, stopFollowing } from './log-positions.ts'
import {
  addWebhook,
  changeWebhook,
  dropWebhook,
  findWebhook,
  listWebhooks,
  lockWebhook,
  openedSecrets,
  organisationWide,
  rotated,
  type StoredWebhook,
  sealSecret,
  subscription,
  type Webhook,
  type WebhookEvent,
  type WebhookFormat,
  webhookChanged,
} from './manage-webhooks.ts'
import { type ShownDelivery, withNextAttempts } from './next-attempts.ts'
import { bodyFor, samplePayload } from './request-body.ts'
import { openSend, type Send } from './send-request.ts'
import { shownSecret } from './sign-request.ts'
import { type Jwk, openInstallationKeys } from './signing-keys.ts'

export interface WebhooksDeps {
  db: Db
  clock: Clock
  ids: Ids
  random: Random
  secrets: Secrets
  tenants: Tenants
  post: Post
  traces?: Traces | undefined
  config: { webhookSignatureHeader: string }
  /** The program's version, for the User-Agent. */
  version: string
}

/** Undefined and null: unchanged, or the default for a new webhook. */
interface Changes {
  name?: string | null | undefined
  url?: string | null | undefined
  events?: readonly WebhookEvent[] | null | undefined
  allEvents?: boolean | null | undefined
  enabled?: boolean | null | undefined
  timeoutSeconds?: number | null | undefined
  format?: WebhookFormat | null | undefined
  rotateSecret?: boolean | null | undefined
}

export interface Shown {
  webhook: Webhook
  /** `whsec_…`, if it may be shown. */
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

/** A scope of null is the whole organisation; `organisationWide` its own webhooks. A missing webhook is refused with `not_found`. */
export interface Webhooks {
  create(tenantId: string, wanted: Changes & { name: string; url: string }): Promise<Shown>
  /** null: of all tenants and of the organisation. */
  list(tenantId: string | null): Promise<Webhook[]>
  get(id: string, scope: string | null, options?: { reveal?: boolean | undefined }): Promise<Shown>
  update(id: string, scope: string | null, changes: Changes): Promise<Shown>
  remove(id: string, scope: string | null): Promise<void>
  /** Posts one sample at once, even to a disabled webhook. `marked`: with `_test`. */
  test(id: string, scope: string | null, event: WebhookEvent, marked: boolean): Promise<TestResult>
  /** Requests about one email, newest first, to the webhooks of `ownerId`; null: to all. */
  deliveriesOfEmail(emailId: string, ownerId: string | null, most: number): Promise<WebhookDelivery[]>
  listDeliveries(
    scope: DeliveryScope,
    filter: DeliveryFilter,
    page: { number: number; size: number },
  ): Promise<{ deliveries: ShownDelivery[]; total: number }>
  getDelivery(id: string, scope: DeliveryScope): Promise<ShownDelivery<WebhookDeliveryDetails>>
  replay(id: string, scope: DeliveryScope): Promise<Replayed>
  /** Queues the events between two times, both exclusive, to be sent again; returns their number. */
  replayRange(id: string, scope: string | null, range: { after: Date; before: Date }): Promise<number>
  /** The public keys for verification by receivers. */
  jwks(): Promise<{ keys: Jwk[] }>
}

const secretOctets = 32
const usualTimeoutSeconds = 5
const testWithinMs = 5000
const noSuchWebhook = () => new Refusal('not_found', { message: 'no such webhook' })

/** An API call is answered within 30 seconds, even if the webhook's own timeout is longer. */
const maxReplayMs = 28_000

export function openWebhooks(deps: WebhooksDeps): Webhooks {
  return new WebhookService(deps)
}

class WebhookService implements Webhooks {
  readonly #deps: WebhooksDeps
  readonly #keys: ReturnType<typeof openInstallationKeys>
  readonly #send: Send

  constructor(deps: WebhooksDeps) {
    this.#deps = deps
    this.#keys = openInstallationKeys(deps)
    const { clock, ids, traces, secrets, post, config, version } = deps
    this.#send = openSend({ clock, ids, traces, secrets, post, config, version, keys: this.#keys })
  }

  async create(tenantId: string, wanted: Changes & { name: string; url: string }): Promise<Shown> {
    const { db, clock, ids, secrets, post } = this.#deps
    await checkTexts(wanted, post)
    const octets = this.#newSecret()
    const uuid = ids.uuid()
    const record = {
      tenantId,
      uuid,
      name: wanted.name,
      url: wanted.url,
      ...subscription(wanted, undefined),
      enabled: wanted.enabled ?? true,
      timeoutSeconds: wanted.timeoutSeconds ?? usualTimeoutSeconds,
      format: wanted.format ?? 'postrider',
    }
    const webhook = await db.transaction(async (tx) => {
      if (tenantId !== organisationWide) await tenantForNew(tx, tenantId)
      const added = await addWebhook(tx, record, sealSecret({ uuid }, octets, secrets), { nowMs: clock.nowMs(), ids })
      await addEndpoint(tx, added)
      return added
    })
    await this.#changed(webhook)
    return { webhook, secret: shownSecret(octets) }
  }

  list(tenantId: string | null): Promise<Webhook[]> {
    return listWebhooks(this.#deps.db, tenantId)
  }

  async get(id: string, scope: string | null, { reveal = false }: { reveal?: boolean | undefined } = {}): Promise<Shown> {
    const webhook = await this.#stored(id, scope)
    return { webhook, ...(reveal ? { secret: this.#currentSecret(webhook) } : {}) }
  }

  async update(id: string, scope: string | null, changes: Changes): Promise<Shown> {
    const { db, clock, secrets, post } = this.#deps
    const known = await this.#stored(id, scope)
    await checkTexts(changes, post)
    const octets = changes.rotateSecret ? this.#newSecret() : undefined
    const nowMs = clock.nowMs()
    const change = (now: StoredWebhook): StoredWebhook => ({
      ...now,
      name: changes.name ?? now.name,
      url: changes.url ?? now.url,
      ...subscription(changes, now),
      enabled: changes.enabled ?? now.enabled,
      timeoutSeconds: changes.timeoutSeconds ?? now.timeoutSeconds,
      format: changes.format ?? now.format,
      ...(octets ? rotated(now, sealSecret(now, octets, secrets), nowMs) : {}),
    })
    const webhook = await db.transaction(async (tx) => {
      const saved = await changeWebhook(tx, known.id, change, nowMs)
      if (!saved) throw noSuchWebhook()
      const { before, after } = saved
      const begins = !before.enabled && after.enabled
      const moves = before.url !== after.url
      if (before.enabled && !after.enabled) await stopFollowing(tx, [after.id])
      if (begins) await startFollowing(tx, after.id)
      if (moves) await forgive(tx, after.id)
      return begins || moves ? { ...after, failingSince: null } : after
    })
    await this.#changed(webhook)
    return { webhook, ...(octets ? { secret: shownSecret(octets) } : {}) }
  }

  async remove(id: string, scope: string | null): Promise<void> {
    if ((await dropWebhook(this.#deps.db, (await this.#stored(id, scope)).id)) === 0) throw noSuchWebhook()
  }

  async test(id: string, scope: string | null, event: WebhookEvent, marked: boolean): Promise<TestResult> {
    const { db, clock, ids, tenants } = this.#deps
    const webhook = await this.#stored(id, scope)
    const organisation = await findOrganisation(db)
    const tenant = webhook.tenantId === organisationWide ? await tenants.default() : await tenants.find(webhook.tenantId)
    if (!organisation) throw new Error('no organisation')
    // The tenant was deleted concurrently, and its webhook with it.
    if (!tenant) throw noSuchWebhook()
    const uuid = ids.uuid()
    const nowMs = clock.nowMs()
    const facts = { nowMs, emailId: ids.emailId(nowMs), uuid: ids.uuid(), tenant, organisationSlug: organisation.slug }
    const payload = samplePayload(event, facts)
    const body = bodyFor({ event, timestamp: Math.floor(nowMs) / 1000, tenantId: tenant.id, payload }, marked)(uuid)
    // A sample of a bounce is a permanent one.
    const isSuppressed = event === 'MessageBounced'
    const request = { uuid, event, isSuppressed, tenantId: tenant.id, attempt: 1, body, withinMs: testWithinMs }
    const { outcome, success } = await this.#send(webhook, request)
    return { ...outcome, success }
  }

  async listDeliveries(
    scope: DeliveryScope,
    filter: DeliveryFilter,
    page: { number: number; size: number },
  ): Promise<{ deliveries: ShownDelivery[]; total: number }> {
    const { deliveries, total } = await listDeliveries(this.#deps.db, scope, filter, page)
    return { deliveries: await withNextAttempts(this.#deps.db, deliveries), total }
  }

  deliveriesOfEmail(emailId: string, ownerId: string | null, most: number): Promise<WebhookDelivery[]> {
    return listDeliveriesOfEmail(this.#deps.db, emailId, ownerId, most)
  }

  async getDelivery(id: string, scope: DeliveryScope): Promise<ShownDelivery<WebhookDeliveryDetails>> {
    const delivery = await findDelivery(this.#deps.db, id, scope)
    const [found] = delivery ? await withNextAttempts(this.#deps.db, [delivery]) : []
    if (!found) throw new Refusal('not_found', { message: 'no such delivery' })
    return found
  }

  async replay(id: string, scope: DeliveryScope): Promise<Replayed> {
    const original = await this.getDelivery(id, scope)
    const webhook = await this.#stored(String(original.webhookId), null)
    if (!webhook.enabled) throw new Refusal('webhook_disabled', { message: 'the webhook is disabled' })
    const body = Buffer.from(original.payload)
    const withinMs = Math.min(webhook.timeoutSeconds * 1000, maxReplayMs)
    const { eventUuid: uuid, event, tenantId, emailId } = original
    const { delivery: made } = await this.#send(webhook, { uuid, event, emailId, tenantId, attempt: 1, body, withinMs })
    await recordDeliveries(this.#deps.db, [{ ...made, willRetry: false }])
    return { success: made.success, statusCode: made.statusCode, durationMs: made.durationMs, newDeliveryId: made.id, at: made.at }
  }

  replayRange(id: string, scope: string | null, range: { after: Date; before: Date }): Promise<number> {
    return replayRange(this.#deps.db, id, scope, range)
  }

  async jwks(): Promise<{ keys: Jwk[] }> {
    return { keys: (await this.#keys()).map(({ jwk }) => jwk) }
  }

  async #stored(id: string, scope: string | null): Promise<StoredWebhook> {
    const found = await findWebhook(this.#deps.db, id, scope)
    if (!found) throw noSuchWebhook()
    return found
  }

  #newSecret(): Uint8Array {
    return this.#deps.random(new Uint8Array(secretOctets))
  }

  #currentSecret(webhook: StoredWebhook): string {
    const { secrets, clock } = this.#deps
    const [octets] = openedSecrets(webhook, secrets, clock.nowMs())
    return shownSecret(octets as Buffer)
  }

  /** Notifies the senders; they also poll. */
  async #changed(webhook: { id: number }): Promise<void> {
    await this.#deps.db.notify(webhookChanged, String(webhook.id)).catch(() => undefined)
  }
}

const tooManyEvents = () => wrongField('after', 'begins a range with too many events: replay shorter ranges')

/** Queues the events between two times, both exclusive, to be sent again to a webhook; returns their number. */
async function replayRange(db: Db, id: string, scope: string | null, range: ReplayRange): Promise<number> {
  if (range.after >= range.before) throw wrongField('before', 'must be later than after')
  const known = await findWebhook(db, id, scope)
  if (!known) throw noSuchWebhook()
  const counted = await searchInSnapshot(db, tooManyEvents, (tx) => countReplay(tx, known, range))
  await db.transaction(async (tx) => {
    const webhook = await lockWebhook(tx, known.id)
    if (!webhook) throw noSuchWebhook()
    if (!webhook.enabled) throw new Refusal('webhook_disabled', { message: 'the webhook is disabled' })
    if (counted) await addReplay(tx, webhook.id, counted)
  })
  await db.notify(webhookChanged, String(known.id)).catch(() => undefined)
  return counted?.count ?? 0
}

/** Refuses an invalid URL, or one with an address that is not allowed. A name that does not resolve now is accepted. */
async function checkTexts({ name, url }: Changes, post: Post): Promise<void> {
  if (name) rejectUnstorableText('name', name)
  if (!url) return
  rejectUnstorableText('url', url)
  const verdict = await post.look(url)
  if (verdict.kind !== 'malformed' && verdict.kind !== 'refused') return
  throw wrongField('url', verdict.message, verdict.kind === 'refused' ? 'webhook_url_not_allowed' : 'validation_error')
}
