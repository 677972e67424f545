/** Webhooks in the format `sendgrid` as settings of SendGrid's event webhook, and the bodies that create and change them. */
import { JsonFields } from '#vendors'
import { sendgridEvents, type Webhook, type WebhookEvent } from '#webhooks'
import { refuseSendGridField } from './errors.ts'

const maxUrlLength = 2048
const maxNameLength = 100

/** The settings' names, which differ from the names of some events. */
const settingOf = (event: string) => (event === 'spamreport' ? 'spam_report' : event)
const entries = (Object.entries(sendgridEvents) as [WebhookEvent, string][]).map(([event, name]) => [event, settingOf(name)] as const)
const settings = [...new Set(entries.map(([, setting]) => setting))]
/** Events that Postrider does not have; they may be off. */
const unserved = ['processed', 'group_unsubscribe', 'group_resubscribe', 'account_status_change'] as const

export interface SendGridWebhookChanges {
  url: string
  events: WebhookEvent[]
  name: string | undefined
  enabled: boolean | undefined
}

/** Absent members stay as they are in `before`, or are off. */
export function readSendGridWebhook(body: unknown, before: Pick<Webhook, 'url' | 'events'> | undefined): SendGridWebhookChanges {
  const fields = new JsonFields(body, '', refuseSendGridField)
  const url = before ? fields.text('url', maxUrlLength) || before.url : fields.needed('url', maxUrlLength)
  for (const name of unserved) if (fields.flag(name)) throw fields.wrong(name, 'is not served', 'not served')
  const on = settings.filter(
    (setting) => fields.flag(setting) ?? entries.some(([event, own]) => own === setting && before?.events.includes(event)),
  )
  if (on.length === 0) throw fields.wrong('delivered', 'or another event must be true', 'missing')
  const changes = {
    url,
    events: entries.flatMap(([event, setting]) => (on.includes(setting) ? [event] : [])),
    name: fields.text('friendly_name', maxNameLength) || undefined,
    enabled: fields.flag('enabled'),
  }
  fields.refuseOthers()
  return changes
}

/** `publicKey`: absent in lists. */
export const sendgridWebhook = ({ uuid, url, events, enabled, name, createdAt, updatedAt }: Webhook, publicKey: string | undefined) => ({
  id: uuid,
  enabled,
  url,
  ...Object.fromEntries(settings.map((setting) => [setting, entries.some(([event, own]) => own === setting && events.includes(event))])),
  ...Object.fromEntries(unserved.map((setting) => [setting, false])),
  friendly_name: name,
  created_date: createdAt.toISOString(),
  updated_date: updatedAt.toISOString(),
  ...(publicKey === undefined ? {} : { public_key: publicKey }),
})
