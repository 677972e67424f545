/**
 * Fails held emails permanently when they were not released in time (contract section 7.2).
 */
import type { Db } from '#db'
import { changeStatus } from '#emails'
import { appendEvents, dataWithoutAttempt } from '#events'
import { takeExpiredHolds } from '#spool'

const maxAtOnce = 500

/** Returns how many expired. `testMailOf`: only test mail of this tenant. */
export function expireHolds(db: Db, nowMs: number, testMailOf?: string): Promise<number> {
  return db.transaction(async (tx) => {
    const expired = await takeExpiredHolds(tx, nowMs, maxAtOnce, testMailOf)
    const at = new Date(nowMs)
    for (const { tenantId, emailId } of expired) await changeStatus(tx, { tenantId, id: emailId }, ['held'], 'hardfail')
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
