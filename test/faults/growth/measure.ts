/** Measures readers in a watched thread. A reader that does not end is terminated and reported. */
import { Worker } from 'node:worker_threads'
import type { Costs, Job } from './measure-worker.ts'

export interface Measure {
  /** `endless`: the measurement was aborted during the input of that size. */
  run(job: Job): Promise<{ costs: Costs; endless?: { size: number; ms: number } }>
  close(): Promise<void>
}

/**
 * Multiple of the allowed cost, in processor time rather than elapsed time, so that a busy machine aborts no reader. A cost this far above
 * the limit is not a measuring error.
 */
const givenUpTimes = 8
const minMs = 2_000
const lookEveryMs = 250

/** `module` is a module that exports `readers`. */
export function openMeasure(module: string): Measure {
  const progress = new Int32Array(new SharedArrayBuffer(4))
  let thread: Promise<Worker> | undefined

  const started = (): Promise<Worker> =>
    new Promise((resolve, reject) => {
      const worker = new Worker(new URL('./measure-worker.ts', import.meta.url), { workerData: { module, progress } })
      worker.once('message', () => resolve(worker))
      worker.once('error', reject)
    })
  const cpuMs = async (worker: Worker) => {
    const { user, system } = await worker.cpuUsage()
    return (user + system) / 1000
  }

  return {
    async run(job) {
      thread ??= started()
      const worker = await thread
      const from = await cpuMs(worker)
      return new Promise((resolve, reject) => {
        const settle = () => {
          clearInterval(watch)
          worker.removeAllListeners('message').removeAllListeners('error')
        }
        const look = async () => {
          const ms = (await cpuMs(worker)) - from
          if (ms < minMs + givenUpTimes * job.runs * job.dearMs) return
          settle()
          thread = undefined
          await worker.terminate()
          resolve({ costs: [], endless: { size: progress[0] ?? 0, ms } })
        }
        const watch = setInterval(() => void look().catch(() => undefined), lookEveryMs)
        worker.once('message', (answer: { costs: Costs } | { trouble: string }) => {
          settle()
          if ('costs' in answer) resolve(answer)
          else reject(new Error(answer.trouble))
        })
        worker.once('error', (error) => {
          settle()
          thread = undefined
          reject(error)
        })
        worker.postMessage(job)
      })
    },
    async close() {
      await (await thread)?.terminate()
      thread = undefined
    },
  }
}
