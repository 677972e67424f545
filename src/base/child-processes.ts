/** Child processes of this program: started, restarted when they die, stopped in order. */
import { type ChildProcess, fork } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { collectFromChild } from './aggregate-metrics.ts'
import { type Clock, pause } from './clock.ts'
import type { Log } from './log.ts'
import { partedEnvironment } from './secret-settings.ts'

export interface ChildrenOptions {
  /** The program's script. */
  script: string
  /** Arguments of the child with this name. */
  argumentsFor: (name: string) => string[]
  /** Called at each start. Secret variables are sent to the child through a pipe, which it reads with `readFromParent`. */
  environment: () => Record<string, string | undefined>
  count: number
  /** A unique name for each start of a child, never reused. */
  newName(): string
  /** Called when the child has certainly ended, unless it stopped in order. */
  ended(name: string): Promise<void>
  /** Aborts when the program is stopping: a signal to all of its processes ends the children before `stop` is called. */
  ending: AbortSignal
  clock: Clock
  log: Log
}

/** Marks in a child's environment that the rest of it arrives on standard input. */
const settingsByPipe = 'POSTRIDER_SETTINGS_BY_PIPE'

const firstBackoffMs = 100
const maxBackoffMs = 5000
/** A child that lived this long is restarted at once. */
const healthyMs = 10_000
/** A delivery process waits up to 65 s for servers that have a final dot and for its records; service managers wait 90 s for all. */
const stopWithinMs = 80_000

export interface Children {
  /** How many live children have called `signalReady`. */
  readonly ready: number
  /** Resolves when `count` live children have called `signalReady` for the first time. */
  readonly allReady: Promise<void>
  /** Called after `ending` has aborted. */
  stop(): Promise<void>
}

/** In a child: reports that it is ready. Elsewhere: no effect. */
export const signalReady = (): void => void process.send?.({ ready: true })

/** In a child: returns the variables that its parent kept out of its environment. Elsewhere: returns an empty object. */
export function readFromParent(environment: Record<string, string | undefined>): Record<string, string> {
  return environment[settingsByPipe] === undefined ? {} : (JSON.parse(readFileSync(0, 'utf8')) as Record<string, string>)
}

function forkChild({ script, argumentsFor, environment }: ChildrenOptions, name: string): ChildProcess {
  const { open, secret } = partedEnvironment(environment())
  const child = fork(script, argumentsFor(name), {
    env: { ...open, [settingsByPipe]: '1' } as NodeJS.ProcessEnv,
    stdio: ['pipe', 'inherit', 'inherit', 'ipc'],
  })
  // The exit event covers a child that ends before reading all its input.
  child.stdin?.on('error', () => undefined)
  child.stdin?.end(JSON.stringify(secret))
  return child
}

/** undefined: the system refused, for example for lack of memory. */
function forkedChild(options: ChildrenOptions, name: string): ChildProcess | undefined {
  try {
    return forkChild(options, name)
  } catch (error) {
    options.log.warn({ err: error, child: name }, 'failed to start a child process; trying again')
    return undefined
  }
}

/** Resolves when the child has ended, or could not be started: without a free file descriptor it has no event but `error`. */
const endOf = (child: ChildProcess, log: Log) =>
  new Promise<{ code: number | null; signal: NodeJS.Signals | null; problem?: string }>((resolve) => {
    child.once('exit', (code, signal) => resolve({ code, signal }))
    child.on('error', (error) => {
      if (child.pid === undefined) resolve({ code: null, signal: null, problem: error.message })
      else log.warn({ err: error, pid: child.pid }, 'failed to reach a child process')
    })
  })

export function startChildren(options: ChildrenOptions): Children {
  const { clock, log, ending } = options
  const living = new Set<ChildProcess>()
  const ready = new Set<ChildProcess>()
  const ends = new Set<Promise<void>>()
  const { promise: allReady, resolve: noteAllReady } = Promise.withResolvers<void>()

  const start = (backoffMs: number) => {
    // A signal to all processes has already come, which the new child would miss.
    if (ending.aborted) return
    const name = options.newName()
    const startedMs = clock.monotonicMs()
    const child = forkedChild(options, name)
    if (!child) {
      const nextMs = Math.min(backoffMs * 2, maxBackoffMs)
      void pause(clock, nextMs, ending).then(() => start(nextMs))
      return
    }
    living.add(child)
    collectFromChild(child)
    child.on('message', (message) => {
      if (typeof message === 'object' && 'ready' in message) ready.add(child)
      if (ready.size === options.count) noteAllReady()
    })
    const end = endOf(child, log).then(({ code, signal, problem }) => {
      living.delete(child)
      ready.delete(child)
      // A child that stopped in order has deregistered itself.
      const deregistered = ending.aborted && code === 0 ? Promise.resolve() : options.ended(name)
      if (!ending.aborted) {
        log.warn({ child: name, code, signal, problem }, 'child process ended; restarting')
        const nextMs = clock.monotonicMs() - startedMs > healthyMs ? firstBackoffMs : Math.min(backoffMs * 2, maxBackoffMs)
        void pause(clock, nextMs, ending).then(() => start(nextMs))
      }
      return deregistered.catch((error) =>
        log.warn({ err: error, child: name }, 'failed to deregister a process that ended; its lease will expire'),
      )
    })
    ends.add(end)
    void end.finally(() => ends.delete(end))
  }

  for (let index = 0; index < options.count; index++) start(firstBackoffMs)
  return {
    get ready() {
      return ready.size
    },
    allReady,
    async stop() {
      for (const child of living) child.kill('SIGTERM')
      const cancel = clock.after(stopWithinMs, () => {
        for (const child of living) child.kill('SIGKILL')
      })
      await Promise.all(ends)
      cancel()
    },
  }
}
