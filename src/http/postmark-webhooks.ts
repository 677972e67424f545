/** Endpoints of Postmark's API about webhooks. */
import { Refusal } from '#base'
import { PostmarkRefusal, postmarkWebhook, readPostmarkWebhook } from '#postmark'
import type { VendorCall, VendorDeps, VendorEndpoint } from './vendor-api.ts'
import { createVendorWebhook, getVendorWebhook, listVendorWebhooks } from './vendor-webhooks.ts'

const format = 'postmark'

async function webhookOf({ params, credential }: VendorCall, deps: VendorDeps) {
  try {
    return (await getVendorWebhook(format, params.id, credential, deps)).webhook
  } catch (error) {
    if (error instanceof Refusal && error.code === 'not_found') throw new PostmarkRefusal(404, 'The webhook does not exist.', 404)
    throw error
  }
}

export const postmarkWebhookEndpoints: readonly VendorEndpoint[] = [
  {
    methods: ['POST'],
    path: '/webhooks',
    name: 'postmark.webhooks.create',
    summary: 'Create a webhook',
    permission: 'webhooks:manage',
    async answer({ body, credential }, deps) {
      const { webhook } = await createVendorWebhook(format, readPostmarkWebhook(body, undefined), credential, deps)
      return { data: postmarkWebhook(webhook) }
    },
  },
  {
    methods: ['GET'],
    path: '/webhooks',
    name: 'postmark.webhooks.list',
    summary: 'List webhooks',
    permission: 'webhooks:manage',
    async answer({ credential }, deps) {
      return { data: { Webhooks: (await listVendorWebhooks(format, credential, deps)).map(postmarkWebhook) } }
    },
  },
  {
    methods: ['GET'],
    path: '/webhooks/:id',
    name: 'postmark.webhooks.get',
    summary: 'Get a webhook',
    permission: 'webhooks:manage',
    answer: async (call, deps) => ({ data: postmarkWebhook(await webhookOf(call, deps)) }),
  },
  {
    methods: ['PUT'],
    path: '/webhooks/:id',
    name: 'postmark.webhooks.edit',
    summary: 'Change a webhook',
    permission: 'webhooks:manage',
    async answer(call, deps) {
      const before = await webhookOf(call, deps)
      const { webhook } = await deps.webhooks.update(before.uuid, before.tenantId, readPostmarkWebhook(call.body, before))
      return { data: postmarkWebhook(webhook) }
    },
  },
  {
    methods: ['DELETE'],
    path: '/webhooks/:id',
    name: 'postmark.webhooks.delete',
    summary: 'Delete a webhook',
    permission: 'webhooks:manage',
    async answer(call, deps) {
      const { uuid, tenantId, id } = await webhookOf(call, deps)
      await deps.webhooks.remove(uuid, tenantId)
      return { data: { ErrorCode: 0, Message: `Webhook ${id} removed.` } }
    },
  },
]
