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

/** Whether an event precedes the webhook, that is, is visible in the snapshot `xmin:xmax:xip,…`. */
function beforeSnapshot(text: string): (xact: bigint) => boolean {
  const [xmin = '0', xmax = '0', open = ''] = text.split(':')
  const running = new Set(open === '' ? [] : open.split(','))
  const [first, end] = [BigInt(xmin), BigInt(xmax)]
  return (xact) => xact < first || (xact < end && !running.has(String(xact)))
}

export class LogCursor {
  readonly id: StoredPosition['id']
  readonly #stored: StoredPosition
  readonly #pages: EventBatches
  readonly #isBefore: (xact: bigint) => boolean
  #done: Set<number>
  #cursor: LogPosition
  #entries: CursorEntry[] = []
  #waiting = 0
  #isFilling = false
  #isAtEnd = false
  /** Raised to discard a read in progress. */
  #generation = 0

  constructor(stored: StoredPosition, pages: EventBatches) {
    this.id = stored.id
    this.#stored = stored
    this.#pages = pages
    this.#isBefore = beforeSnapshot(stored.since)
    this.#done = new Set(stored.doneIds)
    this.#cursor = { xact: stored.xact, id: stored.eventId }
  }

  /** The next event for the webhook that is not taken, of an email that is not busy; undefined if all are taken. */
  take(webhook: StoredWebhook, isBusy: (emailId: string) => boolean): CursorEntry | undefined {
    if (this.#waiting === 0) return undefined
    for (const entry of this.#entries) {
      const { event } = entry.at
      if (entry.isTaken || (event.emailId !== null && isBusy(event.emailId))) continue
      entry.isTaken = true
      this.#waiting--
      if (hears(webhook, event)) return entry
      // The webhook's subscription has changed since this was read.
      entry.isRecorded = true
    }
    return undefined
  }

  giveBack(entry: CursorEntry): void {
    entry.isTaken = false
    this.#waiting++
  }

  /** Reads the next events if few are waiting. Resolves to true if there may be more to take. */
  async fill(webhook: StoredWebhook): Promise<boolean> {
    this.#settle()
    const isEnough = this.#waiting >= enoughWaiting || this.#entries.length >= maxAhead
    if (this.#isFilling || this.#isAtEnd || isEnough || this.#pages.isDry(this.#cursor)) return false
    this.#isFilling = true
    const { untilXact } = this.#stored
    const mine = this.#generation
    try {
      const before = this.#waiting
      const next = await this.#pages.next(this.#cursor)
      const page = next.events.length === 0 && untilXact !== null ? await this.#pages.last(this.#cursor, untilXact) : next
      if (!page) return false
      const wanted = page.events.filter((one) => this.#isWanted(webhook, one))
      await this.#pages.prepare(wanted)
      if (mine === this.#generation) this.#add(page, wanted)
      return this.#waiting > before || page.events.length > 0
    } finally {
      this.#isFilling = false
    }
  }

  /** Everything before it is recorded, or being recorded. */
  position(): CursorPosition {
    this.#settle()
    const isDone = ({ isRecorded, isBeingRecorded }: CursorEntry) => isRecorded || isBeingRecorded
    const first = this.#entries.find((one) => !isDone(one))
    const ahead = first ? this.#entries.slice(this.#entries.indexOf(first)) : []
    const at = first ? { xact: first.at.event.xact, id: first.at.event.id - 1 } : { xact: this.#cursor.xact, id: this.#cursor.id }
    const doneIds = [...this.#done, ...ahead.filter(isDone).map((one) => one.at.event.id)]
    return { ...at, doneIds, isOver: this.#isAtEnd && ahead.length === 0 }
  }

  /** Drops the queued events unless some are in flight; they are read again later. */
  release(): void {
    if (this.#entries.some(({ isTaken, isRecorded }) => isTaken && !isRecorded)) return
    const { xact, id, doneIds } = this.position()
    if (this.#entries.length === 0) return
    this.#generation++
    this.#cursor = { xact, id }
    this.#done = new Set(doneIds)
    this.#entries = []
    this.#waiting = 0
    this.#isAtEnd = false
  }

  #isWanted(webhook: StoredWebhook, { event }: BatchEvent): boolean {
    const { afterAt, beforeAt } = this.#stored
    return (
      hears(webhook, event) &&
      !this.#isBefore(BigInt(event.xact)) &&
      (afterAt === null || event.at > afterAt) &&
      (beforeAt === null || event.at < beforeAt)
    )
  }

  #add({ events, end }: EventBatch, wanted: readonly BatchEvent[]): void {
    for (const at of wanted) {
      if (!at.payload) continue
      const isRecorded = this.#done.delete(at.event.id)
      this.#entries.push({ at, isRecorded, isBeingRecorded: false, isTaken: isRecorded })
      if (!isRecorded) this.#waiting++
    }
    this.#cursor = end
    const { untilXact } = this.#stored
    if (untilXact !== null && (events.length === 0 || BigInt(end.xact) > BigInt(untilXact))) this.#isAtEnd = true
  }

  /** Drops the recorded events before the first that is not. */
  #settle(): void {
    const first = this.#entries.findIndex(({ isRecorded }) => !isRecorded)
    if (first !== 0) this.#entries = first < 0 ? [] : this.#entries.slice(first)
  }
}
