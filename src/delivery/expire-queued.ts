/**
 * Fails held emails permanently when they were not released in time (contract section 7.2), and queued emails that waited for too long. A
 * forgotten pause or a low send limit would otherwise keep old contents of all tenants from being deleted.
 */
import type { Db, Tx } from '#db'
import { changeStatuses } from '#emails'
import { appendEvents, dataWithoutAttempt } from '#events'
import { listWaitingSince, type QueuedKey, statusBefore, takeExpiredHolds, takeWaitingSince } from '#spool'

const maxAtOnce = 500
const maxWaitDays = 30
const dayMs = 86_400_000

/** Returns how many expired. `testMailOf`: only test mail of this tenant. */
export function expireHolds(db: Db, nowMs: number, testMailOf?: string): Promise<number> {
  return db.transaction(async (tx) => {
    const expired = await takeExpiredHolds(tx, nowMs, maxAtOnce, testMailOf)
    const at = new Date(nowMs)
    await changeStatuses(tx, expired, ['held'], 'hardfail')
    await appendEvents(
      tx,
      expired.map(({ tenantId, emailId, recipient, clockOffsetMs }) => ({
        tenantId,
        kind: 'MessageDeliveryFailed' as const,
        emailId,
        at,
        data: dataWithoutAttempt(`${recipient} was held for 7 days without release`, 'held', { nowMs, clockOffsetMs }),
      })),
    )
    return expired.length
  })
}

/**
 * Returns how many failed: emails accepted, or scheduled for a time, more than 30 days ago. One that waits for its own next attempt, after a
 * manual retry for example, is left to its schedule. They are found before anything is written: a transaction that has written stops the
 * readers of the event log.
 */
export async function expireQueued(db: Db, nowMs: number): Promise<number> {
  const beforeMs = nowMs - maxWaitDays * dayMs
  let failed = 0
  for (let last: QueuedKey | undefined; ; ) {
    const found = await listWaitingSince(db, beforeMs, last, maxAtOnce)
    if (found.length > 0) failed += await db.transaction((tx) => failWaiting(tx, beforeMs, found, nowMs))
    if (found.length < maxAtOnce) return failed
    last = found.at(-1)
  }
}

async function failWaiting(tx: Tx, beforeMs: number, found: readonly QueuedKey[], nowMs: number): Promise<number> {
  const expired = await takeWaitingSince(tx, beforeMs, found)
  const at = new Date(nowMs)
  await changeStatuses(tx, expired, ['pending', 'softfail', 'held'], 'hardfail')
  await appendEvents(
    tx,
    expired.map((one) => ({
      tenantId: one.tenantId,
      kind: 'MessageDeliveryFailed' as const,
      emailId: one.emailId,
      at,
      data: dataWithoutAttempt(`${one.recipient} was queued for ${maxWaitDays} days`, statusBefore(one), {
        nowMs,
        clockOffsetMs: one.clockOffsetMs,
      }),
    })),
  )
  return expired.length
}
