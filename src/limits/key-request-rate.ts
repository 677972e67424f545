/**
 * The request rate of a key over all API processes. A process that is alone counts in memory. With others it also queries the database, in
 * one query for all requests of a key that arrived during the previous query.
 */
import { LRUCache } from 'lru-cache'
import { atMost, type Clock } from '#base'
import { type Db, sql } from '#db'
import { keyLimitScope } from './limit-overrides.ts'
import { type RateLimiter, type RateVerdict, type Taking, verdictOf, windowMs } from './request-rate.ts'

/**
 * Of requests at $2, in order, allows those that arrive while fewer than $4 units were allowed within $5 ms. $3 are the units before each
 * and $8 those up to and including it, $7 all that count in any case, $9 the units allowed if there were no units before. The clocks of
 * several machines differ: time never goes back, unless the counted time is so far ahead ($6) that the clock was wrong.
 */
const takeTogether = sql<{ granted: number; used: number; oldestMs: number | null; latestMs: number }>`
  insert into request_rates as known (credential_id, at_ms, counts, granted)
  values ($1, array[$2::bigint], array[$9::integer], $9::integer)
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
    lateral (
      select greatest($7::integer, coalesce(max(upto), 0)) as granted
      from unnest($3::integer[], $8::integer[]) as requests (before, upto)
      where kept.used + before < $4::integer
    ) as given
  )
  returning granted, coalesce((select sum(count) from unnest(counts) as count), 0)::integer as used,
            (select min(at)
             from (select at, sum(count) over (order by nth desc) - count as later
                   from unnest(at_ms, counts) with ordinality as entry (at, count, nth)) as entries
             where later < $4::integer) as "oldestMs",
            greatest($2::bigint, at_ms[cardinality(at_ms)]) as "latestMs"`

const clocksDifferMs = 1000
/** By then the caller has received the response that it takes too long. */
const maxWaitMs = 4000

export interface KeyRates {
  /** `taking`: as in RateLimiter. */
  take(credentialId: number, limit: number | null, taking?: Pick<Taking, 'units' | 'afterwards'>): Promise<RateVerdict>
}

interface WaitingRequest {
  units: number
  /** The request was already allowed, and counts in any case. */
  afterwards: boolean
  /** By the monotonic clock. */
  sinceMs: number
  limit: number
  answer: (verdict: RateVerdict) => void
  fail: (error: unknown) => void
}

interface Key {
  waiting: WaitingRequest[]
  isCounting: boolean
  /** By the monotonic clock: no request is allowed before this time; `limit` is the limit that was reached. */
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
  const keys = new LRUCache<number, Key>(atMost(50_000))

  const together = (credentialId: number, limit: number, units: number, afterwards: boolean): Promise<RateVerdict> => {
    const key = keys.get(credentialId) ?? { waiting: [], isCounting: false, full: undefined }
    keys.set(credentialId, key)
    const nowMs = clock.monotonicMs()
    if (!afterwards && key.full && key.full.limit >= limit && nowMs < key.full.untilMs)
      return Promise.resolve(verdictOf({ limit, used: limit, allowed: false, freeInMs: key.full.untilMs - nowMs }, clock))
    // At most `limit` of the waiting requests can be allowed.
    if (!afterwards && key.waiting.length >= limit)
      return Promise.resolve(verdictOf({ limit, used: limit, allowed: false, freeInMs: windowMs }, clock))
    return new Promise((answer, fail) => {
      key.waiting.push({ sinceMs: nowMs, limit, units, afterwards, answer, fail })
      if (!key.isCounting) void countAll(credentialId, key)
    })
  }

  const countAll = async (credentialId: number, key: Key) => {
    key.isCounting = true
    for (let requests = takeWaiting(key, clock); requests.length > 0; requests = takeWaiting(key, clock)) {
      try {
        await count(credentialId, key, requests)
      } catch (error) {
        for (const one of requests) one.fail(error)
      }
    }
    key.isCounting = false
  }

  /** Counts the requests in one query and answers each. */
  const count = async (credentialId: number, key: Key, requests: readonly WaitingRequest[]) => {
    const limit = (requests.at(-1) as WaitingRequest).limit
    const beganMs = clock.monotonicMs()
    const { before, upto, inAnyCase, ofNone } = sumsOf(requests, limit)
    const nowMs = clock.nowMs()
    const taken = await db.first(takeTogether, [credentialId, nowMs, before, limit, windowMs, clocksDifferMs, inAnyCase, upto, ofNone])
    if (!taken) throw new Error('failed to count the request rate')
    const { granted, used, oldestMs, latestMs } = taken
    const freeInMs = oldestMs === null ? 0 : oldestMs + windowMs - latestMs
    key.full = used >= limit ? { untilMs: beganMs + freeInMs, limit } : undefined
    for (const [index, { units, afterwards, answer }] of requests.entries()) {
      const uptoThis = upto[index] as number
      const allowed = uptoThis <= granted
      if (allowed) rateLimiter(keyLimitScope(credentialId), limit, { atMs: beganMs, units, ...(afterwards ? { afterwards } : {}) })
      answer(verdictOf({ limit, used: allowed ? used - granted + uptoThis : used, allowed, freeInMs }, clock))
    }
  }

  return {
    async take(credentialId, limit, { units = 1, afterwards } = {}) {
      const scope = keyLimitScope(credentialId)
      if (limit === null || isAlone()) return rateLimiter(scope, limit, { units, ...(afterwards ? { afterwards } : {}) })
      // Requests that this process allowed while alone still count, and a limit reached here is reached.
      const here = rateLimiter(scope, limit, 'only look')
      return here.allowed || afterwards ? together(credentialId, limit, units, afterwards === true) : here
    },
  }
}

/** The waiting requests of a key, without those whose callers have been answered because they waited too long. */
function takeWaiting(key: Key, clock: Clock): WaitingRequest[] {
  const sinceMs = clock.monotonicMs() - maxWaitMs
  const all = key.waiting.splice(0)
  for (const one of all) if (one.sinceMs < sinceMs) one.fail(new Error('timed out counting the request rate'))
  // Requests that count in any case first, then the light ones: a heavy request takes the place of many.
  const weight = ({ afterwards, units }: WaitingRequest) => (afterwards ? 0 : units)
  return all.filter((one) => one.sinceMs >= sinceMs).sort((one, other) => weight(one) - weight(other))
}

/** For requests in order: the units before each, and up to and including it; those that count in any case come first. */
function sumsOf(
  requests: readonly WaitingRequest[],
  limit: number,
): { before: number[]; upto: number[]; inAnyCase: number; ofNone: number } {
  const before: number[] = []
  const upto: number[] = []
  let sum = 0
  let inAnyCase = 0
  let ofNone = 0
  for (const { units, afterwards } of requests) {
    before.push(sum)
    const isLetThrough = afterwards || sum < limit
    sum += Math.min(units, limit)
    upto.push(sum)
    if (afterwards) inAnyCase = sum
    if (isLetThrough) ofNone = sum
  }
  return { before, upto, inAnyCase, ofNone }
}
