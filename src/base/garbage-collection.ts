/**
 * Triggers garbage collections. V8 collects only on allocation, so an idle process keeps its last data for hours: 700 MB were seen after
 * one large email to 50 domains.
 */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { type Loop, startLoop } from './background-loop.ts'
import type { Clock } from './clock.ts'
import type { Log } from './log.ts'

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

/** A process that was idle for this long returns memory. */
const trimEveryMs = 15_000
/** CPU time for the time that passed. */
const idleBelow = 0.05
/** It has grown by this factor since it last returned memory; a collection that frees little is not worth its time. */
const grownBy = 1.15

/** Returns the memory that an idle process does not need to the system, after its start and after each time of work. Takes some 70 ms. */
export function startMemoryTrim({ clock, log }: { clock: Clock; log: Log }): Loop {
  let [atMs, spent] = [clock.monotonicMs(), process.cpuUsage()]
  let leastOctets = 0
  return startLoop({ clock, log, name: 'returning memory', everyMs: trimEveryMs }, async () => {
    const { user, system } = process.cpuUsage(spent)
    const usage = (user + system) / 1000 / (clock.monotonicMs() - atMs)
    ;[atMs, spent] = [clock.monotonicMs(), process.cpuUsage()]
    if (usage >= idleBelow || process.memoryUsage.rss() < leastOctets * grownBy) return
    exposed()({ type: 'major', execution: 'sync', flavor: 'last-resort' })
    leastOctets = process.memoryUsage.rss()
  })
}

type Collect = (options?: { type: 'major'; execution: 'sync'; flavor: 'last-resort' }) => void

function exposed(): Collect {
  setFlagsFromString('--expose-gc')
  return runInNewContext('gc') as Collect
}
