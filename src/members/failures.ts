/**
 * Failed attempts to sign in of the last quarter of an hour, counted for all processes together. Only a failure writes. Whoever comes after the
 * last that is allowed is told nothing about the guess, however many try at the same time.
 */
import { type Clock, Refusal } from '#base'
import { type Db, sql } from '#db'
import { hashOf } from './records.ts'

/** What an attempt counts for, and how many of that may fail. */
export type Counts = readonly (readonly [name: string, most: number])[]

const windowMs = 15 * 60_000

interface Failed {
  nameHash: Buffer
  count: number
  since: Date
}

const current = sql<Failed>`
  select name_hash as "nameHash", count, since
  from sign_in_failures
  where name_hash = any($1) and since > $2`

/** In one order, so that no two wait for each other. */
const countFailure = sql<Failed>`
  insert into sign_in_failures (name_hash, count, since)
  select name_hash, 1, $2
  from unnest($1::bytea[]) as given (name_hash)
  order by name_hash
  on conflict (name_hash) do update
  set count = case when sign_in_failures.since > $3 then sign_in_failures.count + 1 else 1 end,
    since = case when sign_in_failures.since > $3 then sign_in_failures.since else excluded.since end
  returning name_hash as "nameHash", count, since`

const dropOld = sql`
  delete from sign_in_failures
  where since <= $1`

export const dropOldFailures = (db: Db, nowMs: number): Promise<number> => db.run(dropOld, [new Date(nowMs - windowMs)])

export function openFailures(db: Db, clock: Clock) {
  const hashes = (counts: Counts) => counts.map(([name]) => hashOf(name))
  const windowStart = () => new Date(clock.nowMs() - windowMs)

  const refuseAbove = (failed: readonly Failed[], counts: Counts, more: number) => {
    for (const [name, most] of counts) {
      const found = failed.find(({ nameHash }) => nameHash.equals(hashOf(name)))
      if (!found || found.count < most + more) continue
      const waitMs = found.since.getTime() + windowMs - clock.nowMs()
      throw new Refusal('rate_limit_exceeded', {
        message: 'too many failed attempts to sign in',
        retryAfterSeconds: Math.max(1, Math.ceil(waitMs / 1000)),
        shouldRetry: false,
      })
    }
  }
  const refuseIfTooMany = async (counts: Counts) => refuseAbove(await db.rows(current, [hashes(counts), windowStart()]), counts, 0)

  return {
    refuseIfTooMany,
    /** Counts a failure; refuses when it was one too many, so that nobody learns that the guess was wrong. */
    async note(counts: Counts) {
      refuseAbove(await db.rows(countFailure, [hashes(counts), new Date(clock.nowMs()), windowStart()]), counts, 1)
    },
  }
}
