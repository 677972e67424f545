/**
 * A tenant's test clock moved forward, as a row of short steps: to the next retry, expiry or late report, then a wait until what was due
 * then is done. So all of it happens now, in order, each at its simulated time.
 */
import { type Clock, pause } from '#base'
import type { Db } from '#db'
import { findTestAheadMs, moveTestClock, readTestQueue } from '#spool'
import { expireHolds } from './expire.ts'
import { hasten, readLater } from './later.ts'

/** What is due so shortly after the next thing happens with it; grows by the step, so that any jump takes a few hundred steps at most. */
const togetherMs = 1000
const growth = 1.05
const lookEveryMs = 15

/**
 * Returns the clock's time. Less than asked for when `withinMs` of real time were not enough, because mail cannot be delivered (a pause,
 * no delivery process) or there is too much of it: what was due until then has run, and a further call goes on.
 */
export async function advanceTestClock(
  { db, clock }: { db: Db; clock: Clock },
  tenantId: string,
  forMs: number,
  withinMs: number,
): Promise<Date> {
  const untilMs = clock.monotonicMs() + withinMs

  const read = async () => {
    const nowMs = clock.nowMs()
    const [queue, later] = await Promise.all([readTestQueue(db, tenantId, nowMs), readLater(db, tenantId, nowMs)])
    const next = [queue.nextDueAt, later.nextDueAt].flatMap((at) => (at ? [at.getTime() - nowMs] : []))
    return { busy: queue.busy + later.busy, nextInMs: next.length > 0 ? Math.min(...next) : undefined }
  }

  /** Waits until nothing is due; then tells in how many ms something will be. Undefined when the time is up. */
  const settle = async () => {
    for (;;) {
      const { busy, nextInMs } = await read()
      if (busy === 0) return { nextInMs }
      if (clock.monotonicMs() >= untilMs) return undefined
      // Held mail whose time is up is nobody's work on the wire.
      await expireHolds(db, clock.nowMs())
      await pause(clock, lookEveryMs)
    }
  }

  const move = (stepMs: number) =>
    db.transaction(async (tx) => {
      await hasten(tx, tenantId, stepMs)
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
  return new Date(clock.nowMs() + (await findTestAheadMs(db, tenantId)))
}
