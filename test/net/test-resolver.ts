/** A resolver that queries a TestDns, with a clock that the test moves. */
import type { Clock } from '#base'
import { openResolver, type Resolver } from '#net'
import type { TestDns } from '../support/test-dns.ts'

export interface HandClock extends Clock {
  advance(ms: number): void
  /** Scheduled actions that have not run yet. */
  readonly waiting: number
}

function handClock(): HandClock {
  let nowMs = 1_000_000
  const timers = new Set<{ atMs: number; action: () => void }>()
  return {
    nowMs: () => nowMs,
    monotonicMs: () => nowMs,
    after(delayMs, action) {
      const timer = { atMs: nowMs + delayMs, action }
      timers.add(timer)
      return () => void timers.delete(timer)
    },
    advance(ms) {
      nowMs += ms
      for (const timer of [...timers].filter(({ atMs }) => atMs <= nowMs)) {
        timers.delete(timer)
        timer.action()
      }
    },
    get waiting() {
      return timers.size
    },
  }
}

export function asking(...servers: Pick<TestDns, 'address'>[]): { resolver: Resolver; clock: HandClock } {
  const clock = handClock()
  return { resolver: openResolver({ servers: servers.map(({ address }) => address), clock, ids: { random: Math.random } }), clock }
}
