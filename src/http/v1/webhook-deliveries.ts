/** Records of webhook requests, and repeating one (contract 13.6, 13.7), in both views. */

import Type, { type Static, type TObject } from 'typebox'
import type { Credential } from '#credentials'
import { organisationWide, type Replayed, type ShownDelivery, type WebhookDeliveryDetails } from '#webhooks'
import { nullable, pageFields, tenantFields, tenantNamedIn, tenantParameter } from './common-schemas.ts'
import { hiddenFields, hiddenMark, isContentHidden } from './content-access.ts'
import { type ApiDeps, listRoute, route } from './define-endpoint.ts'
import { query } from './query-parameters.ts'
import { listTurns } from './search-turns.ts'
import { Event } from './webhooks.ts'

const manages = { permission: 'webhooks:manage', scope: 'organisation or tenant', families: 'both' } as const
const platform = { permission: 'webhooks:manage', scope: 'organisation', families: 'organisation' } as const

const deliveryFields = {
  id: Type.String({ format: 'uuid' }),
  webhookId: Type.String(),
  tenantId: Type.String({ description: 'Tenant of the event' }),
  event: Type.String(),
  eventId: Type.String({ format: 'uuid', description: 'The same for all attempts of one event' }),
  emailId: nullable(Type.String({ description: 'null: the event is not about an email' })),
  recipient: nullable(Type.String({ description: 'Of the email; null: the body names none' })),
  url: Type.String({ description: 'URL at the time of the attempt' }),
  attempt: Type.Integer({ minimum: 1 }),
  success: Type.Boolean({ description: 'true: 2xx response' }),
  statusCode: nullable(Type.Integer({ description: 'null: no HTTP response' })),
  willRetry: Type.Boolean(),
  nextAttemptAt: Type.Optional(
    Type.String({
      format: 'date-time',
      description: 'Earliest time of the next attempt; absent if this was not the last one, or none follows',
    }),
  ),
  timestamp: Type.String({ format: 'date-time' }),
}
const DeliveryItem = Type.Object(deliveryFields)

const Details = Type.Object({
  ...deliveryFields,
  webhookName: Type.String(),
  request: Type.Object({
    headers: Type.Unsafe<Record<string, string>>({ type: 'object', additionalProperties: { type: 'string' } }),
    payload: Type.Unsafe<Record<string, unknown>>({ type: 'object', description: 'Complete request body; empty if contentHidden' }),
  }),
  response: Type.Object({
    statusCode: nullable(Type.Integer()),
    body: nullable(Type.String({ description: 'Start of the response body' })),
    duration: Type.Integer({ description: 'Milliseconds' }),
    error: nullable(Type.String({ description: 'Reason for the missing response' })),
  }),
  ...hiddenFields,
})

const Replay = Type.Object({
  success: Type.Boolean(),
  statusCode: nullable(Type.Integer()),
  duration: Type.Integer({ description: 'Milliseconds' }),
  originalDeliveryId: Type.String({ format: 'uuid' }),
  newDeliveryId: Type.String({ format: 'uuid' }),
  timestamp: Type.String({ format: 'date-time' }),
})

/** The end of the year 9999. */
const latestSecond = 253_402_300_799
const RequiredSecond = (description: string) => Type.Integer({ minimum: 0, maximum: latestSecond, description })
const Second = (description: string) => Type.Optional(RequiredSecond(description))

const filterFields = {
  ...pageFields,
  after: Second('Later than: unix seconds'),
  before: Second('Earlier than: unix seconds'),
  success: Type.Optional(Type.Boolean()),
  event: Type.Optional(Event),
  eventId: Type.Optional(Type.String({ maxLength: 64, description: 'Only the attempts of this event' })),
  newest: Type.Optional(Type.Boolean({ description: 'true: only the newest attempt of each event; the other filters apply to it' })),
  tenantId: tenantParameter,
}

const instant = (seconds: number | undefined) => (seconds === undefined ? undefined : new Date(seconds * 1000))

/** The filters of the query, except for the tenant. */
const filterIn = ({ success, event, eventId, newest, after, before }: Omit<Static<TObject<typeof filterFields>>, 'page' | 'perPage'>) => ({
  success,
  event,
  eventUuid: eventId,
  isNewest: newest,
  after: instant(after),
  before: instant(before),
})

export const listWebhookDeliveries = listRoute({
  method: 'GET',
  path: '/webhooks/{webhookId}/deliveries',
  name: 'webhooks.listDeliveries',
  summary: 'List the requests to a webhook, newest first',
  ...manages,
  query: query(filterFields),
  data: DeliveryItem,
  refuses: ['not_found', 'tenant_mismatch'],
  handle: async ({ params, query: { page, perPage, ...filter }, tenantId, credential, connection }, { webhooks }) => {
    const { webhook } = await webhooks.get(params.webhookId, tenantId)
    const scope = { webhookId: webhook.id }
    const { deliveries, total } = await listTurns.run({ tenantId: credential.tenantId, gone: connection?.gone }, () =>
      webhooks.listDeliveries(scope, filterIn(filter), { number: page, size: perPage }),
    )
    return { items: deliveries.map(itemToWire), page, perPage, total }
  },
})

export const retrieveWebhookDelivery = route({
  method: 'GET',
  path: '/webhooks/{webhookId}/deliveries/{deliveryId}',
  name: 'webhooks.retrieveDelivery',
  summary: 'Get a request to a webhook, with its response',
  ...manages,
  query: query({ tenantId: tenantParameter }),
  data: Details,
  refuses: ['not_found', 'tenant_mismatch'],
  handle: async ({ params, tenantId, credential }, deps) => {
    const { webhook } = await deps.webhooks.get(params.webhookId, tenantId)
    return detailsFor(credential, await deps.webhooks.getDelivery(params.deliveryId, { webhookId: webhook.id }), deps)
  },
})

