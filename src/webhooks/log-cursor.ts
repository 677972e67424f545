/**
 * One webhook's progress through the log or through a replayed part of it: queued events, events in flight, and the position up to which
 * all are done. Bounded in events ahead of the position; events of one email are handed out one after the other.
 */
import type { LogPosition } from '#events'
import type { BatchEvent, EventBatch, EventBatches } from './event-batches.ts'
import { hears, type StoredPosition } from './log-positions.ts'
import type { StoredWebhook } from './manage-webhooks.ts'

/** Most events between the position and the newest attempt. Bounds memory, and how far others run ahead of a slow answer. */
const maxAhead = 256
/** Reads on when fewer than these are queued. */
const enoughWaiting = 32

export interface CursorEntry {
  at: BatchEvent
  /** Attempted and recorded. */
  isRecorded: boolean
  /** Part of the transaction in progress, whose commit records it. */
  isBeingRecorded: boolean
  /** Handed out for an attempt. */
  isTaken: boolean
}

export interface CursorPosition extends LogPosition {
  /** Attempted beyond the position. */
  doneIds: number[]
  /** The followed part has ended. */
  isOver: boolean
}

export interface LogCursor {
  readonly id: number
  /** Takes the first queued event of an email that is not busy; it is in flight from then on. */
  take(webhook: StoredWebhook, isBusy: (emailId: string) => boolean): CursorEntry | undefined
  /** Queues the event again. */
  giveBack(entry: CursorEntry): void
  /** Reads on, if there is room and more to read; true if new events were queued. */
  fill(webhook: StoredWebhook): Promise<boolean>
  /** Everything before it is recorded, or being recorded. */
  position(): CursorPosition
  /** Drops the queued events unless some are in flight; they are read again later. */
  release(): void
}

/** Whether an event precedes the webhook, that is, is visible in the snapshot `xmin:xmax:xip,…`. */
function beforeSnapshot(text: string): (xact: bigint) => boolean {
  const [xmin = '0', xmax = '0', open = ''] = text.split(':')
  const running = new Set(open === '' ? [] : open.split(','))
  const [first, end] = [BigInt(xmin), BigInt(xmax)]
  return (xact) => xact < first || (xact < end && !running.has(String(xact)))
}

export function openLogCursor(stored: StoredPosition, pages: EventBatches): LogCursor {
  const { since, untilXact, afterAt, beforeAt } = stored
  const isBefore = beforeSnapshot(since)
  let done = new Set(stored.doneIds)
  let cursor: LogPosition = { xact: stored.xact, id: stored.eventId }
  let entries: CursorEntry[] = []
  let waiting = 0
  let isFilling = false
  let isAtEnd = false
  /** Raised to discard a read in progress. */
  let generation = 0

  const isContended = (webhook: StoredWebhook, { event }: BatchEvent) =>
    hears(webhook, event) &&
    !isBefore(BigInt(event.xact)) &&
    (afterAt === null || event.at > afterAt) &&
    (beforeAt === null || event.at < beforeAt)

  const add = ({ events, end }: EventBatch, wanted: readonly BatchEvent[]) => {
    for (const at of wanted) {
      if (!at.payload) continue
      const isRecorded = done.delete(at.event.id)
      entries.push({ at, isRecorded, isBeingRecorded: false, isTaken: isRecorded })
      if (!isRecorded) waiting++
    }
    cursor = end
    if (untilXact !== null && (events.length === 0 || BigInt(end.xact) > BigInt(untilXact))) isAtEnd = true
  }

  const settle = () => {
    const first = entries.findIndex(({ isRecorded }) => !isRecorded)
    if (first !== 0) entries = first < 0 ? [] : entries.slice(first)
  }

  const position = (): CursorPosition => {
    settle()
    const isDone = ({ isRecorded, isBeingRecorded }: CursorEntry) => isRecorded || isBeingRecorded
    const first = entries.find((one) => !isDone(one))
    const ahead = first ? entries.slice(entries.indexOf(first)) : []
    const at = first ? { xact: first.at.event.xact, id: first.at.event.id - 1 } : { xact: cursor.xact, id: cursor.id }
    const doneIds = [...done, ...ahead.filter(isDone).map((one) => one.at.event.id)]
    return { ...at, doneIds, isOver: isAtEnd && ahead.length === 0 }
  }

  return {
    id: stored.id,
    take(webhook, isBusy) {
      if (waiting === 0) return undefined
      for (const entry of entries) {
        const { event } = entry.at
        if (entry.isTaken || (event.emailId !== null && isBusy(event.emailId))) continue
        entry.isTaken = true
        waiting--
        if (hears(webhook, event)) return entry
        // The webhook's subscription has changed since this was read.
        entry.isRecorded = true
      }
      return undefined
    },
    giveBack(entry) {
      entry.isTaken = false
      waiting++
    },
    async fill(webhook) {
      settle()
      if (isFilling || isAtEnd || waiting >= enoughWaiting || entries.length >= maxAhead || pages.isDry(cursor)) return false
      isFilling = true
      const mine = generation
      try {
        const before = waiting
        const next = await pages.next(cursor)
        const page = next.events.length === 0 && untilXact !== null ? await pages.last(cursor, untilXact) : next
        if (!page) return false
        const wanted = page.events.filter((one) => isContended(webhook, one))
        await pages.prepare(wanted)
        if (mine === generation) add(page, wanted)
        return waiting > before || page.events.length > 0
      } finally {
        isFilling = false
      }
    },
    position,
    release() {
      if (entries.some(({ isTaken, isRecorded }) => isTaken && !isRecorded)) return
      const { xact, id, doneIds } = position()
      if (entries.length === 0) return
      generation++
      cursor = { xact, id }
      done = new Set(doneIds)
      entries = []
      waiting = 0
      isAtEnd = false
    },
  }
}
