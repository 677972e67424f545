/**
 * Runs work that would block the event loop on a thread: one task at a time, callers taking turns. A task that exceeds its deadline is
 * ended with its thread. The thread starts on demand and ends when idle, which frees its memory.
 */
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
  /** Defaults to Node's limit. Transferred memory is not counted. */
  maxHeapMebibytes?: number
}

/** The task exceeded its deadline, and might succeed on a less busy machine. */
export class TookTooLong extends Error {}

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
  new QueuedThread(isCompiled ? new URL(file.href.replace(/\.ts$/, '.js')) : file, bounds)

const isCompiled = import.meta.url.endsWith('.js')

class QueuedThread<Task, Result> implements Thread<Task, Result> {
  readonly #file: URL
  readonly #bounds: ThreadBounds
  /** Keyed by `whose`, the next in turn first; no list is empty. */
  readonly #queues = new Map<string, Set<Waiting>>()
  #worker: { thread: Worker; isReady: boolean } | undefined
  #running: Waiting | undefined
  #isStopped = false
  #cancelTimer = () => {}

  constructor(file: URL, bounds: ThreadBounds) {
    this.#file = file
    this.#bounds = bounds
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
    else if (!this.#worker) this.#start()
  }

  #start(): void {
    const { maxHeapMebibytes } = this.#bounds
    const thread = new Worker(this.#file, {
      // The thread needs no settings, so no secret is passed to it.
      env: {},
      resourceLimits: maxHeapMebibytes === undefined ? {} : { maxOldGenerationSizeMb: maxHeapMebibytes },
    })
    thread.unref()
    thread.on('message', (posted: Posted) => this.#receive(posted))
    thread.on('error', (error) => this.#fail(error instanceof Error ? error : new Error(String(error))))
    thread.on('exit', (code) => this.#fail(new Error(`a thread exited with code ${code}`)))
    this.#worker = { thread, isReady: false }
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
    this.#worker?.thread.postMessage(this.#running?.task, this.#running?.transfer ?? [])
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
    const ended = this.#worker?.thread
    this.#worker = undefined
    ended?.removeAllListeners()
    // Errors of an ending thread concern no running task.
    ended?.on('error', () => {})
    void ended?.terminate()
  }
}
