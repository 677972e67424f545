/** Failed logins of a network: more than a few in a minute, and none is looked at until the minute is over. */
import { LRUCache } from 'lru-cache'
import type { Clock } from '#base'

const mostFailures = 20
const windowMs = 60_000
const mostNetworks = 10_000

export interface LoginGuard {
  isBarred(network: string): boolean
  noteFailure(network: string): void
}

export function openLoginGuard(clock: Clock): LoginGuard {
  const failures = new LRUCache<string, { count: number; sinceMs: number }>({ max: mostNetworks })
  const current = (network: string) => {
    const found = failures.get(network)
    return found && clock.monotonicMs() - found.sinceMs < windowMs ? found : undefined
  }
  return {
    isBarred: (network) => (current(network)?.count ?? 0) >= mostFailures,
    noteFailure(network) {
      const found = current(network)
      if (found) found.count++
      else failures.set(network, { count: 1, sinceMs: clock.monotonicMs() })
    },
  }
}
