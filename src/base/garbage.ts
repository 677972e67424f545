/**
 * Garbage of large work. V8 collects when something is allocated, so a process that has nothing more to do keeps for hours what it had
 * in its hands last: 700 MB were seen after one large email to 50 domains.
 */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import type { Clock } from './clock.ts'

/** Large work comes in pieces: the last one is over when none has followed for so long. */
const restMs = 5000

interface Collector {
  /** Large work begins: it needs no help to be collected. */
  busy(): void
  /** It is over, for now: collected in a while, unless there is more. */
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
