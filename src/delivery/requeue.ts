/**
 * Requeues recipients that were claimed and not sent: returns them to the spool, and retries however long the database is unavailable.
 */
import { type Clock, type Log, pause } from '#base'
import { CommitUnknown, type Db } from '#db'
import { type Claimed, postpone, requeueUnsent } from '#spool'
import type { InFlight } from './in-flight.ts'

const retryEveryMs = 200

export interface Requeue {
  /** Not sent, and this process must not send them any more. */
  requeue: (claimed: readonly Claimed[]) => void
  /** Not sent, and not to be claimed again for `forMs`; counts as no attempt. */
  postpone: (claimed: readonly Claimed[], forMs: number, delayReason: string) => void
}

export function openRequeue({ db, clock, log, inFlight }: { db: Db; clock: Clock; log: Log; inFlight: InFlight }): Requeue {
  /** The recipients stay in flight until they are requeued: a row that is claimed but not in flight would stay in the spool unsent. */
  const untilRequeued = async (claimed: readonly Claimed[], back: () => Promise<void>) => {
    for (;;) {
      try {
        await back()
        break
      } catch (error) {
        log.warn({ err: error, emails: claimed.length }, 'failed to requeue unsent recipients; retrying')
        // The requeue may have succeeded, and the row may be claimed again by now. Under the same epoch a repetition would take it from
        // that claim. If it failed, the next sweep finds it.
        if (error instanceof CommitUnknown) break
        await pause(clock, retryEveryMs)
      }
    }
    for (const one of claimed) inFlight.remove(one)
  }
  return {
    requeue: (claimed) => void untilRequeued(claimed, () => requeueUnsent(db, claimed)),
    postpone(claimed, forMs, delayReason) {
      const due = new Date(clock.nowMs() + forMs)
      void untilRequeued(claimed, () => postpone(db, claimed, { due, delayReason }))
    },
  }
}
