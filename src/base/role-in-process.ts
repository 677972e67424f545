/** Runs a role in this process, where a machine is too small for a process of its own. */
import type { Children } from './child-processes.ts'
import { type Clock, pause } from './clock.ts'
import type { Log } from './log.ts'
import { ConfigError } from './setting.ts'

export interface RoleInProcess {
  /** Starts the role under a name that is never used again. */
  start(name: string): Promise<{ stop(): Promise<void> }>
  newName(): string
  /** Called after a failed start, which may have registered the name. */
  ended(name: string): Promise<void>
  /** Aborts when the program is stopping. */
  ending: AbortSignal
  clock: Clock
  log: Log
}

const firstBackoffMs = 100
const maxBackoffMs = 5000

/** Repeats a failed start, as a child process would be started again: a port may become free. */
export function startInProcess(role: RoleInProcess): Children {
  const { ending, clock, log } = role
  let running: { stop(): Promise<void> } | undefined
  const begin = async () => {
    for (let backoffMs = firstBackoffMs; !ending.aborted && !running; backoffMs = Math.min(backoffMs * 2, maxBackoffMs)) {
      const name = role.newName()
      try {
        running = await role.start(name)
      } catch (error) {
        // Its message contains the remedy, for example another port.
        if (error instanceof ConfigError) log.error(`${error.message}. Retrying`)
        else log.error({ err: error }, 'a role failed to start; retrying')
        await role.ended(name).catch((failed: unknown) => log.warn({ err: failed }, 'failed to deregister a role; its lease will expire'))
        await pause(clock, backoffMs, ending)
      }
    }
  }
  const beginning = begin()
  return {
    get ready() {
      return running ? 1 : 0
    },
    allReady: beginning,
    async stop() {
      await beginning
      await running?.stop()
    },
  }
}
