/** Webhooks of another vendor's format, as the vendor's API shows them: those of the key's tenant, or of the organisation. */
import { Refusal } from '#base'
import type { Credential } from '#credentials'
import { organisationWide, type Webhook, type WebhookEvent } from '#webhooks'
import type { VendorDeps } from './vendor-api.ts'

type Format = Webhook['format']

const ownerOf = ({ tenantId }: Credential) => tenantId ?? organisationWide

export async function listVendorWebhooks(format: Format, credential: Credential, { webhooks }: VendorDeps): Promise<Webhook[]> {
  return (await webhooks.list(ownerOf(credential))).filter((one) => one.format === format)
}

/** With its secret. A webhook of another format is not found. */
export async function getVendorWebhook(format: Format, id: string | undefined, credential: Credential, { webhooks }: VendorDeps) {
  const shown = await webhooks.get(id ?? '', ownerOf(credential), { reveal: true })
  if (shown.webhook.format !== format) throw new Refusal('not_found', { message: 'no such webhook' })
  return shown
}

export const createVendorWebhook = (
  format: Format,
  {
    url,
    events,
    name,
    enabled,
  }: { url: string; events: readonly WebhookEvent[]; name?: string | undefined; enabled?: boolean | undefined },
  credential: Credential,
  { webhooks }: VendorDeps,
) => webhooks.create(ownerOf(credential), { name: name ?? nameOf(url), url, events, enabled, format })

const maxNameLength = 100

/** The host; a URL without one is refused at its creation. */
const nameOf = (url: string) => (URL.canParse(url) && new URL(url).host.slice(0, maxNameLength)) || 'webhook'
