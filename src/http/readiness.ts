/**
 * Reports whether a request to send would succeed now: the database commits, and its disk has free space. A read would not show it: a
 * primary that lost its standby answers reads and holds every commit.
 */
import { type Clock, type Log, pause } from '#base'
import { commitRecord, type Db, hasRoomToWrite, saysDiskIsFull } from '#db'

const answerWithinMs = 2000
const logOutageEveryMs = 1000
/** A disk check writes one MiB, and unauthenticated callers may ask as often as they like. */
const lookEveryMs = 5000
/** Faster while the disk is full, to notice free space early. */
const lookWhileFullEveryMs = 1000
/** Each commit is a flush, and unauthenticated callers may ask as often as they like. */
const commitEveryMs = 1000

export type DatabaseState = 'reachable' | 'not reachable' | 'full'

export interface Readiness {
  look(): Promise<DatabaseState>
  /** Takes the error of a failed request, so that a full disk is known at once. */
  recordError(error: unknown): void
  /** Takes a request that failed because the database is away: thousands a second would hide all other lines of the log. */
  recordOutage(error: unknown): void
}

export const openReadiness = (deps: ReadinessDeps): Readiness => new DatabaseReadiness(deps)

interface ReadinessDeps {
  db: Db
  clock: Clock
  log: Log
}

class DatabaseReadiness implements Readiness {
  readonly #db: Db
  readonly #clock: Clock
  readonly #log: Log
  #isFull = false
  #lookedAtMs = Number.NEGATIVE_INFINITY
  #looking: Promise<void> | undefined
  #failedRequests = 0
  #loggedAtMs = Number.NEGATIVE_INFINITY
  #committedAtMs = Number.NEGATIVE_INFINITY
  #committing: Promise<unknown> | undefined

  constructor({ db, clock, log }: ReadinessDeps) {
    this.#db = db
    this.#clock = clock
    this.#log = log
  }

  async look(): Promise<DatabaseState> {
    const answered = Promise.all([this.#tryToCommit(), this.#lookAtDisk()]).then(
      (): DatabaseState => (this.#isFull ? 'full' : 'reachable'),
      (error: unknown): DatabaseState => {
        this.#log.warn({ err: error }, 'the database did not respond to a readiness check')
        return 'not reachable'
      },
    )
    const stop = new AbortController()
    const late = pause(this.#clock, answerWithinMs, stop.signal).then((): DatabaseState => 'not reachable')
    return Promise.race([answered, late]).finally(() => stop.abort())
  }

  recordError(error: unknown): void {
    if (saysDiskIsFull(error)) this.#found(true)
  }

  recordOutage(error: unknown): void {
    this.#failedRequests++
    if (this.#clock.monotonicMs() - this.#loggedAtMs < logOutageEveryMs) return
    const line = { requests: this.#failedRequests, reason: (error as Error).message }
    this.#log.error(line, 'requests failed because the database is unreachable')
    this.#loggedAtMs = this.#clock.monotonicMs()
    this.#failedRequests = 0
  }

  /** Concurrent callers share one commit; otherwise they would fill the connection queue and the database would appear unreachable. */
  #tryToCommit(): Promise<unknown> {
    const beganMs = this.#clock.monotonicMs()
    if (beganMs - this.#committedAtMs < commitEveryMs) return Promise.resolve()
    this.#committing ??= commitRecord(this.#db)
      .then(() => {
        this.#committedAtMs = beganMs
      })
      .finally(() => {
        this.#committing = undefined
      })
    return this.#committing
  }

  #lookAtDisk(): Promise<void> {
    if (this.#clock.monotonicMs() - this.#lookedAtMs < (this.#isFull ? lookWhileFullEveryMs : lookEveryMs)) return Promise.resolve()
    this.#looking ??= hasRoomToWrite(this.#db)
      .then((room) => this.#found(!room))
      .finally(() => {
        this.#looking = undefined
      })
    return this.#looking
  }

  #found(isFull: boolean): void {
    if (isFull && !this.#isFull) this.#log.error('the disk of the database is full: all writes fail')
    if (!isFull && this.#isFull) this.#log.info('the disk of the database has free space again')
    this.#isFull = isFull
    this.#lookedAtMs = this.#clock.monotonicMs()
  }
}
