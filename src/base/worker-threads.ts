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

/** `file` answers every message with `serveTasks`. */
export function openThread<Task, Result>(file: URL, { clock, deadlineMs, idleMs, maxHeapMebibytes }: ThreadBounds): Thread<Task, Result> {
  /** Keyed by `whose`, the next in turn first; no list is empty. */
  const queues = new Map<string, Set<Waiting>>()
  let worker: { thread: Worker; isReady: boolean } | undefined
  let running: Waiting | undefined
  let isStopped = false
  let cancelTimer = () => {}

  const drop = () => {
    const ended = worker?.thread
    worker = undefined
    ended?.removeAllListeners()
    // Errors of an ending thread concern no running task.
    ended?.on('error', () => {})
    void ended?.terminate()
  }
  const end = (settle: (ended: Waiting) => void) => {
    cancelTimer()
    const ended = running
    running = undefined
    if (ended) settle(ended)
    if (queues.size > 0) next()
    else cancelTimer = clock.after(idleMs, drop)
  }
  const fail = (error: Error) => {
    drop()
    end(({ reject }) => reject(error))
  }
  const giveUpAfter = (ms: number) => {
    cancelTimer()
    cancelTimer = clock.after(ms, () => fail(new TookTooLong(`a thread did not respond within ${ms} ms`)))
  }
  const hand = () => {
    giveUpAfter(deadlineMs)
    worker?.thread.postMessage(running?.task, running?.transfer ?? [])
  }
  const start = () => {
    const thread = new Worker(file, {
      // The thread needs no settings, so no secret is passed to it.
      env: {},
      resourceLimits: maxHeapMebibytes === undefined ? {} : { maxOldGenerationSizeMb: maxHeapMebibytes },
    })
    thread.unref()
    thread.on('message', (posted: Posted) => {
      if (posted === 'ready') {
        if (worker) worker.isReady = true
        hand()
      } else end(({ resolve, reject }) => ('error' in posted ? reject(new Error(posted.error)) : resolve(posted.result as never)))
    })
    thread.on('error', (error) => fail(error instanceof Error ? error : new Error(String(error))))
    thread.on('exit', (code) => fail(new Error(`a thread exited with code ${code}`)))
    worker = { thread, isReady: false }
    giveUpAfter(startWithinMs)
  }
  const next = () => {
    const [first] = queues
    if (running || !first) return
    const [whose, waiting] = first
    const [taken] = waiting
    if (!taken) return
    waiting.delete(taken)
    // Moves to the end of the turn order.
    queues.delete(whose)
    if (waiting.size > 0) queues.set(whose, waiting)
    running = taken
    if (worker?.isReady) hand()
    else if (!worker) start()
  }
  return {
    run: (whose, task, transfer = []) =>
      new Promise<Result>((resolve, reject) => {
        if (isStopped) return reject(new Error('the thread has stopped'))
        const waiting = queues.get(whose) ?? new Set()
        queues.set(whose, waiting.add({ whose, task, transfer, resolve, reject }))
        next()
      }),
    stop() {
      isStopped = true
      const given = [...queues.values()].flatMap((waiting) => [...waiting])
      queues.clear()
      fail(new Error('the thread has stopped'))
      cancelTimer()
      for (const { reject } of given) reject(new Error('the thread has stopped'))
    },
  }
}
