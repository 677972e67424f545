/**
 * Runs work that would block the event loop on a thread, or in a child process: one task at a time, callers taking turns. A task that
 * exceeds its deadline is ended with its thread. The thread starts on demand and ends when idle, which frees its memory.
 */
import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { type Transferable, Worker } from 'node:worker_threads'
import type { Clock } from './clock.ts'

export interface Thread<Task, Result> {
  /** Tasks with the same `whose` run in order and do not delay other callers. Objects in `transfer` are no longer usable by the caller. */
  run(whose: string, task: Task, transfer?: Transferable[]): Promise<Result>
  /** Rejects running and queued tasks, and accepts no more. */
  stop(): void
}

export interface ThreadBounds {
  clock: Clock
  /** From the moment the thread has the task; starting the thread has a separate limit. */
  deadlineMs: number
  idleMs: number
  /** Defaults to Node's limit. Transferred memory is not counted. Work that outside text can drive to this limit needs `openTaskProcess`. */
  maxHeapMebibytes?: number
}

/** The task exceeded its deadline, and might succeed on a less busy machine. */
export class TookTooLong extends Error {}

/** The child process ended within its task, as when it needs more heap than it may have. */
export class TaskProcessEnded extends Error {}

interface Waiting {
  whose: string
  task: unknown
  transfer: Transferable[]
  resolve: (result: never) => void
  reject: (error: Error) => void
}

/** Messages from the thread's file, sent by `serveTasks`. */
export type Posted = 'ready' | { result: unknown } | { error: string }

const startWithinMs = 30_000

/** `file`, a TypeScript module, answers every message with `serveTasks`. In the compiled program its JavaScript runs. */
export const openThread = <Task, Result>(file: URL, bounds: ThreadBounds): Thread<Task, Result> =>
  new QueuedThread(programFile(file), bounds, startThread)

/**
 * The same in a child process, which starts more slowly and copies its tasks. V8 may abort the whole process when a thread needs more heap
 * than it may have: with a child, only its task fails.
 */
export const openTaskProcess = <Task, Result>(file: URL, bounds: ThreadBounds): Thread<Task, Result> =>
  new QueuedThread(programFile(file), bounds, startProcess)

const programFile = (file: URL) => (import.meta.url.endsWith('.js') ? new URL(file.href.replace(/\.ts$/, '.js')) : file)

interface Worked {
  post(task: unknown, transfer: Transferable[]): void
  /** Its errors and messages are no longer reported. */
  end(): void
}

interface Reports {
  posted: (posted: Posted) => void
  failed: (error: Error) => void
}

type Start = (file: URL, bounds: ThreadBounds, reports: Reports) => Worked

const asError = (error: unknown) => (error instanceof Error ? error : new Error(String(error)))

function startThread(file: URL, { maxHeapMebibytes }: ThreadBounds, { posted, failed }: Reports): Worked {
  const thread = new Worker(file, {
    // The thread needs no settings, so no secret is passed to it.
    env: {},
    resourceLimits: maxHeapMebibytes === undefined ? {} : { maxOldGenerationSizeMb: maxHeapMebibytes },
  })
  thread.unref()
  thread.on('message', posted)
  thread.on('error', (error) => failed(asError(error)))
  thread.on('exit', (code) => failed(new Error(`a thread exited with code ${code}`)))
  return {
    post: (task, transfer) => thread.postMessage(task, transfer),
    end() {
      thread.removeAllListeners()
      // Errors of an ending thread concern no running task.
      thread.on('error', () => {})
      void thread.terminate()
    },
  }
}

