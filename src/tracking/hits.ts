/**
 * Buffers opens and clicks and writes them in batches off the request path. One second later, when the others of about the same time are
 * known, each is judged and written with its event. A killed process loses the last second or two.
 */
import { type Clock, emailIdTimeMs, type Ids, type Log, metrics } from '#base'
import { type Db, openWriteQueue, type WriteQueueBounds } from '#db'
import { type Hit, type NotedHit, writeHits } from './hit-records.ts'

export interface Hits {
  /** Adds it to the buffer; never waits, never throws. For an email beyond its retention it is dropped. */
  note(hit: Hit): void
  /** Not written yet. */
  readonly waiting: number
  /** Writes the buffered ones. To be called before the database is closed. */
  stop(): Promise<void>
}

const dayMs = 86_400_000
/** How long an open or a click waits for its neighbours. */
const togetherMs = 1000
/** Approximate size of one without its texts. */
const hitOctets = 500
/** Number of neighbours that one is compared with. */
const mostNeighbours = 20
const usual: Partial<WriteQueueBounds> = { entries: 50_000, batchEntries: 500, flushMs: 50, holdMs: togetherMs }

export function openHits({
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
}): Hits {
  const queue = openWriteQueue<NotedHit>({
    clock,
    log,
    write: (batch) => writeHits(db, batch),
    octetsOf: ({ url, token, userAgent }) => hitOctets + url.length + token.length + userAgent.length,
    called: 'opens and clicks',
    onDrop: (hits) => metrics.hitsDropped.inc({ why: 'no room' }, hits),
    bounds: { ...usual, ...bounds },
  })
  const meet = openNeighbours(clock)
  return {
    note(hit) {
      const acceptedMs = emailIdTimeMs(hit.emailId)
      if (acceptedMs === undefined || acceptedMs < hit.at.getTime() - keepEmailDays * dayMs) return
      const noted = { ...hit, id: ids.token(12), isOneOfSeveral: false, isAfterHead: false }
      if (hit.kind === 'click') meet(noted)
      queue.push(noted)
    },
    get waiting() {
      return queue.waiting
    },
    stop: () => queue.stop(),
  }
}

/** Marks clicks of one email at about the same time; remembers each for one to two seconds. */
function openNeighbours(clock: Clock): (hit: NotedHit) => void {
  let older = new Map<string, NotedHit[]>()
  let newer = new Map<string, NotedHit[]>()
  let turnAtMs = clock.monotonicMs() + togetherMs
  return (hit) => {
    const nowMs = clock.monotonicMs()
    if (nowMs >= turnAtMs) {
      older = nowMs >= turnAtMs + togetherMs ? new Map() : newer
      newer = new Map()
      turnAtMs = nowMs + togetherMs
    }
    const mine = newer.get(hit.emailId) ?? []
    for (const other of [...(older.get(hit.emailId) ?? []), ...mine]) {
      const agoMs = hit.at.getTime() - other.at.getTime()
      if (other.url !== hit.url && Math.abs(agoMs) < togetherMs) hit.isOneOfSeveral = other.isOneOfSeveral = true
      if (other.url === hit.url && other.isHead && other.ipAddress === hit.ipAddress) hit.isAfterHead = true
    }
    if (mine.length < mostNeighbours) newer.set(hit.emailId, [...mine, hit])
  }
}
