/** Recipients that leave this process's hands unsent: back to the spool, however long the database is away. */
import { type Clock, type Log, pause } from '#base'
import { CommitUnknown, type Db } from '#db'
import { type Claimed, giveBack, postpone } from '#spool'
import type { Hands } from './hands.ts'

const retryEveryMs = 200

export interface LetGo {
  /** Not sent, and not ours to send any more. */
  abandoned: (claimed: readonly Claimed[]) => void
  /** Not sent, and not to be claimed again for so long; no attempt. */
  putOff: (claimed: readonly Claimed[], forMs: number, waitsFor: string) => void
}

export function openLetGo({ db, clock, log, hands }: { db: Db; clock: Clock; log: Log; hands: Hands }): LetGo {
  /** In hand until it is back: what nobody holds and the spool calls claimed would lie there. */
  const letGo = async (claimed: readonly Claimed[], back: () => Promise<void>) => {
    for (;;) {
      try {
        await back()
        break
      } catch (error) {
        log.warn({ err: error, emails: claimed.length }, 'what was not sent could not be given back yet')
        // Perhaps it was, and is claimed again by now: under the same epoch a repetition would take it back from whoever sends it. If it
        // was not, it is found by the next sweep.
        if (error instanceof CommitUnknown) break
        await pause(clock, retryEveryMs)
      }
    }
    for (const one of claimed) hands.finish(one)
  }
  return {
    abandoned: (claimed) => void letGo(claimed, () => giveBack(db, claimed)),
    putOff(claimed, forMs, waitsFor) {
      const due = new Date(clock.nowMs() + forMs)
      void letGo(claimed, () => postpone(db, claimed, { due, waitsFor }))
    },
  }
}
