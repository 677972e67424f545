/**
 * Failed attempts to sign in of the last quarter of an hour, counted for all processes together. Only a failure writes, and a
 * sign-in without one, so that its time does not tell whether another member has the same address. Whoever comes after the
 * last that is allowed is told nothing about the guess, however many try at the same time.
 */
import { type Clock, Refusal } from '#base'
import { type Db, sql } from '#db'
import { hashOf } from './records.ts'

/** What an attempt counts for, and how many of that may fail. Infinite: it is only counted. */
export interface Count {
  name: string
  most: number
  /** Fewer may fail once so many have failed for what has this other name, which is among the counts too. */
  fewer?: { when: string; failed: number; most: number }
}
export type Counts = readonly Count[]

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

export type Failures = ReturnType<typeof openFailures>

export function openFailures(db: Db, clock: Clock) {
  const hashes = (counts: Counts) => counts.map(({ name }) => hashOf(name))
  const windowStart = () => new Date(clock.nowMs() - windowMs)
  const refuseAbove = (failed: readonly Failed[], counts: Counts, more: number) => {
    const failedFor = (name: string) => failed.find(({ nameHash }) => nameHash.equals(hashOf(name)))
    for (const { name, most, fewer } of counts) {
      const found = failedFor(name)
      const allowed = fewer && (failedFor(fewer.when)?.count ?? 0) >= fewer.failed ? fewer.most : most
      if (!found || found.count < allowed + more) continue
      const waitMs = found.since.getTime() + windowMs - clock.nowMs()
      throw new Refusal('rate_limit_exceeded', {
        message: 'too many failed attempts to sign in',
        retryAfterSeconds: Math.max(1, Math.ceil(waitMs / 1000)),
        shouldRetry: false,
      })
    }
  }
  const refuseIfTooMany = async (counts: Counts) => refuseAbove(await db.rows(current, [hashes(counts), windowStart()]), counts, 0)

  const add = (counts: readonly { name: string }[]) =>
    db.rows(countFailure, [counts.map(({ name }) => hashOf(name)), new Date(clock.nowMs()), windowStart()])

  return {
    refuseIfTooMany,
    allow: (counts: Counts): Promise<boolean> =>
      refuseIfTooMany(counts).then(
        () => true,
        (error: unknown) => {
          if (error instanceof Refusal) return false
          throw error
        },
      ),
    /** Counts a failure that the caller is not told of. */
    count: async (names: readonly string[]) => void (await add(names.map((name) => ({ name })))),
    /** Counts a failure; refuses when it was one too many, so that nobody learns that the guess was wrong. */
    async note(counts: Counts) {
      refuseAbove(await add(counts), counts, 1)
    },
  }
}
