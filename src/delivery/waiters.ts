/** Loops that wait for each other: each until it is woken, until something else ends, or for a time. */
import type { Clock } from '#base'

export interface Waiters {
  /** Until it is woken, one of `running` ends, or `ms` have passed. */
  wait(running: Iterable<Promise<void>>, ms?: number): Promise<void>
  /** The one that has waited longest; false when there is none. */
  wakeOne(): boolean
  wakeAll(): void
}

export function openWaiters(clock: Clock): Waiters {
  const waiting = new Set<() => void>()
  return {
    async wait(running, ms) {
      let stop = () => {}
      const woken = new Promise<void>((resolve) => {
        const wake = () => {
          waiting.delete(wake)
          cancel()
          resolve()
        }
        const cancel = ms === undefined ? () => {} : clock.after(ms, wake)
        waiting.add(wake)
        stop = wake
      })
      await Promise.race([woken, ...running])
      stop()
    },
    wakeOne() {
      for (const wake of waiting) {
        wake()
        return true
      }
      return false
    },
    wakeAll() {
      for (const wake of waiting) wake()
    },
  }
}
