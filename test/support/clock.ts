/** A clock that stands still until it is moved. */
import type { Clock } from '#base'
import { testTimeMs } from './database.ts'

export interface HandMoved extends Clock {
  /** What is due by then runs, in order. */
  moveMs(ms: number): void
}

export function handMoved(startMs = testTimeMs): HandMoved {
  let passedMs = 0
  const timers = new Set<{ atMs: number; action: () => void }>()
  return {
    nowMs: () => startMs + passedMs,
    monotonicMs: () => 5000 + passedMs,
    after(delayMs, action) {
      const timer = { atMs: passedMs + delayMs, action }
      timers.add(timer)
      return () => void timers.delete(timer)
    },
    moveMs(ms) {
      const untilMs = passedMs + ms
      for (;;) {
        const [due] = [...timers].filter((one) => one.atMs <= untilMs).sort((one, other) => one.atMs - other.atMs)
        if (!due) break
        passedMs = Math.max(passedMs, due.atMs)
        timers.delete(due)
        due.action()
      }
      passedMs = untilMs
    },
  }
}
