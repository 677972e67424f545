/** Endpoints of Mailgun's API about webhooks: one webhook of Postrider for each URL, with the events of all ids that have it. */
import type { Credential } from '#credentials'
import { eventsOfWebhook, MailgunRefusal, mailgunWebhookIds, readMailgunWebhook, urlsOf } from '#mailgun'
import type { Webhook, WebhookEvent } from '#webhooks'
import { refuseUnknownDomain } from './mailgun-domains.ts'
import type { VendorCall, VendorDeps, VendorEndpoint } from './vendor-api.ts'
import { createVendorWebhook, getVendorWebhook, listVendorWebhooks } from './vendor-webhooks.ts'

const format = 'mailgun'
const permission = 'webhooks:manage'
const path = '/v3/domains/:domain/webhooks'

const hasAny = ({ events }: Webhook, wanted: readonly WebhookEvent[]) => wanted.some((one) => events.includes(one))

/** Creates the webhooks of these URLs that do not exist; if a URL is refused, no webhook is created. */
async function createMissing(urls: readonly string[], events: readonly WebhookEvent[], credential: Credential, deps: VendorDeps) {
  const known = await listVendorWebhooks(format, credential, deps)
  const made: Webhook[] = []
  try {
    for (const url of urls)
      if (!known.some((one) => one.url === url)) made.push((await createVendorWebhook(format, { url, events }, credential, deps)).webhook)
  } catch (error) {
    for (const { uuid, tenantId } of made) await deps.webhooks.remove(uuid, tenantId)
    throw error
  }
  return known
}

async function setEvents({ uuid, tenantId }: Webhook, events: readonly WebhookEvent[], { webhooks }: VendorDeps) {
  if (events.length === 0) await webhooks.remove(uuid, tenantId)
  else await webhooks.update(uuid, tenantId, { events, enabled: true })
}

/**
 * Gives the id these URLs and no others. Every step may be repeated. A disabled webhook, which Mailgun's API does not show, gets no event back
 * but these.
 */
async function setUrls(urls: readonly string[], events: readonly WebhookEvent[], credential: Credential, deps: VendorDeps) {
  for (const one of await createMissing(urls, events, credential, deps)) {
    const others = one.enabled ? one.events.filter((event) => !events.includes(event)) : []
    if (urls.includes(one.url)) await setEvents(one, [...others, ...events], deps)
    else if (one.enabled && hasAny(one, events)) await setEvents(one, others, deps)
  }
}

/** `signing_keys` is an addition to Mailgun's answer: a webhook's requests are signed with a key of its own. */
async function shown(id: string, { credential }: VendorCall, deps: VendorDeps) {
  const { events } = eventsOfWebhook(id)
  const all = (await listVendorWebhooks(format, credential, deps)).filter((one) => one.enabled && hasAny(one, events))
  const keys = await Promise.all(
    all.map(async ({ url, uuid }) => [url, (await getVendorWebhook(format, uuid, credential, deps)).secret ?? ''] as const),
  )
  return { webhook: { urls: all.map(({ url }) => url) }, signing_keys: Object.fromEntries(keys) }
}

async function exists(events: readonly WebhookEvent[], { credential }: VendorCall, deps: VendorDeps): Promise<boolean> {
  return urlsOf(events, await listVendorWebhooks(format, credential, deps)).length > 0
}

const noSuchWebhook = () => new MailgunRefusal(404, 'Webhook not found')

const endpoints: readonly VendorEndpoint[] = [
  {
    methods: ['GET'],
    path,
    name: 'mailgun.webhooks.list',
    summary: 'List the URLs of every webhook',
    permission,
    async answer({ credential }, deps) {
      const all = await listVendorWebhooks(format, credential, deps)
      const webhooks = mailgunWebhookIds.flatMap((id) => {
        const urls = urlsOf(eventsOfWebhook(id).events, all)
        return urls.length === 0 ? [] : [[id, { urls }] as const]
      })
      return { data: { webhooks: Object.fromEntries(webhooks) } }
    },
  },
  {
    methods: ['POST'],
    path,
    name: 'mailgun.webhooks.create',
    summary: 'Create the webhook of an event',
    permission,
    async answer(call, deps) {
      const { id, urls } = readMailgunWebhook(call.body, true)
      const { events } = eventsOfWebhook(id)
      if (await exists(events, call, deps)) throw new MailgunRefusal(400, 'Webhook already exists')
      await setUrls(urls, events, call.credential, deps)
      return { data: { message: 'Webhook has been created', ...(await shown(id, call, deps)) } }
    },
  },
  {
    methods: ['GET'],
    path: `${path}/:id`,
    name: 'mailgun.webhooks.get',
    summary: 'Get the URLs of a webhook',
    permission,
    async answer(call, deps) {
      const { id, events } = eventsOfWebhook(call.params.id ?? '')
      if (!(await exists(events, call, deps))) throw noSuchWebhook()
      return { data: await shown(id, call, deps) }
    },
  },
  {
    methods: ['PUT'],
    path: `${path}/:id`,
    name: 'mailgun.webhooks.update',
    summary: 'Replace the URLs of a webhook',
    permission,
    async answer(call, deps) {
      const { id, events } = eventsOfWebhook(call.params.id ?? '')
      const { urls } = readMailgunWebhook(call.body, false)
      if (!(await exists(events, call, deps))) throw noSuchWebhook()
      await setUrls(urls, events, call.credential, deps)
      return { data: { message: 'Webhook has been updated', ...(await shown(id, call, deps)) } }
    },
  },
  {
    methods: ['DELETE'],
    path: `${path}/:id`,
    name: 'mailgun.webhooks.delete',
    summary: 'Delete a webhook',
    permission,
    async answer(call, deps) {
      const { id, events } = eventsOfWebhook(call.params.id ?? '')
      if (!(await exists(events, call, deps))) throw noSuchWebhook()
      const before = await shown(id, call, deps)
      await setUrls([], events, call.credential, deps)
      return { data: { message: 'Webhook has been deleted', webhook: before.webhook } }
    },
  },
]

export const mailgunWebhookEndpoints: readonly VendorEndpoint[] = endpoints.map((endpoint) => ({
  ...endpoint,
  async answer(call, deps) {
    await refuseUnknownDomain(call, deps)
    return endpoint.answer(call, deps)
  },
}))
