/**
 * Waiting for loops: each waits until it is woken, until a given promise settles, or until a time has passed.
 */
import type { Clock } from '#base'

export interface Waiters {
  /** Waits until it is woken, one of `running` settles, or `ms` have passed. */
  wait(running: Iterable<Promise<void>>, ms?: number): Promise<void>
  /** Wakes the loop that has waited longest; false if no loop waits. */
  wakeOne(): boolean
  wakeAll(): void
  /** The number of loops that wait. */
  readonly size: number
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
    get size() {
      return waiting.size
    },
  }
}
