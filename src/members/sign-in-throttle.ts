/**
 * Counts failed sign-ins of the last quarter of an hour, shared by all processes. A failure writes, and so does a sign-in without failure,
 * so that timing does not reveal other members with the same address. Attempts beyond the limit are refused without checking the guess,
 * even if they are concurrent.
 */
import { type Clock, Refusal } from '#base'
import { type Db, sql } from '#db'
import { tokenHashOf } from './manage-members.ts'

/** A key under which an attempt is counted, and its limit. Infinite: counted without limit. */
export interface FailureLimit {
  name: string
  maximum: number
  /** A lower limit, in force once another counted name has this many failures. */
  fewer?: { when: string; failed: number; maximum: number }
}
export type FailureLimits = readonly FailureLimit[]

const windowMs = 15 * 60_000

interface FailureCount {
  nameHash: Buffer
  count: number
  since: Date
}

const current = sql<FailureCount>`
  select name_hash as "nameHash", count, since
  from sign_in_failures
  where name_hash = any($1) and since > $2`

/** In a fixed order, so that concurrent updates cannot deadlock. */
const countFailure = sql<FailureCount>`
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

export type SignInThrottle = ReturnType<typeof openSignInThrottle>

export function openSignInThrottle(db: Db, clock: Clock) {
  const hashes = (counts: FailureLimits) => counts.map(({ name }) => tokenHashOf(name))
  const windowStart = () => new Date(clock.nowMs() - windowMs)
  const refuseAbove = (failed: readonly FailureCount[], counts: FailureLimits, more: number) => {
    const failedFor = (name: string) => failed.find(({ nameHash }) => nameHash.equals(tokenHashOf(name)))
    for (const { name, maximum, fewer } of counts) {
      const found = failedFor(name)
      const allowed = fewer && (failedFor(fewer.when)?.count ?? 0) >= fewer.failed ? fewer.maximum : maximum
      if (!found || found.count < allowed + more) continue
      const waitMs = found.since.getTime() + windowMs - clock.nowMs()
      throw new Refusal('rate_limit_exceeded', {
        message: 'too many failed sign-in attempts',
        retryAfterSeconds: Math.max(1, Math.ceil(waitMs / 1000)),
        shouldRetry: false,
      })
    }
  }
  const refuseIfTooMany = async (counts: FailureLimits) => refuseAbove(await db.rows(current, [hashes(counts), windowStart()]), counts, 0)

  const add = (counts: readonly { name: string }[]) =>
    db.rows(countFailure, [counts.map(({ name }) => tokenHashOf(name)), new Date(clock.nowMs()), windowStart()])

  return {
    refuseIfTooMany,
    allow: (counts: FailureLimits): Promise<boolean> =>
      refuseIfTooMany(counts).then(
        () => true,
        (error: unknown) => {
          if (error instanceof Refusal) return false
          throw error
        },
      ),
    /** Counts a failure without refusing. */
    count: async (names: readonly string[]) => void (await add(names.map((name) => ({ name })))),
    /** Counts a failure; refuses if it exceeds a limit, so that the guess is not answered. */
    async note(counts: FailureLimits) {
      refuseAbove(await add(counts), counts, 1)
    },
  }
}
