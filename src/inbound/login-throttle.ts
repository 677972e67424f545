/**
 * Failed logins per network: above a few per minute, each further one is answered late. Networks are not blocked, because many users may
 * share one, for example behind a TCP proxy, and a key of 190 random bits cannot be guessed.
 */
import { LRUCache } from 'lru-cache'
import { atMost, type Clock } from '#base'

const maxFailures = 20
const windowMs = 60_000
const lateMs = 3000
const maxNetworks = 10_000

export interface LoginGuard {
  /** Counts a failure; returns the delay of its answer in milliseconds. */
  recordFailure(network: string): number
}

export function openLoginGuard(clock: Clock): LoginGuard {
  const failures = new LRUCache<string, { count: number; sinceMs: number }>(atMost(maxNetworks))
  return {
    recordFailure(network) {
      const found = failures.get(network)
      if (found && clock.monotonicMs() - found.sinceMs < windowMs) return ++found.count > maxFailures ? lateMs : 0
      failures.set(network, { count: 1, sinceMs: clock.monotonicMs() })
      return 0
    },
  }
}
