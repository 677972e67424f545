/** The search index of days that have ended, made on a timetable of its own: it may take minutes, and keeps no other chore from its turn. */
import { type Clock, type Log, pause } from '#base'
import type { Db } from '#db'
import { indexEndedDays } from '#emails'

const everyMs = 600_000

export function startIndexing({ db, clock, log }: { db: Db; clock: Clock; log: Log }): { stop(): Promise<void> } {
  const stopping = new AbortController()
  const loop = async () => {
    while (!stopping.signal.aborted) {
      await indexEndedDays(db, clock.nowMs()).catch((error) =>
        log.warn({ err: error }, 'ended days got no search index; it is tried again'),
      )
      await pause(clock, everyMs, stopping.signal)
    }
  }
  void loop()
  // An index under way is not waited for: it ends with the connection, or the next process makes it again.
  return { stop: async () => stopping.abort() }
}
