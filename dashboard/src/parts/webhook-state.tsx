/** A webhook's state: enabled, failing since a time, or disabled with the reason. */

import type { Webhook } from '../api-types.ts'
import { texts } from '../texts.ts'
import { Badge } from './basic-components.tsx'
import { Time } from './time-and-copy.tsx'

export function WebhookBadge({ webhook: { enabled, failingSince } }: { webhook: Webhook }) {
  if (!enabled) return <Badge tone="wait">{texts.webhook.off}</Badge>
  return <Badge tone={failingSince ? 'bad' : 'good'}>{failingSince ? texts.webhook.fails : texts.webhook.on}</Badge>
}

/** Renders no element if there is no state to report. */
export function WebhookState({ webhook: { failingSince, disabledAt, disabledReason } }: { webhook: Webhook }) {
  if (disabledAt && disabledReason) {
    return (
      <span className="block text-xs text-soft">
        {texts.webhook.disabled[disabledReason]} <Time at={disabledAt} />
      </span>
    )
  }
  if (!failingSince) return null
  return (
    <span className="block text-xs text-soft">
      {texts.webhook.failingSince} <Time at={failingSince} />
    </span>
  )
}
