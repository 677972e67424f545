/**
 * Elapsed time, which decides the lifetime of idempotency keys: a clock that is set ahead expires no key. Marks record the wall clock's
 * readings during the last 24 elapsed hours, so that a key accepted in them is recognised by its date, independent of the clock's current
 * reading.
 */
import type { Clock } from '#base'
import { type Db, sql } from '#db'

export const idempotencyTtlMs = 24 * 3_600_000
export const markEveryMs = 60_000

const lastMark = sql<{ elapsedMs: number; at: Date }>`
  select elapsed_ms as "elapsedMs", at
  from elapsed_marks
  order by elapsed_ms desc
  limit 1`

const addMark = sql`
  insert into elapsed_marks (elapsed_ms, at)
  values ($1, $2)
  on conflict (elapsed_ms) do nothing`

/** The last mark before the 24 hours stays: any key accepted before the next mark is younger than it. */
const deleteMarks = sql`
  delete from elapsed_marks
  where elapsed_ms < (select max(elapsed_ms) from elapsed_marks where elapsed_ms <= $1)`

/** Keys accepted since then have not expired by elapsed time; null before the first mark. */
export const beforeMarks = sql.part`(select min(at) - interval '1 millisecond' from elapsed_marks)`

/**
 * Sets a mark; to be called every minute. While this process runs, its monotonic clock measures the time since its last mark. If another
 * process set the last mark, or no process ran, the wall clock counts for at most the interval between two marks.
 */
export function openMarking({ db, clock }: { db: Db; clock: Clock }): () => Promise<void> {
  let own: { elapsedMs: number; monotonicMs: number } | undefined
  return async () => {
    const nowMs = clock.nowMs()
    const monotonicMs = clock.monotonicMs()
    const last = await db.first(lastMark)
    const byWallMs = last ? last.elapsedMs + Math.min(Math.max(0, nowMs - last.at.getTime()), markEveryMs) : 0
    const elapsedMs = Math.round(own ? Math.max(last?.elapsedMs ?? 0, own.elapsedMs + monotonicMs - own.monotonicMs) : byWallMs)
    await db.run(addMark, [elapsedMs, new Date(nowMs)])
    own = { elapsedMs, monotonicMs }
    await db.run(deleteMarks, [elapsedMs - idempotencyTtlMs])
  }
}
