/** An answer in time, whatever the store does: a database that is frozen rather than away answers nothing and refuses nothing. */
import { type Clock, Refusal } from '#base'

/**
 * What `work` comes to, or `internal_error` worth repeating after `limitMs`. The work itself goes on: a commit is never cancelled, and
 * an idempotency key tells the caller who repeats what became of it.
 */
export function within<T>(work: Promise<T>, limitMs: number, clock: Clock): Promise<T> {
  return new Promise((resolve, reject) => {
    const cancel = clock.after(limitMs, () =>
      reject(new Refusal('internal_error', { message: 'the database does not answer', shouldRetry: true, retryAfterSeconds: 1 })),
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
