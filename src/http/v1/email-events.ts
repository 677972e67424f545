/** The events by which emails can be listed. Each one is found where its module records it. */
import type { Tx } from '#db'
import { listEmailsWithResult } from '#emails'
import { listEmailsWithEvent } from '#events'
import { listComplained } from '#returns'
import { listTrackedEmails } from '#tracking'

export const listedEvents = ['delivered', 'delayed', 'failed', 'bounced', 'complained', 'opened', 'clicked', 'unsubscribed'] as const
export type ListedEvent = (typeof listedEvents)[number]

interface Period {
  tenantId: string | null
  test?: boolean | undefined
  after?: Date | undefined
  before?: Date | undefined
}

const finders: Readonly<Record<ListedEvent, (tx: Tx, period: Period, most: number) => Promise<string[]>>> = {
  delivered: (tx, period, most) => listEmailsWithResult(tx, 'sent', period, most),
  delayed: (tx, period, most) => listEmailsWithResult(tx, 'softfail', period, most),
  failed: (tx, period, most) => listEmailsWithResult(tx, 'hardfail', period, most),
  bounced: (tx, period, most) => listEmailsWithResult(tx, 'bounced', period, most),
  complained: listComplained,
  opened: (tx, period, most) => listTrackedEmails(tx, 'open', period, most),
  clicked: (tx, period, most) => listTrackedEmails(tx, 'click', period, most),
  unsubscribed: (tx, period, most) => listEmailsWithEvent(tx, 'RecipientUnsubscribed', period, most),
}

/** Finds the newest emails that had all of `events`, at most `most` of each; undefined without events. */
export function idsWith(
  events: readonly ListedEvent[],
  period: Period,
  most: number,
): ((tx: Tx) => Promise<readonly string[]>) | undefined {
  const [first, ...others] = new Set(events)
  if (first === undefined) return undefined
  return async (tx) => {
    let ids = await finders[first](tx, period, most)
    for (const event of others) {
      const also = new Set(await finders[event](tx, period, most))
      ids = ids.filter((id) => also.has(id))
    }
    return ids
  }
}
