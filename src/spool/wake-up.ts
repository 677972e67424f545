/**
 * Wakes processes that wait for mail. They look often while there is work, and rarely after a while without work. A notification is a
 * hint that there is work again: one that is lost costs the time until they look by themselves.
 */
import type { Clock, Loop } from '#base'
import type { Db } from '#db'

const channel = 'mail_queued'
/** Notifications of one process under load. */
const notifyEveryMs = 500
/** How long to look often after the last work or notification. Longer than `notifyEveryMs`, so that no mail falls between the two. */
const awakeMs = 2000

/** Returns a function to call after each commit of mail. It never rejects and never waits. */
export function openWaker({ db, clock }: { db: Pick<Db, 'notify'>; clock: Clock }): () => void {
  let notifiedMs = Number.NEGATIVE_INFINITY
  return () => {
    const nowMs = clock.monotonicMs()
    if (nowMs - notifiedMs < notifyEveryMs) return
    notifiedMs = nowMs
    db.notify(channel, '').catch(() => {
      notifiedMs = Number.NEGATIVE_INFINITY
    })
  }
}

export interface Wakefulness {
  /** `busyMs` while there was work lately, `idleMs` otherwise: the delay before looking again. */
  delayMs(busyMs: number, idleMs: number): number
  /** There was work. */
  stayAwake(): void
  /** The loop's next turn begins at once at the first notification after a while without one, and once more after the last of several. */
  wakes(loop: Pick<Loop, 'nudge'>): void
  close(): Promise<void>
}

export async function openWakefulness({ db, clock }: { db: Pick<Db, 'listen'>; clock: Clock }): Promise<Wakefulness> {
  const woken: Pick<Loop, 'nudge'>[] = []
  let untilMs = clock.monotonicMs() + awakeMs
  const stayAwake = () => {
    untilMs = clock.monotonicMs() + awakeMs
  }
  /** Of notifications alone: work that one loop found has woken no other. */
  let wokenUntilMs = untilMs
  const nudge = () => {
    for (const loop of woken) loop.nudge()
  }
  let cancel = () => {}
  const wake = () => {
    const isWoken = clock.monotonicMs() < wokenUntilMs
    stayAwake()
    wokenUntilMs = untilMs
    if (!isWoken) nudge()
    // A turn that takes longer than the time awake has not seen the notifications that came meanwhile, and would rest after it.
    cancel()
    cancel = clock.after(awakeMs, nudge)
  }
  const stopListening = await db.listen(channel, wake, { onReconnect: wake })
  return {
    delayMs: (busyMs, idleMs) => (clock.monotonicMs() < untilMs ? busyMs : idleMs),
    stayAwake,
    wakes: (loop) => void woken.push(loop),
    async close() {
      cancel()
      await stopListening()
    },
  }
}
