/** Webhooks in the format `mailgun` as Mailgun's: for each event an id, with up to three URLs. */
import { JsonFields } from '#vendors'
import { mailgunEvents, type Webhook, type WebhookEvent } from '#webhooks'
import { MailgunRefusal, refuseMailgunField } from './errors.ts'

const maxUrls = 3
const maxUrlLength = 2048
const maxIdLength = 60

const entries = Object.entries(mailgunEvents) as [WebhookEvent, { webhook: string }][]
export const mailgunWebhookIds = [...new Set(entries.map(([, { webhook }]) => webhook))]
/** The Node SDK's own spelling. */
const aliases: Readonly<Record<string, string>> = { unsubscribe: 'unsubscribed' }

/** Postrider's events of a webhook's id; refuses an unknown one. */
export function eventsOfWebhook(given: string): { id: string; events: WebhookEvent[] } {
  const id = aliases[given] ?? given
  const events = entries.flatMap(([event, name]) => (name.webhook === id ? [event] : []))
  if (events.length === 0)
    throw new MailgunRefusal(400, `the webhook ${given.slice(0, maxIdLength)} is not served: use one of ${mailgunWebhookIds.join(', ')}`)
  return { id, events }
}

/** `isNew`: the body has the id too. */
export function readMailgunWebhook(body: unknown, isNew: boolean): { id: string; urls: string[] } {
  const fields = new JsonFields(body, '', refuseMailgunField)
  const id = isNew ? fields.needed('id', maxIdLength) : ''
  const urls = [...new Set(fields.texts('url', maxUrls, maxUrlLength).filter((one) => one !== ''))]
  fields.refuseOthers()
  if (urls.length === 0) throw fields.wrong('url', 'is missing', 'missing')
  return { id, urls }
}

/** The URLs of one id. */
export const urlsOf = (events: readonly WebhookEvent[], webhooks: readonly Webhook[]): string[] =>
  webhooks.filter((one) => one.enabled && events.some((event) => one.events.includes(event))).map(({ url }) => url)
