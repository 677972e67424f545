/** Whether a request that writes would succeed now: the database answers, and its disk has room. */
import { type Clock, type Log, pause } from '#base'
import { type Db, hasRoomToWrite, saysDiskIsFull, sql } from '#db'

const answerWithinMs = 2000
/** A look at the disk writes a mebibyte; strangers may ask as often as they like. */
const lookEveryMs = 5000
/** Somebody waits for the room to come back. */
const lookWhileFullEveryMs = 1000

const ping = sql<{ one: number }>`
  select 1 as one`

export type Standing = 'reachable' | 'not reachable' | 'full'

export interface Readiness {
  look(): Promise<Standing>
  /** What a request failed with: a full disk is known at once. */
  note(error: unknown): void
}

export function openReadiness({ db, clock, log }: { db: Db; clock: Clock; log: Log }): Readiness {
  let isFull = false
  let lookedAtMs = Number.NEGATIVE_INFINITY
  let looking: Promise<void> | undefined
  let asking: Promise<unknown> | undefined

  const found = (full: boolean) => {
    if (full && !isFull) log.error('the disk of the database is full: no request that writes can succeed')
    if (!full && isFull) log.info('the disk of the database has room again')
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

  /** One question for all who ask at once: else a crowd of them would fill the queue for the database, and be told that it is not reachable. */
  const askDatabase = () => {
    asking ??= db.first(ping).finally(() => {
      asking = undefined
    })
    return asking
  }

  return {
    async look() {
      const answered = Promise.all([askDatabase(), lookAtDisk()]).then(
        (): Standing => (isFull ? 'full' : 'reachable'),
        (error: unknown): Standing => {
          log.warn({ err: error }, 'the database did not answer a readiness check')
          return 'not reachable'
        },
      )
      const stop = new AbortController()
      const late = pause(clock, answerWithinMs, stop.signal).then((): Standing => 'not reachable')
      return Promise.race([answered, late]).finally(() => stop.abort())
    },
    note(error) {
      if (saysDiskIsFull(error)) found(true)
    },
  }
}
