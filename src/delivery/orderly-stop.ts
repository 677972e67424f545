/**
 * The end of a process that stops in order: its transactions end, then their outcomes are recorded. A server that has the final dot gets more
 * time than the others, because a message that is cut off there may be sent twice.
 */
import { type Clock, pause } from '#base'
import type { Dispatch } from './dispatch.ts'
import type { InFlight } from './in-flight.ts'
import type { Recorder } from './record-outcomes.ts'

/** Their sum is less than the time that the parent process waits (`#base`), and that less than a service manager's 90 s. */
export interface StopLimits {
  /** For transactions before their final dot. Cut off, they are not sent, and sent later by another process. */
  transactionsMs: number
  /** From the beginning, for servers to answer a final dot. Cut off, the outcome is unknown. */
  finalRepliesMs: number
  /** For the last records, if the database does not answer. */
  recordsMs: number
}

const usualLimits: StopLimits = { transactionsMs: 25_000, finalRepliesMs: 60_000, recordsMs: 5000 }
const lookEveryMs = 10

interface StoppingDeps {
  clock: Clock
  inFlight: Pick<InFlight, 'size'>
  recorder: Pick<Recorder, 'waiting'>
  dispatch: Pick<Dispatch, 'destroy'>
}

/** To be called when no more mail is claimed and no more transactions begin. */
export async function finishInFlight(
  { clock, inFlight, recorder, dispatch }: StoppingDeps,
  bounds: Partial<StopLimits> = {},
): Promise<void> {
  const limits = { ...usualLimits, ...bounds }
  const beganMs = clock.monotonicMs()
  const elapsedMs = () => clock.monotonicMs() - beganMs
  const within = async (limitMs: number, isOver: () => boolean) => {
    while (!isOver() && elapsedMs() < limitMs) await pause(clock, lookEveryMs)
  }
  await within(limits.transactionsMs, () => inFlight.size === 0)
  if (inFlight.size > 0) {
    await within(limits.finalRepliesMs, () => dispatch.destroy('before the final dot') === 0)
    dispatch.destroy('all')
  }
  // Results arrive after this turn, and the recorder waits for more of them: until it has them, they are in flight.
  const endMs = Math.max(elapsedMs(), limits.transactionsMs) + limits.recordsMs
  await within(endMs, () => inFlight.size === 0 && recorder.waiting === 0)
}
