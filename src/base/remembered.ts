/**
 * What many requests ask the database for and what may be a little out of date: asked for once at a time, and kept for less than the
 * second within which a change must be in force in every process.
 */
import { LRUCache } from 'lru-cache'
import type { Clock } from './clock.ts'

const keptMs = 900
const mostKept = 10_000

export interface Remembered<Value> {
  get(key: string): Promise<Value>
  /** Whoever asks from now on gets what is in the database now; who has asked already gets an answer all the same. */
  forget(): void
}

export function remembered<Value>(clock: Clock, load: (key: string) => Promise<Value>): Remembered<Value> {
  const empty = () =>
    new LRUCache<string, { value: Value }>({
      max: mostKept,
      ttl: keptMs,
      // Asks the clock each time: one moved by hand may pass a second within a millisecond.
      ttlResolution: 0,
      perf: { now: () => clock.monotonicMs() },
      fetchMethod: async (key) => ({ value: await load(key) }),
    })
  let cache = empty()
  return {
    async get(key) {
      const found = await cache.fetch(key)
      if (!found) throw new Error('a look-up came to nothing')
      return found.value
    },
    // Not clear(): that would fail every look-up under way.
    forget() {
      cache = empty()
    },
  }
}
