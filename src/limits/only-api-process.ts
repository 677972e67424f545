/**
 * Detects whether a process is the only one of the installation that serves the API, by a lock that each process holds while its
 * connection lives.
 */
import { type Clock, type Log, pause, startLoop } from '#base'
import { type Db, type DbSession, sql } from '#db'

const presenceLock = 7_305_020

const join = sql`
  select pg_advisory_lock_shared($1::bigint)`

const countJoined = sql<{ joined: number }>`
  select count(*) as joined
  from pg_locks
  where locktype = 'advisory' and granted and objsubid = 1 and classid = 0 and objid = $1::bigint::oid
    and database = (select oid from pg_database where datname = current_database())`

const lookEveryMs = 500
/** Without a request for this long, the process stops looking; the next request starts it again. */
const askedWithinMs = 5000
const asleepMs = 60_000
/** How long the result of a check is valid: a process that started meanwhile is seen by then. */
const believedMs = 1500
/** After the last other process has gone, the requests it allowed still count for this long. */
const aloneAfterMs = 1000

export interface Presence {
  isAlone(): boolean
  stop(): Promise<void>
}

/**
 * Resolves when all other processes know of this one and the requests they allowed alone no longer count: at once without others,
 * otherwise after 2.5 seconds.
 */
export async function openPresence(deps: { db: Db; clock: Clock; log: Log; ending?: AbortSignal }): Promise<Presence> {
  const { db, clock, log, ending } = deps
  let session: DbSession | undefined
  let believedUntilMs = 0
  let aloneSinceMs: number | undefined
  let askedMs = clock.monotonicMs()

  const look = async (): Promise<boolean> => {
    if (session?.lost.aborted) session = undefined
    if (!session) {
      // A process that started while this one was disconnected does not know of it. The requests it allowed alone no longer count by the
      // time this one is alone again.
      aloneSinceMs = undefined
      const opened = await db.session()
      await opened.run(join, [presenceLock]).catch(async (error: unknown) => {
        await opened.close()
        throw error
      })
      session = opened
    }
    const beganMs = clock.monotonicMs()
    // Another process may have come and gone in a time without checks.
    if (beganMs >= believedUntilMs) aloneSinceMs = undefined
    const isOnly = (await session.first(countJoined, [presenceLock]))?.joined === 1
    aloneSinceMs = isOnly ? (aloneSinceMs ?? beganMs) : undefined
    believedUntilMs = beganMs + believedMs
    return isOnly
  }

  if (await look()) aloneSinceMs = clock.monotonicMs() - aloneAfterMs
  else await pause(clock, believedMs + aloneAfterMs, ending)
  const looking = startLoop({ clock, log, name: 'finding other API processes', everyMs: lookEveryMs }, async () => {
    await look()
    return clock.monotonicMs() - askedMs < askedWithinMs ? lookEveryMs : asleepMs
  })
  return {
    isAlone: () => {
      const nowMs = clock.monotonicMs()
      if (nowMs - askedMs >= askedWithinMs) looking.nudge()
      askedMs = nowMs
      return (
        aloneSinceMs !== undefined && session?.lost.aborted === false && nowMs < believedUntilMs && nowMs - aloneSinceMs >= aloneAfterMs
      )
    },
    async stop() {
      await looking.stop()
      await session?.close()
    },
  }
}
