/**
 * Work that would hold the event loop, on a thread of its own: one task at a time, those who ask take turns, and a task that overruns
 * its deadline ends with its thread. The thread starts when it is needed and ends when it idles, which gives its memory back.
 */
import { type Transferable, Worker } from 'node:worker_threads'
import type { Clock } from './clock.ts'

export interface Thread<Task, Result> {
  /** Tasks with the same `whose` wait for each other, and keep no one else waiting. What is in `transfer` is gone for the caller. */
  run(whose: string, task: Task, transfer?: Transferable[]): Promise<Result>
  /** What runs and what waits is rejected, and nothing runs any more. */
  stop(): void
}

export interface ThreadBounds {
  clock: Clock
  /** From when the thread has the task; starting the thread has a time of its own. */
  deadlineMs: number
  idleMs: number
  /** As much as Node allows where nothing is said. What is transferred lies elsewhere. */
  mostHeapMebibytes?: number
}

/** The task was given up, and might succeed on a machine with less to do. */
export class TookTooLong extends Error {}

interface Waiting {
  whose: string
  task: unknown
  transfer: Transferable[]
  resolve: (result: never) => void
  reject: (error: Error) => void
}

/** What the file of a thread posts back, by `serveTasks`. */
export type Posted = 'ready' | { result: unknown } | { error: string }

const startWithinMs = 30_000

/** `file` answers every message with `serveTasks`. */
export function openThread<Task, Result>(file: URL, { clock, deadlineMs, idleMs, mostHeapMebibytes }: ThreadBounds): Thread<Task, Result> {
  /** By whose they are, the next in turn first; none of the lists is empty. */
  const queues = new Map<string, Set<Waiting>>()
  let worker: { thread: Worker; isReady: boolean } | undefined
  let running: Waiting | undefined
  let isStopped = false
  let cancelTimer = () => {}

  const drop = () => {
    const ended = worker?.thread
    worker = undefined
    ended?.removeAllListeners()
    // What a thread says while it ends is about nothing that still runs.
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
    cancelTimer = clock.after(ms, () => fail(new TookTooLong(`a thread did not answer within ${ms} ms`)))
  }
  const hand = () => {
    giveUpAfter(deadlineMs)
    worker?.thread.postMessage(running?.task, running?.transfer ?? [])
  }
  const start = () => {
    const thread = new Worker(file, {
      // It needs no setting, so no secret is there.
      env: {},
      resourceLimits: mostHeapMebibytes === undefined ? {} : { maxOldGenerationSizeMb: mostHeapMebibytes },
    })
    thread.unref()
    thread.on('message', (posted: Posted) => {
      if (posted === 'ready') {
        if (worker) worker.isReady = true
        hand()
      } else end(({ resolve, reject }) => ('error' in posted ? reject(new Error(posted.error)) : resolve(posted.result as never)))
    })
    thread.on('error', (error) => fail(error instanceof Error ? error : new Error(String(error))))
    thread.on('exit', (code) => fail(new Error(`a thread ended with ${code}`)))
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
    // Behind the others.
    queues.delete(whose)
    if (waiting.size > 0) queues.set(whose, waiting)
    running = taken
    if (worker?.isReady) hand()
    else if (!worker) start()
  }
  return {
    run: (whose, task, transfer = []) =>
      new Promise<Result>((resolve, reject) => {
        if (isStopped) return reject(new Error('the thread was stopped'))
        const waiting = queues.get(whose) ?? new Set()
        queues.set(whose, waiting.add({ whose, task, transfer, resolve, reject }))
        next()
      }),
    stop() {
      isStopped = true
      const given = [...queues.values()].flatMap((waiting) => [...waiting])
      queues.clear()
      fail(new Error('the thread was stopped'))
      cancelTimer()
      for (const { reject } of given) reject(new Error('the thread was stopped'))
    },
  }
}
