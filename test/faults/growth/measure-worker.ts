/**
 * Runs readers and measures their cost in processor time, so that a busy machine changes little. measure.ts watches it and is idle
 * meanwhile, because the time is that of the whole process: Linux reports the time of one thread only in steps of milliseconds.
 */
import { parentPort, workerData } from 'node:worker_threads'
import { cook, type Recipe } from './input-recipe.ts'
import type { Reader } from './reader.ts'

export interface Job {
  reader: string
  recipe: Recipe
  sizes: readonly number[]
  /** Number of times the reader reads the same octets, for inputs too short to be timed once. */
  times: number
  /** Number of runs; the shortest counts. */
  runs: number
  /** Allowed cost of all sizes together. */
  dearMs: number
  /** A run that takes longer ends the job: larger sizes would take longer still. */
  stopMs: number
}

/** Processor milliseconds by size, up to the last size measured, scaled to an idle machine. */
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
      // A refusal is a valid result.
    }
  }
  const { user, system } = process.cpuUsage()
  return (user + system - before.user - before.system) / 1000
}

/** Cost of `yard` on the machine on which the limits were set. */
const yardMs = 2.6

/** A sample of typical work of a reader: characters, strings, a regular expression, memory. */
function yard(): number {
  let sum = 0
  for (let round = 0; round < 40; round++) {
    const text = `a${round}@b.example, `.repeat(600)
    for (let at = 0; at < text.length; at++) sum += text.charCodeAt(at)
    sum += text.split(',').length + text.replace(/[a-z]+/g, 'x').length
  }
  return sum
}

/** Slowdown compared with the machine on which the limits were set: other processes on the same core cost processor time, too. */
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
    // A cooked input may be slightly shorter or longer than the requested size.
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
