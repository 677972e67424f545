/**
 * The webhooks of an account at another service, by its API as publicly documented: the URL of each, with the events that Postrider has
 * too. Secrets stay with the service. Webhooks of one URL become one, because a receiver would otherwise get an event twice.
 */
import { Refusal } from '#base'
import type { Get } from '#net'
import { mailgunEvents, postmarkTriggers, resendTypes, sendgridEvents, type WebhookEvent, webhookEvents } from '#webhooks'
import { AccountApi, type ApiRow, basic, bearer, type VendorAccount } from './account-api.ts'
import { listVendorDomains } from './vendor-domains.ts'

/** Each is a format of webhooks too. */
export const webhookVendors = ['resend', 'sendgrid', 'mailgun', 'postmark'] as const
export type WebhookVendor = (typeof webhookVendors)[number]

export interface VendorWebhook {
  url: string
  name: string | undefined
  enabled: boolean
  events: WebhookEvent[]
  /** Sentences about settings that have no place here. */
  notes: string[]
}

const maxNoteLength = 300
/** The services allow a few for each URL, server or domain. */
const maxWebhooks = 1000

type Api = Pick<AccountApi, 'ask' | 'rows' | 'pages' | 'noList'>

interface WebhooksApi {
  url: string
  headers: (key: string) => Record<string, string>
  list: (api: Api, account: VendorAccount<WebhookVendor>, get: Get) => Promise<VendorWebhook[]>
}

const apis: Readonly<Record<WebhookVendor, WebhooksApi>> = {
  resend: {
    url: 'https://api.resend.com',
    headers: bearer,
    async list(api) {
      const page = (size: number, _: number, last: string) =>
        `/webhooks?limit=${size}${last === '' ? '' : `&after=${encodeURIComponent(last)}`}`
      return (await api.pages(page, ({ data }) => data, 'id')).flatMap(resendWebhook)
    },
  },
  sendgrid: {
    url: 'https://api.sendgrid.com',
    headers: bearer,
    list: async (api) => (await listOf(api, '/v3/user/webhooks/event/settings/all', 'webhooks')).flatMap(sendgridWebhook),
  },
  mailgun: { url: 'https://api.mailgun.net', headers: basic, list: listMailgun },
  postmark: {
    url: 'https://api.postmarkapp.com',
    headers: (key) => ({ 'x-postmark-server-token': key, accept: 'application/json' }),
    list: async (api) => (await listOf(api, '/webhooks', 'Webhooks')).flatMap(postmarkWebhook),
  },
}

/** The webhooks, one for each URL, in the order of the service. */
export async function listWebhooksAt(account: VendorAccount<WebhookVendor>, get: Get): Promise<VendorWebhook[]> {
  const { vendor, key, apiUrl } = account
  const { url, headers, list } = apis[vendor]
  const api = new AccountApi({ vendor, records: 'webhooks', baseUrl: apiUrl ?? url, headers: () => headers(key), get })
  const found = byUrl(await list(api, account, get))
  if (found.length <= maxWebhooks) return found
  throw new Refusal('validation_error', {
    message: `${vendor} has ${found.length} webhooks: at most ${maxWebhooks} can come`,
    suggestion: 'Create those that are needed with postrider webhook add',
  })
}

async function listOf(api: Api, path: string, name: string): Promise<ApiRow[]> {
  const answer = await api.ask(path)
  if (!answer) throw api.noList(404)
  return api.rows(answer[name])
}

/** The account's own webhooks, and those of each domain: for each event a list of URLs. */
async function listMailgun(api: Api, account: VendorAccount<WebhookVendor>, get: Get): Promise<VendorWebhook[]> {
  const found: VendorWebhook[] = []
  // Regions and older accounts may not have webhooks of the account.
  const own = await api.ask('/v1/webhooks')
  for (const { url, event_types: types, description } of own ? api.rows(own.webhooks) : [])
    if (typeof url === 'string') found.push(mailgunWebhook(url, textsIn(types), textIn(description)))
  for (const domain of await listVendorDomains({ ...account, vendor: 'mailgun' }, get)) {
    const answer = await api.ask(`/v3/domains/${encodeURIComponent(domain)}/webhooks`)
    for (const [type, one] of Object.entries(membersOf(answer?.webhooks))) {
      const { urls, url } = membersOf(one)
      for (const each of new Set([...textsIn(urls), ...textsIn([url])])) found.push(mailgunWebhook(each, [type], undefined))
    }
  }
  return found
}

