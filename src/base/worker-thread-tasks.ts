/** The worker side of `openThread`: a file started as a thread answers its tasks with it. */
import { parentPort, type Transferable } from 'node:worker_threads'
import type { Posted } from './worker-threads.ts'

/** `transfer` lists objects to move instead of copy. */
export function serveTasks<Task, Result>(work: (task: Task) => { result: Result; transfer?: Transferable[] }): void {
  const port = parentPort
  const post = (posted: Posted, transfer: Transferable[] = []) => port?.postMessage(posted, transfer)
  port?.on('message', (task: Task) => {
    try {
      const { result, transfer = [] } = work(task)
      post({ result }, transfer)
    } catch (error) {
      post({ error: error instanceof Error ? (error.stack ?? error.message) : String(error) })
    }
  })
  post('ready')
}
