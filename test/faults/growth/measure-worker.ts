/**
 * Runs readers and tells what they cost in processor time, so that a busy machine changes little. Watched by measure.ts, which does nothing
 * meanwhile: the time is the whole process's, as Linux tells that of one thread in steps of milliseconds only.
 */
import { parentPort, workerData } from 'node:worker_threads'
import { cook, type Recipe } from './input-recipe.ts'
import type { Reader } from './reader.ts'

export interface Job {
  reader: string
  recipe: Recipe
  sizes: readonly number[]
  /** How often the reader reads the same octets, for those too short to be timed once. */
  times: number
  /** The least of so many runs counts. */
  runs: number
  /** What all sizes together may cost. */
  dearMs: number
  /** What takes longer ends the job: larger ones would take longer still. */
  stopMs: number
}

/** Processor milliseconds by size, as far as it went, on a machine with nothing else to do. */
export type Costs = { size: number; ms: number }[]

const port = parentPort
if (!port) throw new Error('measure-worker.ts runs in a worker')
const { module, progress } = workerData as { module: string; progress: Int32Array }
const { readers } = (await import(module)) as { readers: readonly Reader[] }

async function cost(reader: Pick<Reader, 'read'>, octets: Buffer, times: number): Promise<number> {
  const before = process.cpuUsage()
  for (let left = times; left > 0; left--) {
    try {
      const result = reader.read(octets)
      if (result instanceof Promise) await result
    } catch {
      // A refusal is an answer.
    }
  }
  const { user, system } = process.cpuUsage()
  return (user + system - before.user - before.system) / 1000
}

/** What `yard` takes on the machine that the bounds were set on. */
const yardMs = 2.6

/** Work of the kind that readers do: characters, strings, a regular expression, memory. */
function yard(): number {
  let sum = 0
  for (let round = 0; round < 40; round++) {
    const text = `a${round}@b.example, `.repeat(600)
    for (let at = 0; at < text.length; at++) sum += text.charCodeAt(at)
    sum += text.split(',').length + text.replace(/[a-z]+/g, 'x').length
  }
  return sum
}

/** How much slower the machine is now than the one that the bounds were set on: neighbours on the same core cost processor time, too. */
async function slowness(): Promise<number> {
  let ms = Number.POSITIVE_INFINITY
  for (let run = 0; run < 6; run++) ms = Math.min(ms, await cost({ read: yard }, nothing, 1))
  return Math.max(1, ms / yardMs)
}

const nothing = Buffer.alloc(0)

async function measured({ reader: name, recipe, sizes, times, runs, stopMs }: Job): Promise<Costs> {
  const reader = readers.find((one) => one.name === name)
  if (!reader) throw new Error(`there is no reader ${name}`)
  const costs: Costs = []
  const slower = runs > 1 ? await slowness() : 1
  for (const size of sizes) {
    progress[0] = size
    const octets = cook(recipe, size, reader.encoding)
    let ms = Number.POSITIVE_INFINITY
    for (let run = 0; run < runs; run++) ms = Math.min(ms, await cost(reader, octets, times))
    // What is cooked may be a little shorter or longer than asked for.
    costs.push({ size: octets.length, ms: ms / slower })
    if (ms > stopMs) break
  }
  return costs
}

port.on('message', (job: Job) => {
  measured(job).then(
    (costs) => port.postMessage({ costs }),
    (error: unknown) => port.postMessage({ trouble: String(error) }),
  )
})
port.postMessage('ready')
