/** Webhooks in the format `postmark` as Postmark's webhooks, and the bodies that create and change them. */
import { JsonFields } from '#vendors'
import { postmarkTriggers, usualPostmarkStream, type Webhook, type WebhookEvent } from '#webhooks'
import { refusePostmarkField } from './errors.ts'

const maxUrlLength = 2048
const maxStreamLength = 100

const entries = Object.entries(postmarkTriggers) as [WebhookEvent, string][]
const triggers = [...new Set(entries.map(([, trigger]) => trigger))]

/** The URL and the events of the enabled triggers; absent ones stay as they are in `before`. */
export function readPostmarkWebhook(
  body: unknown,
  before: Pick<Webhook, 'url' | 'events'> | undefined,
): { url: string; events: WebhookEvent[] } {
  const fields = new JsonFields(body, '', refusePostmarkField)
  const url = before ? (fields.text('Url', maxUrlLength) ?? before.url) : fields.needed('Url', maxUrlLength)
  const stream = fields.text('MessageStream', maxStreamLength)
  if (stream && stream !== usualPostmarkStream)
    throw fields.wrong('MessageStream', 'is served only as outbound: a webhook is of all streams')
  const given = new JsonFields(fields.value('Triggers') ?? {}, 'Triggers', refusePostmarkField)
  const enabled = new Set(entries.flatMap(([event, trigger]) => (before?.events.includes(event) ? [trigger] : [])))
  for (const trigger of triggers) {
    const wanted = given.value(trigger)
    if (wanted === undefined) continue
    const members = new JsonFields(wanted, `Triggers.${trigger}`, refusePostmarkField)
    if (members.flag('Enabled')) enabled.add(trigger)
    else enabled.delete(trigger)
    members.refuseOthers()
  }
  given.refuseOthers()
  fields.refuseOthers()
  if (enabled.size === 0) throw fields.wrong('Triggers', 'must have an enabled trigger')
  return { url, events: entries.flatMap(([event, trigger]) => (enabled.has(trigger) ? [event] : [])) }
}

export function postmarkWebhook({ id, url, events }: Webhook) {
  const isOn = (trigger: string) => ({ Enabled: entries.some(([event, one]) => one === trigger && events.includes(event)) })
  return {
    ID: id,
    Url: url,
    MessageStream: usualPostmarkStream,
    HttpHeaders: [],
    Triggers: {
      Open: { ...isOn('Open'), PostFirstOpenOnly: false },
      Click: isOn('Click'),
      Delivery: isOn('Delivery'),
      Bounce: { ...isOn('Bounce'), IncludeContent: false },
      SpamComplaint: { ...isOn('SpamComplaint'), IncludeContent: false },
      SubscriptionChange: isOn('SubscriptionChange'),
    },
  }
}
