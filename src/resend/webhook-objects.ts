/** Webhooks in the format `resend` as Resend's webhooks, and the bodies that create and change them. */
import { JsonFields } from '#vendors'
import { resendTypes, type Webhook, type WebhookEvent } from '#webhooks'
import { refuseResendField } from './errors.ts'

const maxUrlLength = 2048
const maxTypes = 100
const maxTypeLength = 60

const entries = Object.entries(resendTypes) as [WebhookEvent, string][]

export interface ResendWebhookChanges {
  url: string | undefined
  events: WebhookEvent[] | undefined
  enabled: boolean | undefined
}

/** `isNew`: the URL and the events are required. A type without an event of Postrider's is refused. */
export function readResendWebhook(body: unknown, isNew: boolean): ResendWebhookChanges {
  const fields = new JsonFields(body, '', refuseResendField)
  const url = isNew ? fields.needed('endpoint', maxUrlLength) : fields.text('endpoint', maxUrlLength)
  const types = fields.texts('events', maxTypes, maxTypeLength)
  if (isNew && types.length === 0) throw fields.wrong('events', 'is missing', 'missing')
  const unknown = types.find((type) => !entries.some(([, known]) => known === type))
  if (unknown !== undefined) throw fields.wrong('events', `has ${unknown}, which is not served`, 'not served')
  const status = fields.text('status', maxTypeLength)
  if (status !== undefined && status !== 'enabled' && status !== 'disabled') throw fields.wrong('status', 'must be enabled or disabled')
  fields.refuseOthers()
  const events = entries.flatMap(([event, type]) => (types.includes(type) ? [event] : []))
  return { url, events: events.length > 0 ? events : undefined, enabled: status === undefined ? undefined : status === 'enabled' }
}

/** An element of `GET /webhooks`. */
export const resendWebhook = ({ uuid, createdAt, enabled, url, events }: Webhook) => ({
  id: uuid,
  created_at: createdAt.toISOString(),
  status: enabled ? 'enabled' : 'disabled',
  endpoint: url,
  events: [...new Set(events.flatMap((event) => resendTypes[event] ?? []))],
})
