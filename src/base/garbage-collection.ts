/**
 * Triggers garbage collections. V8 collects only on allocation, so an idle process keeps its last data for hours: 700 MB were seen after
 * one large email to 50 domains.
 */
import { createRequire } from 'node:module'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { type Loop, startLoop } from './background-loop.ts'
import type { Clock } from './clock.ts'
import type { Log } from './log.ts'
import { machineMemory } from './machine-memory.ts'

/** Large work comes in pieces; it counts as finished after this long without another piece. */
const restMs = 5000

interface Collector {
  /** Large work begins; V8 collects during it without help. */
  busy(): void
  /** Large work has paused: collects after a while, unless more work begins. */
  rest(): void
}

export function openCollector(clock: Clock): Collector {
  let collect: (() => void) | undefined
  let cancel = () => {}
  return {
    busy: () => cancel(),
    rest() {
      cancel()
      cancel = clock.after(restMs, () => {
        collect ??= exposed()
        collect()
      })
    },
  }
}

const checkEveryMs = 15_000
/** CPU time for the time that passed. */
const idleBelow = 0.05
/**
 * A process that was idle for this long returns memory. The collection also drops optimised code, whose objects are gone: the next 10,000
 * messages cost half as much again. So pauses between bursts do not count; after a start there is little such code.
 */
const restBeforeMs = 120_000
/** It has grown by this factor since it last returned memory; a collection that frees little is not worth its time. */
const grownBy = 1.1

/** With less memory V8 keeps its own limits: under load `serve` would need 70 to 130 MiB more. */
const ampleOctets = 4 * 2 ** 30
/**
 * At moderate load V8 collects the whole heap each second: the heap and the contents of messages outside it may grow together by only 8 MiB and
 * the size of the young generation. If the heap may grow to three times its size, collections of the young generation free these
 * contents first (docs/decisions/074-growth-of-the-heap.md).
 */
const heapGrowthPercent = 200

/** The flags of V8 on a machine with this much memory, in octets. */
export const v8Flags = (memory: number): string[] => [
  `--gc-memory-reducer-start-delay-ms=${restBeforeMs}`,
  ...(memory > ampleOctets ? [`--heap-growing-percent=${heapGrowthPercent}`] : []),
]

/**
 * Sets how V8 collects garbage in this process. Gives the memory that an idle process does not need back to the system, after its start and
 * after each time of work; one such collection takes some 70 ms. V8's own collections of an idle process, which begin after 8 seconds and
 * drop the same code, are put off until then.
 */
export function startMemoryManagement({ clock, log }: { clock: Clock; log: Log }): Loop {
  for (const flag of v8Flags(machineMemory())) setFlagsFromString(flag)
  let [atMs, spent] = [clock.monotonicMs(), process.cpuUsage()]
  let idleMs = 0
  let leastOctets = 0
  return startLoop({ clock, log, name: 'returning memory', everyMs: checkEveryMs }, async () => {
    const { user, system } = process.cpuUsage(spent)
    const passedMs = clock.monotonicMs() - atMs
    ;[atMs, spent] = [clock.monotonicMs(), process.cpuUsage()]
    idleMs = (user + system) / 1000 / passedMs < idleBelow ? idleMs + passedMs : 0
    if (idleMs < (leastOctets === 0 ? checkEveryMs : restBeforeMs) || process.memoryUsage.rss() < leastOctets * grownBy) return
    exposed()({ type: 'major', execution: 'sync', flavor: 'last-resort' })
    returnFreePages()
    leastOctets = process.memoryUsage.rss()
    // Not at every check of a process that stays idle.
    idleMs = 0
  })
}

/** Of the C library: 1 if it returned memory. */
type MallocTrim = (pad: number) => number

let mallocTrim: MallocTrim | undefined

/**
 * glibc keeps the free pages between blocks in use: a third of the memory of a process after work (docs/performance.md). Other systems, and
 * installations without the optional package, do without
 * (docs/decisions/072-free-pages-of-the-allocator.md).
 */
function returnFreePages(): void {
  mallocTrim ??= openMallocTrim()
  mallocTrim(0)
}

function openMallocTrim(): MallocTrim {
  try {
    const require = createRequire(import.meta.url)
    const koffi = require(`@koromix/koffi-linux-${process.arch}`) as { load(path: string): { func(declaration: string): MallocTrim } }
    return koffi.load('libc.so.6').func('int malloc_trim(size_t pad)')
  } catch {
    return () => 0
  }
}

type Collect = (options?: { type: 'major'; execution: 'sync'; flavor: 'last-resort' }) => void

function exposed(): Collect {
  setFlagsFromString('--expose-gc')
  return runInNewContext('gc') as Collect
}
