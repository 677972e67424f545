/**
 * Requests that wait for test mail. Each looks into the inbox again and again, which is a search. If many of a tenant wait in this process,
 * each looks less often, so that together they cost as much as a few.
 */
import { type Clock, pause } from '#base'

const lookEveryMs = 200
/** So many requests of a tenant look at the shortest interval. */
const maxAtFullRate = 4

interface Wait {
  /** null: the organisation. */
  tenantId: string | null
  forMs: number
  clock: Clock
  /** Ends the wait early. */
  gone: AbortSignal | undefined
}

export interface InboxWaits {
  /** Resolves once `look` has returned true, or after a last look when the time is up. */
  until(look: () => Promise<boolean>, wait: Wait): Promise<void>
}

export function openInboxWaits(): InboxWaits {
  const waiting = new Map<string, number>()
  const count = (whose: string, change: 1 | -1) => {
    const now = (waiting.get(whose) ?? 0) + change
    if (now > 0) waiting.set(whose, now)
    else waiting.delete(whose)
  }
  return {
    async until(look, { tenantId, forMs, clock, gone }) {
      const whose = tenantId ?? ''
      const untilMs = clock.monotonicMs() + forMs
      count(whose, 1)
      try {
        while (!gone?.aborted) {
          const beganMs = clock.monotonicMs()
          if (await look()) return
          const nowMs = clock.monotonicMs()
          if (nowMs >= untilMs) return
          await pause(clock, Math.min(untilMs - nowMs, intervalOf(waiting.get(whose) ?? 1, nowMs - beganMs)), gone)
        }
      } finally {
        count(whose, -1)
      }
    },
  }
}

/** With slow searches too, no more than `maxAtFullRate` of them run at a time. */
function intervalOf(waiting: number, tookMs: number): number {
  const share = Math.max(1, waiting / maxAtFullRate)
  return Math.max(lookEveryMs * share, tookMs * (share - 1))
}
