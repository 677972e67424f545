/** Logs once that a start waits for locks of other sessions, and which sessions these are. */
import { type Log, pause, systemClock } from '#base'
import type { Db, Queryable } from './queryable.ts'
import { sql } from './sql-tag.ts'

const lookEveryMs = 500

const ownPid = sql<{ pid: number }>`
  select pg_backend_pid() as pid`

/** A prepared transaction has the pid 0. */
const blockersOf = sql<{ pid: number; application: string }>`
  select blocker.pid, coalesce(activity.application_name, '') as application
  from (select distinct unnest(pg_blocking_pids($1)) as pid) as blocker
  left join pg_stat_activity as activity on activity.pid = blocker.pid
  order by blocker.pid`

export class LockWaitReport {
  readonly #db: Db
  readonly #log: Log
  #isLogged = false

  constructor(db: Db, log: Log) {
    this.#db = db
    this.#log = log
  }

  /** Runs `work`, whose statements are all on the connection of `on`. */
  async during<T>(on: Queryable, work: () => Promise<T>): Promise<T> {
    const pid = (await on.first(ownPid))?.pid
    const ended = new AbortController()
    void this.#watch(pid, ended.signal)
    return work().finally(() => ended.abort())
  }

  /** On another connection, because that of the work waits. */
  async #watch(pid: number | undefined, ended: AbortSignal): Promise<void> {
    while (!this.#isLogged) {
      await pause(systemClock, lookEveryMs, ended)
      if (ended.aborted) return
      const blockers = await this.#db.rows(blockersOf, [pid]).catch(() => [])
      if (blockers.length === 0 || this.#isLogged) continue
      this.#isLogged = true
      this.#log.warn({ blockers }, 'the migrations wait for locks of other database sessions')
    }
  }
}
