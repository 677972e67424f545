/**
 * Adds webhooks of another service here, in the service's format, so that their receivers keep their code. A URL that a webhook of the
 * tenant has already stays as it is, so a second run has no effect.
 */
import { Refusal } from '#base'
import type { Post } from '#net'
import { sendgridPublicKey, type WebhookEvent, type Webhooks } from '#webhooks'
import type { VendorWebhook, WebhookVendor } from './vendor-webhooks.ts'

export interface WebhookLine {
  url: string
  events: WebhookEvent[]
  enabled: boolean
  /** `missing`: would be added. */
  state: 'missing' | 'added' | 'existing' | 'failed'
  notes: string[]
  /** The reason of a failure. */
  problem?: string
  id?: string
  /** Verifies the signatures; shown now. */
  secret?: string
  /** The same for receivers of SendGrid's events. */
  publicKey?: string
}

export interface WebhooksReport {
  found: number
  webhooks: WebhookLine[]
}

export interface WebhookImportDeps {
  webhooks: Pick<Webhooks, 'create' | 'list'>
  look: Post['look']
}

const maxUrlLength = 2048
const maxNameLength = 100

/** With `dryRun` only compares. */
export async function importWebhooks(
  found: readonly VendorWebhook[],
  { tenantId, vendor, dryRun }: { tenantId: string; vendor: WebhookVendor; dryRun: boolean },
  deps: WebhookImportDeps,
): Promise<WebhooksReport> {
  const there = new Set((await deps.webhooks.list(tenantId)).map(({ url }) => url))
  const webhooks: WebhookLine[] = []
  for (const one of found) {
    const { url, events, enabled, notes } = one
    const shown = { url, events, enabled, notes }
    const problem = there.has(url) ? undefined : await problemOf(one, deps)
    if (there.has(url)) webhooks.push({ ...shown, state: 'existing' })
    else if (problem !== undefined) webhooks.push({ ...shown, state: 'failed', problem })
    else if (dryRun) webhooks.push({ ...shown, state: 'missing' })
    else webhooks.push({ ...shown, ...(await added(one, tenantId, vendor, deps)) })
  }
  return { found: found.length, webhooks }
}

async function problemOf({ url, events }: VendorWebhook, { look }: WebhookImportDeps): Promise<string | undefined> {
  if (events.length === 0) return 'has no event that Postrider has'
  if (url.length > maxUrlLength) return `has a URL of more than ${maxUrlLength} characters`
  const verdict = await look(url)
  return verdict.kind === 'malformed' || verdict.kind === 'refused' ? verdict.message : undefined
}

async function added(
  { url, name, events, enabled }: VendorWebhook,
  tenantId: string,
  vendor: WebhookVendor,
  { webhooks }: WebhookImportDeps,
): Promise<Pick<WebhookLine, 'state' | 'problem' | 'id' | 'secret' | 'publicKey'>> {
  try {
    const wanted = { name: (name ?? new URL(url).host).slice(0, maxNameLength).toWellFormed(), url, events, enabled, format: vendor }
    const { webhook, secret = '' } = await webhooks.create(tenantId, wanted)
    return { state: 'added', id: webhook.uuid, secret, ...(vendor === 'sendgrid' ? { publicKey: sendgridPublicKey(secret) } : {}) }
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    return { state: 'failed', problem: error.message }
  }
}
