/** Clocks that do not depend on when the tests run, or on how fast. */
import { type Clock, pause, systemClock } from '#base'
import { testTimeMs } from './database.ts'

const dayMs = 86_400_000
const noonAheadMs = 12.5 * 3_600_000 - (systemClock.nowMs() % dayMs)

/** As if the tests had begun today at half past twelve, UTC: no hour and no day ends while they run. */
export const halfPastTwelve: Clock = { ...systemClock, nowMs: () => systemClock.nowMs() + noonAheadMs }

/** Until an hour, and so a day, ends no sooner than in a minute: for programs that have the time of the machine. */
export async function notAtTheEndOfAnHour(): Promise<void> {
  const hourMs = 3_600_000
  while (systemClock.nowMs() % hourMs > hourMs - 60_000) await pause(systemClock, 500)
}

/** Tells no millisecond twice, so that what is listed by its time has one order on a fast machine too. */
export function neverTwice(): Clock {
  let lastMs = 0
  return { ...systemClock, nowMs: () => (lastMs = Math.max(lastMs + 1, systemClock.nowMs())) }
}

/** Of which only durations are moved by hand: rates and what is known for a while; all else goes on. */
export function handMovedDurations(): Clock & { pass(ms: number): void } {
  let passedMs = 1_000_000
  return { ...systemClock, monotonicMs: () => passedMs, pass: (ms) => void (passedMs += ms) }
}

/** Stands still until it is moved. */
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
