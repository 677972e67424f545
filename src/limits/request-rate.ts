/**
 * Request rates: a sliding window of one second over the allowed requests (contract section 6.1), exact within one process. A request
 * counts one unit; one with a large body counts more.
 */
import { LRUCache } from 'lru-cache'
import { atMost, type Clock } from '#base'

export const windowMs = 1000
/** The headers need a number for a key without a limit. */
const shownWhenUnlimited = 1_000_000_000

export interface RateVerdict {
  allowed: boolean
  limit: number
  remaining: number
  /** Unix seconds, rounded up: the time when the oldest counted request leaves the window. */
  resetSeconds: number
  /** Whole seconds to wait, at least 1. */
  retryAfterSeconds: number
}

/** The times of the last allowed units, oldest first, in a ring that grows up to twice the limit. */
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

  /** The time of the unit whose expiry makes room below `limit`; the oldest unit while there is room. */
  lastBefore(limit: number): number {
    return this.times[(this.first + Math.max(0, this.size - limit)) % this.times.length] as number
  }

  push(timeMs: number, units: number): void {
    for (let unit = 0; unit < units; unit++) this.pushOne(timeMs)
  }

  pushOne(timeMs: number): void {
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

export interface Taking {
  /** The units that the request counts; more than the limit count as the limit, so that one request is always possible. Default 1. */
  units?: number
  /** The monotonic time when the request was allowed, if that was earlier. */
  atMs?: number
  /** The request was already allowed, and counts in any case. */
  afterwards?: true
}

/** A request is allowed while there is room for one unit, and then counts with all its units. */
export type RateLimiter = (subject: string, limit: number | null, taking?: 'only look' | Taking) => RateVerdict

/** A limiter in memory: at most 50,000 subjects; the one unused longest is dropped first. */
export function openRateLimiter(clock: Clock): RateLimiter {
  const windows = new LRUCache<string, Window>(atMost(50_000))
  return (subject, limit, taking = {}) => {
    if (limit === null) return verdictOf({ limit: shownWhenUnlimited, used: 0, allowed: true, freeInMs: 0 }, clock)
    const nowMs = clock.monotonicMs()
    let window = windows.get(subject)
    if (!window) {
      window = new Window()
      windows.set(subject, window)
    }
    window.dropUntil(nowMs - windowMs)
    const allowed = window.size < limit || (taking !== 'only look' && taking.afterwards === true)
    if (allowed && taking !== 'only look') window.push(taking.atMs ?? nowMs, Math.min(taking.units ?? 1, limit))
    const freeInMs = window.size === 0 ? 0 : window.lastBefore(limit) + windowMs - nowMs
    return verdictOf({ limit, used: window.size, allowed, freeInMs }, clock)
  }
}

/** `used`: including this request, if it was allowed. `freeInMs`: time until the oldest of them leaves the window. */
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
