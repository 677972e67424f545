/** A webhook's state: enabled, failing since a time, or disabled with the reason. */
import { texts } from '../texts.ts'
import type { Webhook } from '../types.ts'
import { Badge, Time } from './basics.tsx'

export function WebhookBadge({ webhook: { enabled, failingSince } }: { webhook: Webhook }) {
  if (!enabled) return <Badge tone="wait">{texts.webhook.off}</Badge>
  return <Badge tone={failingSince ? 'bad' : 'good'}>{failingSince ? texts.webhook.fails : texts.webhook.on}</Badge>
}

/** Renders no element if there is no state to report. */
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
