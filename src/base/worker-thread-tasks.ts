/** The worker side of `openThread` and `openTaskProcess`: a file started as a thread or child process answers its tasks with it. */
import { parentPort, type Transferable } from 'node:worker_threads'
import type { Posted } from './worker-threads.ts'

/** `transfer` lists objects to move instead of copy. */
export function serveTasks<Task, Result>(work: (task: Task) => { result: Result; transfer?: Transferable[] }): void {
  const port = parentPort
  const post = (posted: Posted, transfer: Transferable[] = []) => (port ? port.postMessage(posted, transfer) : process.send?.(posted))
  // A signal to all processes ends the parent in order, which still needs its tasks; without a parent the channel ends.
  if (!port) for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => undefined)
  const answered = port ?? process
  answered.on('message', (task: Task) => {
    try {
      const { result, transfer = [] } = work(task)
      post({ result }, transfer)
    } catch (error) {
      post({ error: error instanceof Error ? (error.stack ?? error.message) : String(error) })
    }
  })
  post('ready')
}
