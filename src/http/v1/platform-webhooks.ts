/** The second view of the organisation's webhooks (contract 13.4, 13.5): the same records, where an empty event list means all events. */

import Type, { type Static } from 'typebox'
import { organisationWide, type Shown, type WebhookEvent } from '#webhooks'
import { optional } from './common-schemas.ts'
import { route } from './define-endpoint.ts'
import { query } from './query-parameters.ts'
import { Event, fieldsToWire, Name, rotateSecret, Secret, settableFields, testFields, testToWire, Url, webhookFields } from './webhooks.ts'

const manages = { permission: 'webhooks:manage', scope: 'organisation', families: 'organisation' } as const
const byId = { ...manages, refuses: ['not_found'] } as const

const PlatformWebhook = Type.Object({ ...webhookFields, secret: Type.Optional(Secret) })

const events = optional(Type.Array(Event, { maxItems: 100, description: 'Empty: all events' }))

/** `[]` in this view is `allEvents` in the other. */
const subscribed = (given: readonly WebhookEvent[] | null | undefined) =>
  given?.length === 0 ? { events: undefined, allEvents: true } : { events: given, allEvents: undefined }

export const createPlatformWebhook = route({
  method: 'POST',
  path: '/platform/webhooks',
  name: 'platformWebhooks.create',
  summary: 'Create a webhook for the events of all tenants',
  ...manages,
  leadsContentOut: true,
  body: Type.Object({ name: Name, url: Url, events, ...settableFields }),
  status: 201,
  data: PlatformWebhook,
  refuses: ['webhook_url_not_allowed'],
  handle: async ({ body: { name, url, events, enabled, timeoutSeconds, format } }, { webhooks }) =>
    platformToWire(await webhooks.create(organisationWide, { name, url, enabled, timeoutSeconds, format, ...subscribed(events) })),
})

export const listPlatformWebhooks = route({
  method: 'GET',
  path: '/platform/webhooks',
  name: 'platformWebhooks.list',
  summary: 'List the webhooks for the events of all tenants',
  ...manages,
  data: Type.Array(PlatformWebhook),
  refuses: [],
  handle: async (_call, { webhooks }) => (await webhooks.list(organisationWide)).map((webhook) => platformToWire({ webhook })),
})

export const retrievePlatformWebhook = route({
  method: 'GET',
  path: '/platform/webhooks/{webhookId}',
  name: 'platformWebhooks.retrieve',
  summary: 'Get a webhook for the events of all tenants',
  ...byId,
  query: query({ reveal: Type.Optional(Type.Boolean({ description: 'true: includes the secret' })) }),
  data: PlatformWebhook,
  handle: async ({ params, query }, { webhooks }) => platformToWire(await webhooks.get(params.webhookId, organisationWide, query)),
})

export const updatePlatformWebhook = route({
  method: 'PATCH',
  path: '/platform/webhooks/{webhookId}',
  name: 'platformWebhooks.update',
  summary: 'Change a webhook for the events of all tenants',
  ...manages,
  leadsContentOut: true,
  body: Type.Object({ name: optional(Name), url: optional(Url), events, ...settableFields, rotateSecret }),
  data: PlatformWebhook,
  refuses: ['webhook_url_not_allowed', 'not_found'],
  handle: async ({ params, body: { name, url, events, enabled, timeoutSeconds, format, rotateSecret } }, { webhooks }) => {
    const changes = { name, url, enabled, timeoutSeconds, format, rotateSecret, ...subscribed(events) }
    return platformToWire(await webhooks.update(params.webhookId, organisationWide, changes))
  },
})

export const deletePlatformWebhook = route({
  method: 'DELETE',
  path: '/platform/webhooks/{webhookId}',
  name: 'platformWebhooks.delete',
  summary: 'Delete a webhook for the events of all tenants',
  ...byId,
  data: Type.Object({ message: Type.String() }),
  handle: async ({ params }, { webhooks }) => {
    await webhooks.remove(params.webhookId, organisationWide)
    return { message: 'The webhook has been deleted' }
  },
})

export const testPlatformWebhook = route({
  method: 'POST',
  path: '/platform/webhooks/{webhookId}/test',
  name: 'platformWebhooks.test',
  summary: 'Send one sample request now, marked `_test`',
  ...byId,
  body: Type.Object({ event: Event }),
  data: Type.Object({ ...testFields, statusCode: Type.Integer({ description: '0: no HTTP response' }) }),
  handle: async ({ params, body: { event } }, { webhooks }) => {
    const result = await webhooks.test(params.webhookId, organisationWide, event, true)
    return { ...testToWire(event, result), statusCode: result.statusCode ?? 0 }
  },
})

const platformToWire = (shown: Shown): Static<typeof PlatformWebhook> => fieldsToWire(shown)
