/** Answers in time even if the database freezes and returns neither a result nor an error. */
import { type Clock, Refusal } from '#base'

/**
 * Returns the result of `work`, or `internal_error`, which may be retried, after `limitMs`. The work continues: a commit is never
 * cancelled, and a retry with the same idempotency key gets its result.
 */
export function within<T>(work: Promise<T>, limitMs: number, clock: Clock): Promise<T> {
  return new Promise((resolve, reject) => {
    const cancel = clock.after(limitMs, () =>
      reject(new Refusal('internal_error', { message: 'the database does not respond', shouldRetry: true, retryAfterSeconds: 1 })),
    )
    work.then(
      (value) => {
        cancel()
        resolve(value)
      },
      (error: unknown) => {
        cancel()
        reject(error)
      },
    )
  })
}
