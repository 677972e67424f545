/**
 * Runs work that would block the event loop on a thread, or in a child process: one task at a time, callers taking turns. A task that
 * exceeds its deadline is ended with its thread. The thread starts on demand and ends when idle, which frees its memory.
 */
import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { type Transferable, Worker } from 'node:worker_threads'
import { type Clock, nextTurn } from './clock.ts'

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

/** The child process aborted within its task, as when it needs more heap than it may have. */
export class TaskProcessEnded extends Error {}

interface Waiting {
  whose: string
  task: unknown
  transfer: Transferable[]
  resolve: (result: never) => void
  reject: (error: Error) => void
  /** A worker that had it was lost. */
  wasLost?: true
}

/** Messages from the thread's file, sent by `serveTasks`. */
export type Posted = 'ready' | { result: unknown } | { error: string }

const startWithinMs = 30_000

/** `file`, a TypeScript module, answers every message with `serveTasks`. In the compiled program its JavaScript runs. */
export const openThread = <Task, Result>(file: URL, bounds: ThreadBounds): Thread<Task, Result> =>
  new QueuedThread(programFile(file), bounds, startThread)

/**
 * The same in a child process, which starts more slowly and copies its tasks. V8 may abort the whole process when a thread needs more heap
 * than it may have: with a child, only its task fails. A task whose child is lost for another reason, as when the kernel or an operator kills
 * it, runs once more in a new child.
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
  /** The task may be the cause. */
  failed: (error: Error) => void
  /** The task is not the cause, and may run again. */
  lost: (error: Error) => void
}

type Start = (file: URL, bounds: ThreadBounds, reports: Reports) => Worked

const asError = (error: unknown) => (error instanceof Error ? error : new Error(String(error)))

function startThread(file: URL, { maxHeapMebibytes }: ThreadBounds, { posted, failed }: Reports): Worked {
  const thread = new Worker(file, {
    // No settings: each task has all that the thread needs.
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

/** V8 aborts when the heap is exhausted; a shell between reports the signal as a code. */
const isAbort = (code: number | null, signal: NodeJS.Signals | null) =>
  signal === 'SIGABRT' || signal === 'SIGTRAP' || code === 134 || code === 133

function startProcess(file: URL, { maxHeapMebibytes }: ThreadBounds, { posted, failed, lost }: Reports): Worked {
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
  child.on('error', lost)
  child.on('exit', (code, signal) => {
    const ending = `a child process ended with ${signal ?? `code ${code}`}`
    if (isAbort(code, signal)) failed(new TaskProcessEnded(ending))
    else lost(new Error(ending))
  })
  return {
    post: (task) => void child.send(task as object, (error) => error && lost(error)),
    end() {
      child.removeAllListeners()
      child.on('error', () => {})
      child.kill('SIGKILL')
    },
  }
}

interface Started {
  /** undefined while it starts. */
  worked?: Worked
  isReady: boolean
}

class QueuedThread<Task, Result> implements Thread<Task, Result> {
  readonly #file: URL
  readonly #bounds: ThreadBounds
  readonly #start: Start
  /** Keyed by `whose`, the next in turn first; no list is empty. */
  readonly #queues = new Map<string, Set<Waiting>>()
  #worker: Started | undefined
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
    const started: Started = { isReady: false }
    this.#worker = started
    // A worker may report after its end: the result of a message sent before.
    const ifCurrent =
      <Report>(act: (report: Report) => void) =>
      (report: Report) => {
        if (this.#worker === started) act(report)
      }
    const lost = ifCurrent((error: Error) => this.#retry(error))
    const failed = ifCurrent((error: Error) => {
      // Before it is ready, a child has no task that could exhaust its heap.
      if (error instanceof TaskProcessEnded && !started.isReady) this.#retry(new Error(error.message))
      else this.#fail(error)
    })
    this.#giveUpAfter(startWithinMs)
    try {
      started.worked = this.#start(this.#file, this.#bounds, { posted: ifCurrent((posted: Posted) => this.#receive(posted)), failed, lost })
    } catch (error) {
      // In a later turn: the next task may fail to start a worker as well, and a long queue would exhaust the stack.
      void nextTurn().then(() => lost(asError(error)))
    }
  }

  #receive(posted: Posted): void {
    if (posted === 'ready') {
      if (this.#worker) this.#worker.isReady = true
      this.#hand()
    } else this.#end(({ resolve, reject }) => ('error' in posted ? reject(new Error(posted.error)) : resolve(posted.result as never)))
  }

  #hand(): void {
    this.#giveUpAfter(this.#bounds.deadlineMs)
    this.#worker?.worked?.post(this.#running?.task, this.#running?.transfer ?? [])
  }

  #giveUpAfter(ms: number): void {
    this.#cancelTimer()
    this.#cancelTimer = this.#bounds.clock.after(ms, () => this.#fail(new TookTooLong(`a thread did not respond within ${ms} ms`)))
  }

  /** Runs the task once more, on a new worker. */
  #retry(error: Error): void {
    const running = this.#running
    if (!running || running.wasLost) return this.#fail(error)
    running.wasLost = true
    this.#drop()
    this.#startWorker()
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
