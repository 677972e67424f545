/** Clocks that are independent of the time and speed of the test run. */
import { type Clock, pause, systemClock } from '#base'
import { testTimeMs } from './database.ts'

const dayMs = 86_400_000
const noonAheadMs = 12.5 * 3_600_000 - (systemClock.nowMs() % dayMs)

/** Starts at half past twelve UTC today, so that no hour and no day ends during a test. */
export const halfPastTwelve: Clock = { ...systemClock, nowMs: () => systemClock.nowMs() + noonAheadMs }

/** Waits until the current hour, and so the day, has at least a minute left. For programs that use the machine's time. */
export async function notAtTheEndOfAnHour(): Promise<void> {
  const hourMs = 3_600_000
  while (systemClock.nowMs() % hourMs > hourMs - 60_000) await pause(systemClock, 500)
}

/** Never returns the same millisecond twice, so that lists sorted by time have one order on a fast machine too. */
export function neverTwice(): Clock {
  let lastMs = 0
  return { ...systemClock, nowMs: () => (lastMs = Math.max(lastMs + 1, systemClock.nowMs())) }
}

/** A clock with durations moved by hand, for rates and caches. The time of day and timers run normally. */
export function handMovedDurations(): Clock & { pass(ms: number): void } {
  let passedMs = 1_000_000
  return { ...systemClock, monotonicMs: () => passedMs, pass: (ms) => void (passedMs += ms) }
}

/** A clock that stands still until the test moves it. */
export interface HandMoved extends Clock {
  /** Runs the timers that are due by then, in order. */
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
