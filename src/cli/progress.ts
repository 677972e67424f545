/** The progress of a long command on standard error: one line in place on a terminal, a line every ten seconds elsewhere. */
import type { Clock } from '#base'

const terminalEveryMs = 200
const lineEveryMs = 10_000

/** Standard error, or the test's. */
interface ProgressStream {
  isTTY?: boolean
  write(text: string): unknown
}

interface Progress {
  /** Shows this state, if the last one was shown long enough ago. */
  show(state: string): void
  /** Removes the line of a terminal. */
  end(): void
}

/** A command that ends within ten seconds writes no line where standard error is not a terminal. */
export function openProgress(clock: Clock, stream: ProgressStream = process.stderr): Progress {
  const isTerminal = stream.isTTY === true
  let nextMs = isTerminal ? Number.NEGATIVE_INFINITY : clock.monotonicMs() + lineEveryMs
  let isShown = false
  return {
    show(state) {
      const nowMs = clock.monotonicMs()
      if (nowMs < nextMs) return
      nextMs = nowMs + (isTerminal ? terminalEveryMs : lineEveryMs)
      isShown = true
      stream.write(isTerminal ? `\r\x1b[K${state}` : `${state}\n`)
    },
    end() {
      if (isTerminal && isShown) stream.write('\r\x1b[K')
    },
  }
}
