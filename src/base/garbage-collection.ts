/**
 * Triggers a garbage collection after large work. V8 collects only on allocation, so an idle process keeps its last data for hours: 700 MB
 * were seen after one large email to 50 domains.
 */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import type { Clock } from './clock.ts'

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

function exposed(): () => void {
  setFlagsFromString('--expose-gc')
  return runInNewContext('gc') as () => void
}
