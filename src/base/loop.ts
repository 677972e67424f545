/** Work in the background: one turn after another, never two at once. A turn that fails is told in the log and tried again. */
import { type Clock, pause } from './clock.ts'
import type { Log } from './log.ts'

/** After a turn that failed, so that a fault does not make a loop spin. */
const leastAfterFaultMs = 100

export interface LoopSettings {
  clock: Clock
  log: Log
  /** For the log: "`name` did not succeed". */
  name: string
  /** Between two turns. */
  everyMs: number
}

export interface Loop {
  /** Begins the next turn without waiting. */
  nudge(): void
  /** Resolves when the running turn has ended. */
  stop(): Promise<void>
}

/** `turn` may answer in how many ms the next one begins, when not after `everyMs`, and sees by the signal that it should come to an end. */
export function startLoop({ clock, log, name, everyMs }: LoopSettings, turn: (stopping: AbortSignal) => Promise<number | void>): Loop {
  const stopping = new AbortController()
  let nudged = new AbortController()
  const run = async () => {
    while (!stopping.signal.aborted) {
      nudged = new AbortController()
      const nextMs = await turn(stopping.signal).catch((error: unknown) => {
        log.warn({ err: error }, `${name} did not succeed; it is tried again`)
        return Math.max(everyMs, leastAfterFaultMs)
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
