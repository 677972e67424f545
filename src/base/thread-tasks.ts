/** The other side of `openThread`: what a file that is started as a thread does with its tasks. */
import { parentPort, type Transferable } from 'node:worker_threads'
import type { Posted } from './threads.ts'

/** `transfer` names what is handed over instead of copied. */
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
