/** Endpoints of SendGrid's API about event webhooks. Paths without an id are of the oldest webhook. */
import { Refusal } from '#base'
import { readSendGridWebhook, SendGridRefusal, sendgridWebhook } from '#sendgrid'
import { sendgridPublicKey } from '#webhooks'
import type { VendorCall, VendorDeps, VendorEndpoint } from './vendor-api.ts'
import { createVendorWebhook, getVendorWebhook, listVendorWebhooks } from './vendor-webhooks.ts'

const format = 'sendgrid'
const permission = 'webhooks:manage'
const path = '/v3/user/webhooks/event/settings'
const noSuchWebhook = () => new SendGridRefusal(404, 'the webhook does not exist')

/** The webhook of the path with its public key. */
async function webhookOf({ params, credential }: VendorCall, deps: VendorDeps) {
  const id = params.id ?? (await listVendorWebhooks(format, credential, deps))[0]?.uuid
  if (id === undefined) throw noSuchWebhook()
  try {
    const { webhook, secret = '' } = await getVendorWebhook(format, id, credential, deps)
    return { webhook, publicKey: sendgridPublicKey(secret) }
  } catch (error) {
    if (error instanceof Refusal && error.code === 'not_found') throw noSuchWebhook()
    throw error
  }
}

async function show(call: VendorCall, deps: VendorDeps) {
  const { webhook, publicKey } = await webhookOf(call, deps)
  return { data: sendgridWebhook(webhook, publicKey) }
}

async function change(call: VendorCall, deps: VendorDeps) {
  const { webhook, publicKey } = await webhookOf(call, deps)
  const changes = readSendGridWebhook(call.body, webhook)
  const changed = await deps.webhooks.update(webhook.uuid, webhook.tenantId, changes)
  return { data: sendgridWebhook(changed.webhook, publicKey) }
}

/** Every request is signed, so the signature cannot be turned off. */
async function sign(call: VendorCall, deps: VendorDeps) {
  const { enabled, ...others } = (call.body ?? {}) as { enabled?: unknown }
  if (enabled !== true || Object.keys(others).length > 0)
    throw new SendGridRefusal(400, 'enabled is served only as true: every request is signed', 'enabled')
  return { data: { public_key: (await webhookOf(call, deps)).publicKey } }
}

/** The same endpoint for a webhook's id and for the oldest webhook. */
const both = (endpoint: VendorEndpoint): VendorEndpoint[] => [
  endpoint,
  { ...endpoint, path: `${endpoint.path}/:id`, name: `${endpoint.name}.one` },
]

export const sendgridWebhookEndpoints: readonly VendorEndpoint[] = [
  {
    methods: ['POST'],
    path,
    name: 'sendgrid.webhooks.create',
    summary: 'Create a webhook',
    permission,
    async answer({ body, credential }, deps) {
      const { webhook, secret = '' } = await createVendorWebhook(format, readSendGridWebhook(body, undefined), credential, deps)
      return { status: 201, data: sendgridWebhook(webhook, sendgridPublicKey(secret)) }
    },
  },
  {
    methods: ['GET'],
    path: `${path}/all`,
    name: 'sendgrid.webhooks.list',
    summary: 'List webhooks',
    permission,
    async answer({ credential }, deps) {
      const webhooks = await listVendorWebhooks(format, credential, deps)
      return { data: { max_allowed: webhooks.length + 1, webhooks: webhooks.map((one) => sendgridWebhook(one, undefined)) } }
    },
  },
  ...both({ methods: ['GET'], path, name: 'sendgrid.webhooks.get', summary: 'Get a webhook', permission, answer: show }),
  ...both({ methods: ['PATCH'], path, name: 'sendgrid.webhooks.change', summary: 'Change a webhook', permission, answer: change }),
  {
    methods: ['DELETE'],
    path: `${path}/:id`,
    name: 'sendgrid.webhooks.delete',
    summary: 'Delete a webhook',
    permission,
    async answer(call, deps) {
      const { webhook } = await webhookOf(call, deps)
      await deps.webhooks.remove(webhook.uuid, webhook.tenantId)
      return { status: 204, data: undefined }
    },
  },
  ...both({
    methods: ['GET'],
    path: `${path}/signed`,
    name: 'sendgrid.webhooks.key',
    summary: 'Get the public key of a webhook',
    permission,
    answer: async (call, deps) => ({ data: { public_key: (await webhookOf(call, deps)).publicKey } }),
  }),
  ...both({
    methods: ['PATCH'],
    path: `${path}/signed`,
    name: 'sendgrid.webhooks.sign',
    summary: 'Get the public key of a webhook',
    permission,
    answer: sign,
  }),
]
