/** The part of a page of the event log that fits into memory: an event with a received message carries up to 100,000 characters. */
import type { LoggedEvent } from '#events'

/** Pages stay in memory for all readers, so that a page ends with this number of received messages. */
const maxReceived = 8

/** The first events of the page; all of them unless `isOwn` events have too many received messages. */
export function boundedPage(events: readonly LoggedEvent[], isOwn: (event: LoggedEvent) => boolean = () => true): readonly LoggedEvent[] {
  let received = 0
  const last = events.findIndex((event) => event.kind === 'MessageReceived' && isOwn(event) && ++received === maxReceived)
  return last < 0 ? events : events.slice(0, last + 1)
}