export const replayWebhookDelivery = route({
  method: 'POST',
  path: '/webhooks/{webhookId}/deliveries/{deliveryId}/replay',
  name: 'webhooks.replayDelivery',
  summary: 'Send the same payload again, once, now',
  ...manages,
  query: query({ tenantId: tenantParameter }),
  data: Replay,
  refuses: ['not_found', 'tenant_mismatch', 'webhook_disabled'],
  handle: async ({ params, tenantId }, { webhooks }) => {
    const { webhook } = await webhooks.get(params.webhookId, tenantId)
    return replayToWire(params.deliveryId, await webhooks.replay(params.deliveryId, { webhookId: webhook.id }))
  },
})

export const replayWebhookRange = route({
  method: 'POST',
  path: '/webhooks/{webhookId}/replay',
  name: 'webhooks.replay',
  summary: 'Send the events of a period again',
  ...manages,
  body: Type.Object({
    after: RequiredSecond('Later than: unix seconds'),
    before: RequiredSecond('Earlier than: unix seconds'),
    ...tenantFields,
  }),
  data: Type.Object({
    queued: Type.Integer({ minimum: 0, description: 'Number of events queued again, each with its original id' }),
  }),
  refuses: ['not_found', 'tenant_mismatch', 'webhook_disabled'],
  handle: async (call, { webhooks, tenants }) => {
    const range = { after: new Date(call.body.after * 1000), before: new Date(call.body.before * 1000) }
    return { queued: await webhooks.replayRange(call.params.webhookId, await tenantNamedIn(call, tenants), range) }
  },
})

export const listPlatformDeliveries = listRoute({
  method: 'GET',
  path: '/platform/webhooks/deliveries',
  name: 'platformWebhooks.listDeliveries',
  summary: "List the requests to the organisation's webhooks, newest first",
  ...platform,
  query: query({ ...filterFields, webhookId: Type.Optional(Type.String({ description: 'Id of the webhook' })) }),
  data: DeliveryItem,
  refuses: ['not_found'],
  handle: async ({ query: { page, perPage, webhookId, ...filter }, tenantId, credential, connection }, { webhooks }) => {
    const webhook = webhookId === undefined ? undefined : (await webhooks.get(webhookId, organisationWide)).webhook
    const wanted = { tenantId: tenantId ?? undefined, ...filterIn(filter) }
    const scope = { ownerId: organisationWide, webhookId: webhook?.id }
    const { deliveries, total } = await listTurns.run({ tenantId: credential.tenantId, gone: connection?.gone }, () =>
      webhooks.listDeliveries(scope, wanted, { number: page, size: perPage }),
    )
    return { items: deliveries.map(itemToWire), page, perPage, total }
  },
})

export const retrievePlatformDelivery = route({
  method: 'GET',
  path: '/platform/webhooks/deliveries/{deliveryId}',
  name: 'platformWebhooks.retrieveDelivery',
  summary: "Get a request to one of the organisation's webhooks",
  ...platform,
  data: Details,
  refuses: ['not_found'],
  handle: async ({ params, credential }, deps) =>
    detailsFor(credential, await deps.webhooks.getDelivery(params.deliveryId, { ownerId: organisationWide }), deps),
})

export const replayPlatformDelivery = route({
  method: 'POST',
  path: '/platform/webhooks/deliveries/{deliveryId}/replay',
  name: 'platformWebhooks.replayDelivery',
  summary: 'Send the same payload again, once, now',
  ...platform,
  data: Replay,
  refuses: ['not_found', 'webhook_disabled'],
  handle: async ({ params }, { webhooks }) =>
    replayToWire(params.deliveryId, await webhooks.replay(params.deliveryId, { ownerId: organisationWide })),
})

function itemToWire(delivery: ShownDelivery): Static<typeof DeliveryItem> {
  const { id, webhookId, tenantId, event, eventUuid, emailId, recipient } = delivery
  const { url, attempt, success, statusCode, willRetry, nextAttemptAt, at } = delivery
  return {
    id,
    webhookId: String(webhookId),
    tenantId,
    event,
    eventId: eventUuid,
    emailId,
    recipient,
    url,
    attempt,
    success,
    statusCode,
    willRetry,
    ...(nextAttemptAt ? { nextAttemptAt: nextAttemptAt.toISOString() } : {}),
    timestamp: at.toISOString(),
  }
}

/** A receiver may answer with parts of the request: both bodies are hidden together. */
async function detailsFor(
  credential: Credential,
  delivery: ShownDelivery<WebhookDeliveryDetails>,
  deps: Pick<ApiDeps, 'db'>,
): Promise<Static<typeof Details>> {
  const isHidden = await isContentHidden(credential, delivery.tenantId, deps)
  const { webhookName, requestHeaders, payload, statusCode, responseBody, durationMs, error } = delivery
  return {
    ...itemToWire(delivery),
    webhookName,
    request: { headers: requestHeaders, payload: isHidden ? {} : (JSON.parse(payload) as Record<string, unknown>) },
    response: { statusCode, body: isHidden ? null : responseBody, duration: durationMs, error },
    ...hiddenMark(isHidden),
  }
}

const replayToWire = (originalId: string, { success, statusCode, durationMs, newDeliveryId, at }: Replayed): Static<typeof Replay> => ({
  success,
  statusCode,
  duration: durationMs,
  originalDeliveryId: originalId.toLowerCase(),
  newDeliveryId,
  timestamp: at.toISOString(),
})
