/**
 * One webhook's way through the log, or through a part of it that is sent again: what lies ahead, what is on its way, and up to where
 * everything is done. Bounded in events ahead of the position; gives them out so that those of one email come one after the other.
 */
import type { LogPosition } from '#events'
import type { Page, PageEvent, Pages } from './pages.ts'
import { hears, type StoredPosition } from './positions.ts'
import type { StoredWebhook } from './records.ts'

/** Events that the position may lag behind what is attempted: one slow answer holds up no more than these, and memory no less. */
const mostAhead = 256
/** Read on when fewer than these wait. */
const enoughWaiting = 32

export interface Entry {
  at: PageEvent
  /** Attempted, and on record. */
  isRecorded: boolean
  /** In the transaction under way: when that is committed, it is on record. */
  isBeingRecorded: boolean
  /** Given out to be attempted. */
  isTaken: boolean
}

export interface FollowerPosition extends LogPosition {
  /** Attempted beyond the position. */
  doneIds: number[]
  /** There is nothing more to come. */
  isOver: boolean
}

export interface Follower {
  readonly id: number
  /** The first waiting event of an email that is not busy; it is on its way from now on. */
  take(webhook: StoredWebhook, isBusy: (emailId: string) => boolean): Entry | undefined
  /** It waits again. */
  giveBack(entry: Entry): void
  /** Reads on, if there is room and something to read; true when something new waits. */
  fill(webhook: StoredWebhook): Promise<boolean>
  /** Everything before it is on record, or being recorded. */
  position(): FollowerPosition
  /** Forgets what waits, unless something is on its way; it is read again. */
  release(): void
}

/** The events that were before a webhook: those visible in a snapshot, `xmin:xmax:xip,…`. */
function beforeSnapshot(text: string): (xact: bigint) => boolean {
  const [xmin = '0', xmax = '0', open = ''] = text.split(':')
  const running = new Set(open === '' ? [] : open.split(','))
  const [first, end] = [BigInt(xmin), BigInt(xmax)]
  return (xact) => xact < first || (xact < end && !running.has(String(xact)))
}

export function openFollower(stored: StoredPosition, pages: Pages): Follower {
  const { since, untilXact, afterAt, beforeAt } = stored
  const isBefore = beforeSnapshot(since)
  let done = new Set(stored.doneIds)
  let cursor: LogPosition = { xact: stored.xact, id: stored.eventId }
  let entries: Entry[] = []
  let waiting = 0
  let isFilling = false
  let isAtEnd = false
  /** Raised when what is being read is not wanted any more. */
  let generation = 0

  const isWanted = (webhook: StoredWebhook, { event }: PageEvent) =>
    hears(webhook, event) &&
    !isBefore(BigInt(event.xact)) &&
    (afterAt === null || event.at > afterAt) &&
    (beforeAt === null || event.at < beforeAt)

  const add = ({ events, end }: Page, wanted: readonly PageEvent[]) => {
    for (const at of wanted) {
      if (!at.told) continue
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

  const position = (): FollowerPosition => {
    settle()
    const isDone = ({ isRecorded, isBeingRecorded }: Entry) => isRecorded || isBeingRecorded
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
        // What it heard of has changed since this was read.
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
      if (isFilling || isAtEnd || waiting >= enoughWaiting || entries.length >= mostAhead || pages.isDry(cursor)) return false
      isFilling = true
      const mine = generation
      try {
        const before = waiting
        const next = await pages.next(cursor)
        const page = next.events.length === 0 && untilXact !== null ? await pages.last(cursor, untilXact) : next
        if (!page) return false
        const wanted = page.events.filter((one) => isWanted(webhook, one))
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
