/**
 * Reports whether a request to send would succeed now: the database commits, and its disk has free space. A read would not show it: a
 * primary that lost its standby answers reads and holds every commit.
 */
import { type Clock, type Log, pause } from '#base'
import { type Db, hasRoomToWrite, saysDiskIsFull, sql } from '#db'

const answerWithinMs = 2000
const logOutageEveryMs = 1000
/** A disk check writes one MiB, and unauthenticated callers may ask as often as they like. */
const lookEveryMs = 5000
/** Faster while the disk is full, to notice free space early. */
const lookWhileFullEveryMs = 1000
/** Each commit is a flush, and unauthenticated callers may ask as often as they like. */
const commitEveryMs = 1000

/** A WAL record that no table sees: its commit waits for the disk and for the standbys like every other. */
const commitARecord = sql`
  select pg_logical_emit_message(true, 'postrider', '')`

export type DatabaseState = 'reachable' | 'not reachable' | 'full'

export interface Readiness {
  look(): Promise<DatabaseState>
  /** Takes the error of a failed request, so that a full disk is known at once. */
  recordError(error: unknown): void
  /** Takes a request that failed because the database is away: thousands a second would hide all other lines of the log. */
  recordOutage(error: unknown): void
}

export function openReadiness({ db, clock, log }: { db: Db; clock: Clock; log: Log }): Readiness {
  let isFull = false
  let lookedAtMs = Number.NEGATIVE_INFINITY
  let looking: Promise<void> | undefined
  let failedRequests = 0
  let loggedAtMs = Number.NEGATIVE_INFINITY
  let committedAtMs = Number.NEGATIVE_INFINITY
  let committing: Promise<unknown> | undefined

  const found = (full: boolean) => {
    if (full && !isFull) log.error('the disk of the database is full: all writes fail')
    if (!full && isFull) log.info('the disk of the database has free space again')
    isFull = full
    lookedAtMs = clock.monotonicMs()
  }
  const lookAtDisk = () => {
    if (clock.monotonicMs() - lookedAtMs < (isFull ? lookWhileFullEveryMs : lookEveryMs)) return Promise.resolve()
    looking ??= hasRoomToWrite(db)
      .then((room) => found(!room))
      .finally(() => {
        looking = undefined
      })
    return looking
  }

  /** Concurrent callers share one commit; otherwise they would fill the connection queue and the database would appear unreachable. */
  const tryToCommit = (): Promise<unknown> => {
    if (clock.monotonicMs() - committedAtMs < commitEveryMs) return Promise.resolve()
    const beganMs = clock.monotonicMs()
    committing ??= db
      .rows(commitARecord)
      .then(() => {
        committedAtMs = beganMs
      })
      .finally(() => {
        committing = undefined
      })
    return committing
  }

  return {
    async look() {
      const answered = Promise.all([tryToCommit(), lookAtDisk()]).then(
        (): DatabaseState => (isFull ? 'full' : 'reachable'),
        (error: unknown): DatabaseState => {
          log.warn({ err: error }, 'the database did not respond to a readiness check')
          return 'not reachable'
        },
      )
      const stop = new AbortController()
      const late = pause(clock, answerWithinMs, stop.signal).then((): DatabaseState => 'not reachable')
      return Promise.race([answered, late]).finally(() => stop.abort())
    },
    recordError(error) {
      if (saysDiskIsFull(error)) found(true)
    },
    recordOutage(error) {
      failedRequests++
      if (clock.monotonicMs() - loggedAtMs < logOutageEveryMs) return
      log.error({ requests: failedRequests, reason: (error as Error).message }, 'requests failed because the database is unreachable')
      loggedAtMs = clock.monotonicMs()
      failedRequests = 0
    },
  }
}