const mailgunWebhook = (url: string, types: readonly string[], name: string | undefined): VendorWebhook => ({
  url,
  name,
  enabled: true,
  ...servedOf(types, (event) => mailgunEvents[event]?.webhook),
})

function resendWebhook({ endpoint, events, status }: ApiRow): VendorWebhook[] {
  const served = servedOf(textsIn(events), (event) => resendTypes[event])
  return typeof endpoint === 'string' ? [{ url: endpoint, name: undefined, enabled: status !== 'disabled', ...served }] : []
}

/** Settings of SendGrid's that are events without a place here. */
const otherSettings = ['processed', 'group_unsubscribe', 'group_resubscribe', 'account_status_change']

function sendgridWebhook(row: ApiRow): VendorWebhook[] {
  const settingOf = (event: WebhookEvent) => (sendgridEvents[event] === 'spamreport' ? 'spam_report' : sendgridEvents[event])
  const settings = [...new Set([...webhookEvents.flatMap((event) => settingOf(event) ?? []), ...otherSettings])]
  const { events, notes } = servedOf(
    settings.filter((name) => row[name] === true),
    settingOf,
  )
  if (textIn(row.oauth_client_id)) notes.push('the receiver gets no OAuth token')
  const name = textIn(row.friendly_name)
  return typeof row.url === 'string' && row.url !== '' ? [{ url: row.url, name, enabled: row.enabled !== false, events, notes }] : []
}

function postmarkWebhook({ Url, Triggers, HttpAuth, HttpHeaders, MessageStream }: ApiRow): VendorWebhook[] {
  const on = Object.entries(membersOf(Triggers)).flatMap(([name, one]) => (membersOf(one).Enabled === true ? [name] : []))
  const { events, notes } = servedOf(on, (event) => postmarkTriggers[event])
  if (textIn(membersOf(HttpAuth).Username)) notes.push('the receiver gets no user name and password: it verifies the signature')
  if (Array.isArray(HttpHeaders) && HttpHeaders.length > 0) notes.push('the receiver gets no headers of its own')
  if (typeof MessageStream === 'string' && MessageStream !== 'outbound') notes.push('it gets the events of all streams')
  return typeof Url === 'string' ? [{ url: Url, name: undefined, enabled: true, events, notes }] : []
}

/** Postrider's events of the service's names. */
function servedOf(names: readonly string[], nameOf: (event: WebhookEvent) => string | undefined): Pick<VendorWebhook, 'events' | 'notes'> {
  const events = webhookEvents.filter((event) => names.includes(nameOf(event) ?? ''))
  const others = names.filter((name) => !webhookEvents.some((event) => nameOf(event) === name))
  return {
    events,
    notes: others.length === 0 ? [] : [`without ${others.join(', ').slice(0, maxNoteLength)}, which Postrider does not have`],
  }
}

function byUrl(webhooks: readonly VendorWebhook[]): VendorWebhook[] {
  const merged = new Map<string, VendorWebhook>()
  for (const one of webhooks) {
    const known = merged.get(one.url)
    if (!known) merged.set(one.url, one)
    else
      merged.set(one.url, {
        url: one.url,
        name: known.name ?? one.name,
        enabled: known.enabled || one.enabled,
        events: webhookEvents.filter((event) => known.events.includes(event) || one.events.includes(event)),
        notes: [...new Set([...known.notes, ...one.notes])],
      })
  }
  return [...merged.values()]
}

const membersOf = (value: unknown): ApiRow =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as ApiRow) : {}
const textsIn = (value: unknown): string[] => (Array.isArray(value) ? value.filter((one) => typeof one === 'string' && one !== '') : [])
const textIn = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? value : undefined)
