/**
 * Resolves an unknown commit: the connection was lost after the commit was sent, so the write may or may not have happened. The write is
 * repeated until its result is known. A repeated write must recognise its own rows, or must be idempotent.
 */
import { type Clock, pause } from '#base'
import { CommitUnknown, DatabaseUnreachable, isContentRejected, NotDurable } from './errors.ts'

const retryEveryMs = 100

/** The write's result was still unknown at the deadline. */
export class StillUnknown extends Error {
  constructor(cause: unknown) {
    super('the result of a commit is still unknown', { cause })
    this.name = 'StillUnknown'
  }
}

/**
 * Whether a failed write may be committed all the same, or may be after a repetition. If an earlier try may be committed, a transient
 * error does not show whether it was; a rejection of the content does, because the server has processed the statement.
 */
const leavesUnknown = (error: unknown, mayBeWritten: boolean): boolean =>
  error instanceof CommitUnknown ||
  error instanceof DatabaseUnreachable ||
  (mayBeWritten && !isContentRejected(error) && !(error instanceof NotDurable))

export interface Resolution {
  clock: Clock
  /** Whether to repeat the write after this error, which is thrown otherwise. The default repeats while the result is unknown. */
  isRepeatable?: (error: unknown, mayBeWritten: boolean) => boolean
  /** By the monotonic clock; after it, the next failure throws `StillUnknown`. */
  deadlineMs?: number
}

/**
 * Runs `write`, which commits all of its rows together, until its result is known, and returns that. `mayBeWritten`: an earlier try failed
 * and may be committed. `write` then looks its rows up, or recognises that it collides with itself.
 */
export async function resolveUnknown<T>(
  write: (mayBeWritten: boolean) => Promise<T>,
  { clock, isRepeatable = leavesUnknown, deadlineMs = Number.POSITIVE_INFINITY }: Resolution,
): Promise<T> {
  for (let mayBeWritten = false; ; mayBeWritten = true) {
    try {
      return await write(mayBeWritten)
    } catch (error) {
      if (!isRepeatable(error, mayBeWritten)) throw error
      if (clock.monotonicMs() >= deadlineMs) throw new StillUnknown(error)
      await pause(clock, retryEveryMs)
    }
  }
}
