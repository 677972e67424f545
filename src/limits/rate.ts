/** Request rates: a sliding window of one second over the requests that were let through (contract section 6.1), exact within one process. */
import { LRUCache } from 'lru-cache'
import type { Clock } from '#base'

export const windowMs = 1000
/** What the headers show of a key without a limit: they owe a number. */
const shownWhenUnlimited = 1_000_000_000

export interface RateVerdict {
  allowed: boolean
  limit: number
  remaining: number
  /** Unix seconds, rounded up: when the oldest counted request leaves the window. */
  resetSeconds: number
  /** Whole seconds to wait; 1 at least. */
  retryAfterSeconds: number
}

/** The times of the last requests let through, oldest first, in a ring that grows up to the limit. */
class Window {
  times = new Float64Array(16)
  first = 0
  size = 0

  oldest(): number {
    return this.times[this.first] as number
  }

  dropUntil(timeMs: number): void {
    while (this.size > 0 && this.oldest() <= timeMs) {
      this.first = (this.first + 1) % this.times.length
      this.size--
    }
  }

  push(timeMs: number): void {
    if (this.size === this.times.length) {
      const larger = new Float64Array(this.size * 2)
      for (let index = 0; index < this.size; index++) larger[index] = this.times[(this.first + index) % this.size] as number
      this.times = larger
      this.first = 0
    }
    this.times[(this.first + this.size) % this.times.length] = timeMs
    this.size++
  }
}

/** `atMs` (monotonic): when it was let through, if that was before. */
export type RateLimiter = (subject: string, limit: number | null, look?: 'only look' | { atMs: number }) => RateVerdict

/** A limiter of its own memory: at most 50,000 subjects, the longest unused forgotten first. */
export function openRateLimiter(clock: Clock): RateLimiter {
  const windows = new LRUCache<string, Window>({ max: 50_000 })
  return (subject, limit, look) => {
    if (limit === null) return verdictOf({ limit: shownWhenUnlimited, used: 0, allowed: true, freeInMs: 0 }, clock)
    const nowMs = clock.monotonicMs()
    let window = windows.get(subject)
    if (!window) {
      window = new Window()
      windows.set(subject, window)
    }
    window.dropUntil(nowMs - windowMs)
    const allowed = window.size < limit
    if (allowed && look !== 'only look') window.push(look?.atMs ?? nowMs)
    const freeInMs = window.size === 0 ? 0 : window.oldest() + windowMs - nowMs
    return verdictOf({ limit, used: window.size, allowed, freeInMs }, clock)
  }
}

/** `used`: with this one, if it was let through. `freeInMs`: until the oldest of them leaves the window. */
export function verdictOf(
  { limit, used, allowed, freeInMs }: { limit: number; used: number; allowed: boolean; freeInMs: number },
  clock: Clock,
): RateVerdict {
  return {
    allowed,
    limit,
    remaining: Math.max(0, limit - used),
    resetSeconds: Math.ceil((clock.nowMs() + freeInMs) / 1000),
    retryAfterSeconds: Math.max(1, Math.ceil(freeInMs / 1000)),
  }
}
