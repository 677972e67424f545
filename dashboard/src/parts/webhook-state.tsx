/** How a webhook does: whether it is on, since when its receiver fails, or why it is off. */
import { texts } from '../texts.ts'
import type { Webhook } from '../types.ts'
import { Badge, Time } from './basics.tsx'

export function WebhookBadge({ webhook: { enabled, failingSince } }: { webhook: Webhook }) {
  if (!enabled) return <Badge tone="wait">{texts.webhook.off}</Badge>
  return <Badge tone={failingSince ? 'bad' : 'good'}>{failingSince ? texts.webhook.fails : texts.webhook.on}</Badge>
}

/** Nothing, where there is nothing to say. */
export function WebhookState({ webhook: { failingSince, disabledAt, disabledBecause } }: { webhook: Webhook }) {
  if (disabledAt && disabledBecause) {
    return (
      <span className="block text-soft">
        {texts.webhook.disabled[disabledBecause]} <Time at={disabledAt} />
      </span>
    )
  }
  if (!failingSince) return null
  return (
    <span className="block text-bad">
      {texts.webhook.failingSince} <Time at={failingSince} />
    </span>
  )
}
