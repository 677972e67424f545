/**
 * Buffers opens and clicks and writes them in batches off the request path. One second later, when the others of about the same time are
 * known, each is judged and written with its event. A killed process loses the last second or two.
 */
import { type Clock, emailIdTimeMs, type Ids, type Log, metrics } from '#base'
import { type Db, WriteQueue, type WriteQueueBounds } from '#db'
import { type NewTrackingEvent, type TrackingEvent, writeTrackingEvents } from './tracking-event-records.ts'

export interface TrackingEvents {
  /** Adds it to the buffer; never waits, never throws. For an email beyond its retention it is dropped. */
  note(trackingEvent: TrackingEvent): void
  /** Not written yet. */
  readonly waiting: number
  /** Writes the buffered ones. To be called before the database is closed. */
  stop(): Promise<void>
}

const dayMs = 86_400_000
/** How long an open or a click waits for its neighbours. */
const togetherMs = 1000
/** Approximate size of one without its texts. */
const trackingEventOctets = 500
/** Number of neighbours that one is compared with. */
const maxNeighbours = 20
const usual: Partial<WriteQueueBounds> = { entries: 50_000, batchEntries: 500, flushMs: 50, holdMs: togetherMs }

export function openTrackingEvents({
  db,
  clock,
  log,
  ids,
  keepEmailDays,
  bounds = {},
}: {
  db: Db
  clock: Clock
  log: Log
  ids: Ids
  keepEmailDays: number
  bounds?: Partial<WriteQueueBounds>
}): TrackingEvents {
  const queue = new WriteQueue<NewTrackingEvent>({
    clock,
    log,
    write: (batch) => writeTrackingEvents(db, batch),
    octetsOf: ({ url, token, userAgent }) => trackingEventOctets + url.length + token.length + userAgent.length,
    called: 'opens and clicks',
    onDrop: (trackingEvents) => metrics.trackingEventsDropped.inc({ reason: 'no room' }, trackingEvents),
    bounds: { ...usual, ...bounds },
  })
  const meet = openNeighbours(clock)
  return {
    note(trackingEvent) {
      const acceptedMs = emailIdTimeMs(trackingEvent.emailId)
      if (acceptedMs === undefined || acceptedMs < trackingEvent.at.getTime() - keepEmailDays * dayMs) return
      const noted = { ...trackingEvent, id: ids.token(12), isOneOfSeveral: false, isAfterHead: false }
      if (trackingEvent.kind === 'click') meet(noted)
      queue.push(noted)
    },
    get waiting() {
      return queue.waiting
    },
    stop: () => queue.stop(),
  }
}

/** Marks clicks of one email at about the same time; remembers each for one to two seconds. */
function openNeighbours(clock: Clock): (trackingEvent: NewTrackingEvent) => void {
  let older = new Map<string, NewTrackingEvent[]>()
  let newer = new Map<string, NewTrackingEvent[]>()
  let turnAtMs = clock.monotonicMs() + togetherMs
  return (trackingEvent) => {
    const nowMs = clock.monotonicMs()
    if (nowMs >= turnAtMs) {
      older = nowMs >= turnAtMs + togetherMs ? new Map() : newer
      newer = new Map()
      turnAtMs = nowMs + togetherMs
    }
    const mine = newer.get(trackingEvent.emailId) ?? []
    for (const other of [...(older.get(trackingEvent.emailId) ?? []), ...mine]) {
      const agoMs = trackingEvent.at.getTime() - other.at.getTime()
      if (other.url !== trackingEvent.url && Math.abs(agoMs) < togetherMs) trackingEvent.isOneOfSeveral = other.isOneOfSeveral = true
      if (other.url === trackingEvent.url && other.isHead && other.ipAddress === trackingEvent.ipAddress) trackingEvent.isAfterHead = true
    }
    if (mine.length < maxNeighbours) newer.set(trackingEvent.emailId, [...mine, trackingEvent])
  }
}