function startProcess(file: URL, { maxHeapMebibytes }: ThreadBounds, { posted, failed }: Reports): Worked {
  const child = fork(fileURLToPath(file), [], {
    env: {},
    execArgv: [...process.execArgv, ...(maxHeapMebibytes === undefined ? [] : [`--max-old-space-size=${maxHeapMebibytes}`])],
    serialization: 'advanced',
    // V8 describes an exhausted heap on standard error, in a form that is no log line.
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
  })
  child.unref()
  child.channel?.unref()
  child.on('message', (message) => posted(message as Posted))
  child.on('error', failed)
  child.on('exit', (code, signal) => failed(new TaskProcessEnded(`a child process ended with ${signal ?? `code ${code}`}`)))
  return {
    post: (task) => void child.send(task as object, (error) => error && failed(error)),
    end() {
      child.removeAllListeners()
      child.on('error', () => {})
      child.kill('SIGKILL')
    },
  }
}

class QueuedThread<Task, Result> implements Thread<Task, Result> {
  readonly #file: URL
  readonly #bounds: ThreadBounds
  readonly #start: Start
  /** Keyed by `whose`, the next in turn first; no list is empty. */
  readonly #queues = new Map<string, Set<Waiting>>()
  #worker: { worked: Worked; isReady: boolean } | undefined
  #running: Waiting | undefined
  #isStopped = false
  #cancelTimer = () => {}

  constructor(file: URL, bounds: ThreadBounds, start: Start) {
    this.#file = file
    this.#bounds = bounds
    this.#start = start
  }

  run(whose: string, task: Task, transfer: Transferable[] = []): Promise<Result> {
    return new Promise<Result>((resolve, reject) => {
      if (this.#isStopped) return reject(new Error('the thread has stopped'))
      const waiting = this.#queues.get(whose) ?? new Set()
      this.#queues.set(whose, waiting.add({ whose, task, transfer, resolve, reject }))
      this.#next()
    })
  }

  stop(): void {
    this.#isStopped = true
    const given = [...this.#queues.values()].flatMap((waiting) => [...waiting])
    this.#queues.clear()
    this.#fail(new Error('the thread has stopped'))
    this.#cancelTimer()
    for (const { reject } of given) reject(new Error('the thread has stopped'))
  }

  /** Runs the task next in turn, unless one is running. */
  #next(): void {
    const [first] = this.#queues
    if (this.#running || !first) return
    const [whose, waiting] = first
    const [taken] = waiting
    if (!taken) return
    waiting.delete(taken)
    // Moves to the end of the turn order.
    this.#queues.delete(whose)
    if (waiting.size > 0) this.#queues.set(whose, waiting)
    this.#running = taken
    if (this.#worker?.isReady) this.#hand()
    else if (!this.#worker) this.#startWorker()
  }

  #startWorker(): void {
    const reports = { posted: (posted: Posted) => this.#receive(posted), failed: (error: Error) => this.#fail(error) }
    this.#worker = { worked: this.#start(this.#file, this.#bounds, reports), isReady: false }
    this.#giveUpAfter(startWithinMs)
  }

  #receive(posted: Posted): void {
    if (posted === 'ready') {
      if (this.#worker) this.#worker.isReady = true
      this.#hand()
    } else this.#end(({ resolve, reject }) => ('error' in posted ? reject(new Error(posted.error)) : resolve(posted.result as never)))
  }

  #hand(): void {
    this.#giveUpAfter(this.#bounds.deadlineMs)
    this.#worker?.worked.post(this.#running?.task, this.#running?.transfer ?? [])
  }

  #giveUpAfter(ms: number): void {
    this.#cancelTimer()
    this.#cancelTimer = this.#bounds.clock.after(ms, () => this.#fail(new TookTooLong(`a thread did not respond within ${ms} ms`)))
  }

  #fail(error: Error): void {
    this.#drop()
    this.#end(({ reject }) => reject(error))
  }

  /** Ends the running task, then runs the next one or lets the thread end when idle. */
  #end(settle: (ended: Waiting) => void): void {
    this.#cancelTimer()
    const ended = this.#running
    this.#running = undefined
    if (ended) settle(ended)
    if (this.#queues.size > 0) this.#next()
    else this.#cancelTimer = this.#bounds.clock.after(this.#bounds.idleMs, () => this.#drop())
  }

  #drop(): void {
    const ended = this.#worker?.worked
    this.#worker = undefined
    ended?.end()
  }
}
