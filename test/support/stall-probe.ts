/**
 * Measures how long an API's event loop is busy with other work. In a thread of its own, because the test's thread sends and receives the
 * large bodies meanwhile: while that one is late, everything that the service does would count as one stall.
 */
import { readFile } from 'node:fs/promises'
import { setTimeout as wait } from 'node:timers/promises'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { threadUnitMs } from './cpu-time.ts'

interface Probed {
  url: string
  /** The process of the API, whose main thread runs its event loop. */
  pid: number
}

/** Between two measurements of the unit; each takes some 30 ms. */
const unitEveryMs = 1000
const probeEveryMs = 20

/**
 * Requests /healthz every 20 ms while `work` runs. Resolves with its result, and the most processor time that the event loop used for other
 * work before an answer, in units of a computation that is measured meanwhile: other work on the machine makes both slower.
 */
export async function withMaxStall<Result>(probed: Probed, work: () => Promise<Result>): Promise<{ result: Result; stall: number }> {
  const thread = new Worker(new URL(import.meta.url), { workerData: probed })
  const heard = () =>
    new Promise<unknown>((resolve, reject) => {
      thread.once('message', resolve)
      thread.once('error', reject)
    })
  // The stall of a body that arrives before the first measurement would not be seen.
  await heard()
  const working = work().finally(() => thread.postMessage('stop'))
  const [result, stall] = await Promise.all([working, heard()])
  return { result, stall: stall as number }
}

async function probe({ url, pid }: Probed): Promise<number> {
  /** Processor time of one thread. On a busy machine it says more than elapsed time. */
  const loopCpuMs = async () => Number((await readFile(`/proc/${pid}/task/${pid}/schedstat`, 'utf8')).split(' ')[0]) / 1e6
  let isOver = false
  parentPort?.once('message', () => (isOver = true))
  const units = [threadUnitMs()]
  let unitAtMs = performance.now()
  let longestMs = 0
  await (await fetch(`${url}/healthz`)).text()
  parentPort?.postMessage('ready')
  while (!isOver) {
    const before = await loopCpuMs()
    await (await fetch(`${url}/healthz`)).text()
    longestMs = Math.max(longestMs, (await loopCpuMs()) - before)
    await wait(probeEveryMs)
    if (performance.now() - unitAtMs < unitEveryMs) continue
    units.push(threadUnitMs())
    unitAtMs = performance.now()
  }
  const median = units.sort((a, b) => a - b)[units.length >> 1] as number
  return Math.round(longestMs / median)
}

if (!isMainThread) parentPort?.postMessage(await probe(workerData as Probed))
