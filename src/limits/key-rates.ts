/**
 * The request rate of a key over all API processes. One that is alone counts in its own memory; where there are others each also asks
 * the database, at once for all requests of a key that came while it was asked before.
 */
import { LRUCache } from 'lru-cache'
import type { Clock } from '#base'
import { type Db, sql } from '#db'
import { type RateLimiter, type RateVerdict, verdictOf, windowMs } from './rate.ts'
import { keySubject } from './settings.ts'

/**
 * Of $3 requests at $2, as many as there is room for below $4 in $5 ms. Clocks of several machines differ: time never goes back, unless
 * what was counted is so far ahead ($6) that the clock was wrong.
 */
const takeTogether = sql<{ granted: number; used: number; oldestMs: number | null; latestMs: number }>`
  insert into request_rates as known (credential_id, at_ms, counts, granted)
  values ($1, array[$2::bigint], array[least($3::integer, $4::integer)], least($3::integer, $4::integer))
  on conflict (credential_id) do update
  set (at_ms, counts, granted) = (
    select kept.at_ms || case when given.granted > 0 then array[moment.at] else '{}' end,
           kept.counts || case when given.granted > 0 then array[given.granted] else '{}' end,
           given.granted
    from (
      select greatest($2::bigint, max(at)) as at
      from unnest(known.at_ms) as at
      where at <= $2::bigint + $6::bigint
    ) as moment,
    lateral (
      select coalesce(array_agg(entry.at order by entry.at), '{}') as at_ms, coalesce(array_agg(entry.count order by entry.at), '{}') as counts,
             coalesce(sum(entry.count), 0)::integer as used
      from unnest(known.at_ms, known.counts) as entry (at, count)
      where entry.at > moment.at - $5::bigint and entry.at <= moment.at
    ) as kept,
    lateral (select least($3::integer, greatest(0, $4::integer - kept.used)) as granted) as given
  )
  returning granted, coalesce((select sum(count) from unnest(counts) as count), 0)::integer as used, at_ms[1] as "oldestMs",
            greatest($2::bigint, at_ms[cardinality(at_ms)]) as "latestMs"`

const clocksDifferMs = 1000
/** Whoever asked has been answered by then that it takes too long. */
const mostWaitMs = 4000

export interface KeyRates {
  take(credentialId: number, limit: number | null): Promise<RateVerdict>
}

interface Asking {
  /** By the monotonic clock. */
  sinceMs: number
  limit: number
  answer: (verdict: RateVerdict) => void
  fail: (error: unknown) => void
}

interface Key {
  asking: Asking[]
  isAsked: boolean
  /** By the monotonic clock: so long nothing more is let through, whoever asks; `limit` is the one that was full. */
  full: { untilMs: number; limit: number } | undefined
}

export interface KeyRatesDeps {
  db: Db
  clock: Clock
  rateLimiter: RateLimiter
  /** Whether no other process serves the API. */
  isAlone: () => boolean
}

export function openKeyRates({ db, clock, rateLimiter, isAlone }: KeyRatesDeps): KeyRates {
  const keys = new LRUCache<number, Key>({ max: 50_000 })

  const together = (credentialId: number, limit: number): Promise<RateVerdict> => {
    const key = keys.get(credentialId) ?? { asking: [], isAsked: false, full: undefined }
    keys.set(credentialId, key)
    const nowMs = clock.monotonicMs()
    if (key.full && key.full.limit >= limit && nowMs < key.full.untilMs)
      return Promise.resolve(verdictOf({ limit, used: limit, allowed: false, freeInMs: key.full.untilMs - nowMs }, clock))
    // Of those that wait no more than `limit` can be let through.
    if (key.asking.length >= limit) return Promise.resolve(verdictOf({ limit, used: limit, allowed: false, freeInMs: windowMs }, clock))
    return new Promise((answer, fail) => {
      key.asking.push({ sinceMs: nowMs, limit, answer, fail })
      if (!key.isAsked) void ask(credentialId, key)
    })
  }

  /** Without those who have been waiting for so long that nobody waits for their answer. */
  const takeAsking = (key: Key): Asking[] => {
    const sinceMs = clock.monotonicMs() - mostWaitMs
    const all = key.asking.splice(0)
    for (const one of all) if (one.sinceMs < sinceMs) one.fail(new Error('the request rate could not be counted in time'))
    return all.filter((one) => one.sinceMs >= sinceMs)
  }

  const ask = async (credentialId: number, key: Key) => {
    key.isAsked = true
    for (let asked = takeAsking(key); asked.length > 0; asked = takeAsking(key)) {
      try {
        const limit = (asked.at(-1) as Asking).limit
        const beganMs = clock.monotonicMs()
        const taken = await db.first(takeTogether, [credentialId, clock.nowMs(), asked.length, limit, windowMs, clocksDifferMs])
        if (!taken) throw new Error('the request rate was not counted')
        const { granted, used, oldestMs, latestMs } = taken
        const freeInMs = oldestMs === null ? 0 : oldestMs + windowMs - latestMs
        key.full = used >= limit ? { untilMs: beganMs + freeInMs, limit } : undefined
        for (const [index, one] of asked.entries()) {
          const allowed = index < granted
          if (allowed) rateLimiter(keySubject(credentialId), limit, { atMs: beganMs })
          const usedThen = allowed ? used - granted + index + 1 : used
          one.answer(verdictOf({ limit, used: usedThen, allowed, freeInMs }, clock))
        }
      } catch (error) {
        for (const one of asked) one.fail(error)
      }
    }
    key.isAsked = false
  }

  return {
    async take(credentialId, limit) {
      const subject = keySubject(credentialId)
      if (limit === null || isAlone()) return rateLimiter(subject, limit)
      // What this process let through while it was alone counts, and what is full here is full.
      const here = rateLimiter(subject, limit, 'only look')
      return here.allowed ? together(credentialId, limit) : here
    },
  }
}
