/**
 * Moves a tenant's test clock forward in short steps: to the next scheduled email, retry, expiry or late report, then a wait until the due work is done.
 * Everything due within the jump therefore happens in order, each at its simulated time.
 */
import { type Clock, pause } from '#base'
import type { Db } from '#db'
import type { LimitSettings } from '#limits'
import { getTestClockOffsetMs, moveTestClock, readTestQueue, releaseScheduled } from '#spool'
import { expireHolds } from './expire-queued.ts'
import { advanceSimulatedEvents, readSimulatedEvents } from './simulated-events.ts'

/**
 * Events due this soon after the next one happen in the same step. The value grows with each step, so that any jump takes a few hundred
 * steps at most.
 */
const togetherMs = 1000
const growth = 1.05
const lookEveryMs = 15

/**
 * Returns the clock's time after the call. It is earlier than requested if `withinMs` of real time were not enough: mail cannot be
 * delivered (a pause, no delivery process), or there is too much of it. Everything due until then has run; another call continues.
 */
export async function advanceTestClock(
  { db, clock, limitSettings }: { db: Db; clock: Clock; limitSettings: LimitSettings },
  tenantId: string,
  forMs: number,
  withinMs: number,
): Promise<Date> {
  const untilMs = clock.monotonicMs() + withinMs

  const read = async () => {
    const nowMs = clock.nowMs()
    const [queue, simulated] = await Promise.all([readTestQueue(db, tenantId, nowMs), readSimulatedEvents(db, tenantId, nowMs)])
    const next = [queue.nextDueAt, simulated.nextDueAt].flatMap((at) => (at ? [at.getTime() - nowMs] : []))
    return { busy: queue.busy + simulated.busy, nextInMs: next.length > 0 ? Math.min(...next) : undefined }
  }

  /** Waits until no work is due, then returns the ms until the next due time. Undefined when the time is up. */
  const settle = async () => {
    for (;;) {
      const { busy, nextInMs } = await read()
      if (busy === 0) return { nextInMs }
      if (clock.monotonicMs() >= untilMs) return undefined
      // No delivery worker releases scheduled mail or expires held mail, so it is done here; only this test mail, because the clock of this
      // machine may be ahead.
      await releaseScheduled(db, await limitSettings.send(), clock.nowMs(), { testMailOf: tenantId })
      await expireHolds(db, clock.nowMs(), tenantId)
      await pause(clock, lookEveryMs)
    }
  }

  const move = (stepMs: number) =>
    db.transaction(async (tx) => {
      await advanceSimulatedEvents(tx, tenantId, stepMs)
      await moveTestClock(tx, tenantId, stepMs, clock.nowMs())
    })

  let leftMs = forMs
  let slackMs = togetherMs
  for (let settled = await settle(); settled && leftMs > 0; settled = await settle()) {
    const stepMs = settled.nextInMs === undefined ? leftMs : Math.min(leftMs, Math.ceil(settled.nextInMs + slackMs))
    await move(stepMs)
    leftMs -= stepMs
    slackMs *= growth
  }
  return new Date(clock.nowMs() + (await getTestClockOffsetMs(db, tenantId)))
}
