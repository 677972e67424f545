/** Webhooks of a tenant or of the organisation (contract 13.3, 13.5): creation, changes and tests. */

import Type, { type Static } from 'typebox'
import { disabledReasons, organisationWide, type Shown, type TestResult, type WebhookEvent, webhookEvents, webhookFormats } from '#webhooks'
import { allParameter, nullable, optional, tenantFields, tenantNamedIn, tenantParameter } from './common-schemas.ts'
import { route } from './define-endpoint.ts'
import { query } from './query-parameters.ts'

const manages = { permission: 'webhooks:manage', scope: 'organisation or tenant', families: 'both' } as const

export const Event = Type.Unsafe<WebhookEvent>({ type: 'string', enum: webhookEvents })
export const Name = Type.String({ minLength: 1, maxLength: 100 })
export const Url = Type.String({ minLength: 1, maxLength: 2048, description: 'https; must not resolve to a private network' })

const Format = Type.Unsafe<(typeof webhookFormats)[number]>({
  type: 'string',
  enum: webhookFormats,
  description: '`postal`: bodies and signatures as Postal sends them; `ses`: bodies as Amazon SES publishes them; otherwise absent',
})

/** Fields shown in both views. */
export const webhookFields = {
  id: Type.String(),
  uuid: Type.String({ format: 'uuid' }),
  name: Type.String(),
  url: Type.String(),
  events: Type.Array(Event, { description: 'Empty: all events' }),
  allEvents: Type.Boolean(),
  enabled: Type.Boolean(),
  disabledAt: nullable(Type.String({ format: 'date-time', description: 'null: enabled, or disabled before this field existed' })),
  disabledReason: Type.Unsafe<(typeof disabledReasons)[number] | null>({
    type: ['string', 'null'],
    enum: [...disabledReasons, null],
    description: '`endpoint_gone`: the endpoint returned 410; `requested`: disabled through the API or in the dashboard',
  }),
  timeoutSeconds: Type.Integer({ minimum: 1, maximum: 30 }),
  failingSince: nullable(Type.String({ format: 'date-time', description: 'null: not failing, or disabled' })),
  format: Type.Optional(Format),
  createdAt: Type.String({ format: 'date-time' }),
  updatedAt: Type.String({ format: 'date-time' }),
}
export const Secret = Type.String({ description: '`whsec_` and base64: the key for webhook-signature' })

const Webhook = Type.Object({
  ...webhookFields,
  tenantId: nullable(Type.String({ description: 'null: receives the events of all tenants' })),
  secret: Type.Optional(Secret),
})

/** Fields that may be set in both views. */
export const settableFields = {
  enabled: optional(Type.Boolean()),
  timeoutSeconds: optional(Type.Integer({ minimum: 1, maximum: 30, description: 'Response timeout in seconds; default 5' })),
  format: optional(Format),
}
export const rotateSecret = optional(Type.Boolean({ description: 'true: creates a new secret; the old one also signs for 24 hours' }))

const subscriptionFields = {
  events: optional(Type.Array(Event, { maxItems: 100 })),
  allEvents: optional(Type.Boolean({ description: 'Has precedence over events' })),
}

const byId = {
  ...manages,
  refuses: ['not_found', 'tenant_mismatch'],
} as const

export const createWebhook = route({
  method: 'POST',
  path: '/webhooks',
  name: 'webhooks.create',
  summary: 'Create a webhook',
  ...manages,
  leadsContentOut: true,
  body: Type.Object({ name: Name, url: Url, ...subscriptionFields, ...settableFields, ...tenantFields }),
  status: 201,
  data: Webhook,
  refuses: ['webhook_url_not_allowed', 'tenant_archived', 'tenant_mismatch', 'not_found'],
  handle: async (call, { webhooks, tenants }) => {
    const tenantId = await tenantNamedIn(call, tenants)
    return webhookToWire(await webhooks.create(tenantId ?? organisationWide, call.body))
  },
})

export const listWebhooksRoute = route({
  method: 'GET',
  path: '/webhooks',
  name: 'webhooks.list',
  summary: 'List webhooks',
  ...manages,
  query: query({ all: allParameter, tenantId: tenantParameter }),
  data: Type.Object({ webhooks: Type.Array(Webhook) }),
  refuses: ['tenant_mismatch', 'not_found'],
  handle: async ({ tenantId, query }, { webhooks }) => ({
    webhooks: (await webhooks.list(tenantId ?? (query.all ? null : organisationWide))).map((webhook) => webhookToWire({ webhook })),
  }),
})

