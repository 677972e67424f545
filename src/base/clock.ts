/**
 * Time as a parameter. The engine never reads the machine's time itself but gets a Clock, so that the same code runs in real and in
 * simulated time at any speed. The only file that may use Date.now and setTimeout.
 */

export interface Clock {
  /** Milliseconds since the Unix epoch; may step when the machine's clock is set. For due times and records. */
  nowMs(): number
  /** Milliseconds from an arbitrary start that never decrease. For leases, timeouts and durations. */
  monotonicMs(): number
  /** Runs `action` once after `delayMs`; the returned function cancels it. */
  after(delayMs: number, action: () => void): () => void
}

/** The longest delay of setTimeout; a longer one fires at once. */
const maxTimerMs = 2 ** 31 - 1

export const systemClock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  after(delayMs, action) {
    const timer = setTimeout(action, Math.min(Math.max(delayMs, 0), maxTimerMs))
    return () => clearTimeout(timer)
  },
}

/** Resolves after `delayMs`, or when `signal` aborts. It never rejects, so a loop checks its signal itself. */
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

/** Resolves in the next turn of the event loop: long work that awaits it between its steps lets other requests in. */
export const nextTurn = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve))

/** Ends with the last step that was asked for. */
let lastStep = Promise.resolve()

/** Resolves in a turn of the event loop that has no other step, so that many large tasks together take no longer turns than one. */
export function nextStep(): Promise<void> {
  lastStep = lastStep.then(nextTurn)
  return lastStep
}
