/**
 * Time as a parameter. The engine never asks the machine for the time itself: it is given a Clock, so that the same code runs
 * against the real world and against a simulated one at any speed. The only file that may touch Date.now and setTimeout.
 */

export interface Clock {
  /** Milliseconds since the Unix epoch; may step when the machine's clock is set. For due times and records. */
  nowMs(): number
  /** Milliseconds that only ever grow, from an arbitrary start. For leases, time limits and durations. */
  monotonicMs(): number
  /** Runs `action` once after `delayMs`; the returned function cancels it. */
  after(delayMs: number, action: () => void): () => void
}

/** The longest delay setTimeout takes without firing at once. */
const longestTimerMs = 2 ** 31 - 1

export const systemClock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  after(delayMs, action) {
    const timer = setTimeout(action, Math.min(Math.max(delayMs, 0), longestTimerMs))
    return () => clearTimeout(timer)
  },
}

/** Resolves after `delayMs`, or as soon as `signal` aborts: never rejects, so a loop checks its signal itself. */
export function pause(clock: Clock, delayMs: number, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted) return Promise.resolve()
  return new Promise((resolve) => {
    const end = () => {
      cancel()
      signal?.removeEventListener('abort', end)
      resolve()
    }
    const cancel = clock.after(delayMs, end)
    signal?.addEventListener('abort', end, { once: true })
  })
}
