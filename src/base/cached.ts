/**
 * Cache for frequent lookups: one query at a time per key, kept for less than the second within which a change must be in force in every
 * process.
 */
import { LRUCache } from 'lru-cache'
import { atMost } from './at-most.ts'
import type { Clock } from './clock.ts'

const keptMs = 900
const maxEntries = 10_000
/** A short value also has a key and a place. */
const minEntryLength = 1000

export interface Cached<Value> {
  get(key: string): Promise<Value>
  /** Later callers get the database's current value; lookups in progress still complete. */
  clear(): void
}

/** For values that may be large: together at most this length. Expired ones are removed also without further lookups. */
export interface CachedLength<Value> {
  lengthOf(value: Value): number
  maxLength: number
}

export function cached<Value>(clock: Clock, load: (key: string) => Promise<Value>, length?: CachedLength<Value>): Cached<Value> {
  let isPurging = false
  const purgeSoon = () => {
    if (isPurging || !length) return
    isPurging = true
    clock.after(2 * keptMs, () => {
      isPurging = false
      cache.purgeStale()
      if (cache.size > 0) purgeSoon()
    })
  }
  const empty = () =>
    new LRUCache<string, { value: Value }>({
      ...atMost(maxEntries),
      ...(length && { maxSize: length.maxLength, sizeCalculation: ({ value }) => Math.max(minEntryLength, length.lengthOf(value)) }),
      ttl: keptMs,
      // Reads the clock each time: a clock moved by hand may pass a second within a millisecond.
      ttlResolution: 0,
      perf: { now: () => clock.monotonicMs() },
      fetchMethod: async (key, _, { options }) => {
        const beganMs = clock.monotonicMs()
        const value = await load(key)
        // A slow query saw the database as of its begin. A ttl of 0 would keep the value for ever.
        options.ttl = Math.max(1, keptMs - (clock.monotonicMs() - beganMs))
        purgeSoon()
        return { value }
      },
    })
  let cache = empty()
  return {
    async get(key) {
      const found = await cache.fetch(key)
      if (!found) throw new Error('a cached lookup returned no value')
      return found.value
    },
    // Not clear(), which would fail every lookup in progress.
    clear() {
      cache = empty()
    },
  }
}
