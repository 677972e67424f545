/** Background loop: runs one turn after another, never two at once. A failed turn is logged and retried. */
import { type Clock, pause } from './clock.ts'
import type { Log } from './log.ts'

/** Minimum delay after a failed turn, so that the loop does not spin. */
const minAfterFaultMs = 100

export interface LoopSettings {
  clock: Clock
  log: Log
  /** For the log: "`name` did not succeed". */
  name: string
  /** Delay between two turns. */
  everyMs: number
}

export interface Loop {
  /** Starts the next turn at once. */
  nudge(): void
  /** Resolves when the running turn has ended. */
  stop(): Promise<void>
}

/** `turn` may return the delay before the next one in milliseconds, in place of `everyMs`. Its signal aborts when it should end. */
export function startLoop({ clock, log, name, everyMs }: LoopSettings, turn: (stopping: AbortSignal) => Promise<number | void>): Loop {
  const stopping = new AbortController()
  let nudged = new AbortController()
  const run = async () => {
    while (!stopping.signal.aborted) {
      nudged = new AbortController()
      const nextMs = await turn(stopping.signal).catch((error: unknown) => {
        log.warn({ err: error }, `${name} failed; retrying`)
        return Math.max(everyMs, minAfterFaultMs)
      })
      const waitMs = nextMs ?? everyMs
      if (waitMs > 0) await pause(clock, waitMs, AbortSignal.any([stopping.signal, nudged.signal]))
    }
  }
  const ended = run()
  return {
    nudge: () => nudged.abort(),
    async stop() {
      stopping.abort()
      await ended
    },
  }
}
