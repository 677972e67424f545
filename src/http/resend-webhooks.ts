/** Endpoints of Resend's API about webhooks. */
import { readResendWebhook, resendWebhook } from '#resend'
import type { VendorEndpoint } from './vendor-api.ts'
import { createVendorWebhook, getVendorWebhook, listVendorWebhooks } from './vendor-webhooks.ts'

const format = 'resend'
const object = 'webhook'

export const resendWebhookEndpoints: readonly VendorEndpoint[] = [
  {
    methods: ['POST'],
    path: '/webhooks',
    name: 'resend.webhooks.create',
    summary: 'Create a webhook',
    permission: 'webhooks:manage',
    async answer({ body, credential }, deps) {
      const { url = '', events = [] } = readResendWebhook(body, true)
      const { webhook, secret } = await createVendorWebhook(format, { url, events }, credential, deps)
      return { status: 201, data: { object, id: webhook.uuid, signing_secret: secret } }
    },
  },
  {
    methods: ['GET'],
    path: '/webhooks',
    name: 'resend.webhooks.list',
    summary: 'List webhooks',
    permission: 'webhooks:manage',
    async answer({ credential }, deps) {
      const data = (await listVendorWebhooks(format, credential, deps)).map(resendWebhook)
      return { data: { object: 'list', has_more: false, data } }
    },
  },
  {
    methods: ['GET'],
    path: '/webhooks/:id',
    name: 'resend.webhooks.get',
    summary: 'Get a webhook',
    permission: 'webhooks:manage',
    async answer({ params, credential }, deps) {
      const { webhook, secret } = await getVendorWebhook(format, params.id, credential, deps)
      return { data: { object, ...resendWebhook(webhook), signing_secret: secret } }
    },
  },
  {
    methods: ['PATCH'],
    path: '/webhooks/:id',
    name: 'resend.webhooks.update',
    summary: 'Change a webhook',
    permission: 'webhooks:manage',
    async answer({ params, body, credential }, deps) {
      const { webhook } = await getVendorWebhook(format, params.id, credential, deps)
      await deps.webhooks.update(webhook.uuid, webhook.tenantId, readResendWebhook(body, false))
      return { data: { object, id: webhook.uuid } }
    },
  },
  {
    methods: ['POST'],
    path: '/webhooks/:id/signing-secret/rotate',
    name: 'resend.webhooks.rotate',
    summary: 'Replace the secret of a webhook',
    permission: 'webhooks:manage',
    async answer({ params, credential }, deps) {
      const { webhook } = await getVendorWebhook(format, params.id, credential, deps)
      const { secret } = await deps.webhooks.update(webhook.uuid, webhook.tenantId, { rotateSecret: true })
      return { data: { object, id: webhook.uuid, signing_secret: secret } }
    },
  },
  {
    methods: ['DELETE'],
    path: '/webhooks/:id',
    name: 'resend.webhooks.delete',
    summary: 'Delete a webhook',
    permission: 'webhooks:manage',
    async answer({ params, credential }, deps) {
      const { webhook } = await getVendorWebhook(format, params.id, credential, deps)
      await deps.webhooks.remove(webhook.uuid, webhook.tenantId)
      return { data: { object, id: webhook.uuid, deleted: true } }
    },
  },
]
