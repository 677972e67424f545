/** Reports whether a write would succeed now: the database answers, and its disk has free space. */
import { type Clock, type Log, pause } from '#base'
import { type Db, hasRoomToWrite, saysDiskIsFull, sql } from '#db'

const answerWithinMs = 2000
/** A disk check writes one MiB, and unauthenticated callers may ask as often as they like. */
const lookEveryMs = 5000
/** Faster while the disk is full, to notice free space early. */
const lookWhileFullEveryMs = 1000

const ping = sql<{ one: number }>`
  select 1 as one`

export type DatabaseState = 'reachable' | 'not reachable' | 'full'

export interface Readiness {
  look(): Promise<DatabaseState>
  /** Takes the error of a failed request, so that a full disk is known at once. */
  recordError(error: unknown): void
}

export function openReadiness({ db, clock, log }: { db: Db; clock: Clock; log: Log }): Readiness {
  let isFull = false
  let lookedAtMs = Number.NEGATIVE_INFINITY
  let looking: Promise<void> | undefined
  let asking: Promise<unknown> | undefined

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

  /** Concurrent callers share one query; otherwise they would fill the connection queue and the database would appear unreachable. */
  const askDatabase = () => {
    asking ??= db.first(ping).finally(() => {
      asking = undefined
    })
    return asking
  }

  return {
    async look() {
      const answered = Promise.all([askDatabase(), lookAtDisk()]).then(
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
  }
}