export const retrieveWebhook = route({
  method: 'GET',
  path: '/webhooks/{webhookId}',
  name: 'webhooks.retrieve',
  summary: 'Get a webhook',
  ...byId,
  query: query({ reveal: Type.Optional(Type.Boolean({ description: 'true: includes the secret' })), tenantId: tenantParameter }),
  data: Webhook,
  handle: async ({ params, query, tenantId }, { webhooks }) => webhookToWire(await webhooks.get(params.webhookId, tenantId, query)),
})

export const updateWebhook = route({
  method: 'PATCH',
  path: '/webhooks/{webhookId}',
  name: 'webhooks.update',
  summary: 'Change a webhook',
  ...manages,
  leadsContentOut: true,
  body: Type.Object({ name: optional(Name), url: optional(Url), ...subscriptionFields, ...settableFields, rotateSecret, ...tenantFields }),
  data: Webhook,
  refuses: ['webhook_url_not_allowed', 'tenant_mismatch', 'not_found'],
  handle: async (call, { webhooks, tenants }) =>
    webhookToWire(await webhooks.update(call.params.webhookId, await tenantNamedIn(call, tenants), call.body)),
})

export const deleteWebhook = route({
  method: 'DELETE',
  path: '/webhooks/{webhookId}',
  name: 'webhooks.delete',
  summary: 'Delete a webhook',
  ...byId,
  query: query({ tenantId: tenantParameter }),
  data: Type.Object({ message: Type.String() }),
  handle: async ({ params, tenantId }, { webhooks }) => {
    await webhooks.remove(params.webhookId, tenantId)
    return { message: 'The webhook has been deleted' }
  },
})

/** Fields of a test's result in both views; each view has its own status code. */
export const testFields = {
  success: Type.Boolean({ description: 'true: 2xx response' }),
  event: Event,
  duration: Type.Integer({ description: 'Milliseconds' }),
  durationMs: Type.Integer(),
  body: nullable(Type.String({ description: 'Start of the response body' })),
  error: nullable(Type.String({ description: 'Reason for the missing response' })),
}

export const testWebhook = route({
  method: 'POST',
  path: '/webhooks/{webhookId}/test',
  name: 'webhooks.test',
  summary: 'Send one sample request now',
  ...byId,
  body: Type.Object({ event: Event, ...tenantFields }),
  data: Type.Object({ ...testFields, statusCode: nullable(Type.Integer()) }),
  handle: async (call, { webhooks, tenants }) => {
    const { event } = call.body
    const result = await webhooks.test(call.params.webhookId, await tenantNamedIn(call, tenants), event, false)
    return { ...testToWire(event, result), statusCode: result.statusCode }
  },
})

export const testToWire = (event: WebhookEvent, { success, durationMs, body, error }: TestResult) => ({
  success,
  event,
  duration: durationMs,
  durationMs,
  body,
  error,
})

/** A webhook's fields in both views. */
export const fieldsToWire = ({ webhook, secret }: Shown) => ({
  id: String(webhook.id),
  uuid: webhook.uuid,
  name: webhook.name,
  url: webhook.url,
  events: webhook.allEvents ? [] : webhook.events,
  allEvents: webhook.allEvents,
  enabled: webhook.enabled,
  disabledAt: webhook.disabledAt?.toISOString() ?? null,
  disabledReason: webhook.disabledReason,
  timeoutSeconds: webhook.timeoutSeconds,
  ...(webhook.format === 'postal' || webhook.format === 'ses' ? { format: webhook.format } : {}),
  failingSince: webhook.failingSince?.toISOString() ?? null,
  createdAt: webhook.createdAt.toISOString(),
  updatedAt: webhook.updatedAt.toISOString(),
  ...(secret === undefined ? {} : { secret }),
})

const webhookToWire = (shown: Shown): Static<typeof Webhook> => ({
  ...fieldsToWire(shown),
  tenantId: shown.webhook.tenantId === organisationWide ? null : shown.webhook.tenantId,
})
