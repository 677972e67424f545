/** Child processes of our own program: started, started again when they die, stopped in order. */
import { type ChildProcess, fork } from 'node:child_process'
import type { Clock } from './clock.ts'
import type { Log } from './log.ts'
import { hearChild } from './metrics-page.ts'

export interface ChildrenOptions {
  /** The script of the program. */
  script: string
  /** Arguments of the child with this name. */
  argumentsFor(name: string): string[]
  environment: Record<string, string | undefined>
  count: number
  /** A name for each start of a child, unique for ever. */
  newName(): string
  /** The child certainly has ended. */
  ended(name: string): Promise<void>
  clock: Clock
  log: Log
}

const firstBackoffMs = 100
const longestBackoffMs = 5000
/** A child that lived this long is started again at once. */
const healthyMs = 10_000
const stopWithinMs = 35_000

export interface Children {
  stop(): Promise<void>
}

export function startChildren(options: ChildrenOptions): Children {
  const { clock, log } = options
  const living = new Set<ChildProcess>()
  const ends = new Set<Promise<void>>()
  const cancels = new Set<() => void>()
  let stopping = false

  const start = (backoffMs: number) => {
    const name = options.newName()
    const startedMs = clock.monotonicMs()
    const child = fork(options.script, options.argumentsFor(name), {
      env: options.environment as NodeJS.ProcessEnv,
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    })
    living.add(child)
    hearChild(child)
    const end = new Promise<void>((resolve) =>
      child.once('exit', (code, signal) => {
        living.delete(child)
        options
          .ended(name)
          .catch((error) => log.warn({ err: error, child: name }, 'an ended process could not be forgotten; its lease runs out'))
          .finally(resolve)
        if (stopping) return
        log.warn({ child: name, code, signal }, 'a child process ended; another is started')
        const nextMs = clock.monotonicMs() - startedMs > healthyMs ? firstBackoffMs : Math.min(backoffMs * 2, longestBackoffMs)
        const cancel = clock.after(nextMs, () => {
          cancels.delete(cancel)
          start(nextMs)
        })
        cancels.add(cancel)
      }),
    )
    ends.add(end)
    void end.finally(() => ends.delete(end))
  }

  for (let index = 0; index < options.count; index++) start(firstBackoffMs)
  return {
    async stop() {
      stopping = true
      for (const cancel of cancels) cancel()
      for (const child of living) child.kill('SIGTERM')
      const cancel = clock.after(stopWithinMs, () => {
        for (const child of living) child.kill('SIGKILL')
      })
      await Promise.all(ends)
      cancel()
    },
  }
}
