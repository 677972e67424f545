/** Background loop: runs one turn after another, never two at once. A failed turn is logged and retried. */
import type { Clock } from './clock.ts'
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
  let isNudged = false
  let wake = () => {}
  // Without signals, whose combination took 1% of the processor time of a message and more of an idle process.
  const rest = (waitMs: number) =>
    new Promise<void>((resolve) => {
      const cancel = clock.after(waitMs, resolve)
      wake = () => {
        cancel()
        resolve()
      }
    })
  const run = async () => {
    while (!stopping.signal.aborted) {
      isNudged = false
      const nextMs = await turn(stopping.signal).catch((error: unknown) => {
        log.warn({ err: error }, `${name} failed; retrying`)
        return Math.max(everyMs, minAfterFaultMs)
      })
      const waitMs = nextMs ?? everyMs
      if (waitMs > 0 && !isNudged) await rest(waitMs)
    }
  }
  const nudge = () => {
    isNudged = true
    wake()
  }
  const ended = run()
  return {
    nudge,
    async stop() {
      stopping.abort()
      nudge()
      await ended
    },
  }
}
