/**
 * Holds the whole queue after a backup was restored, and releases it when the operator resumes. Both operations can be interrupted and
 * repeated.
 */
import type { Db, Queryable } from '#db'
import { changeStatuses } from '#emails'
import { appendEvents, dataWithoutAttempt } from '#events'
import {
  countHeldByRestore,
  findRestore,
  holdRestored,
  type Restore,
  recordHeld,
  recordResumed,
  releaseRestored,
  statusBefore,
} from '#spool'
import { recordReleased } from './record-released.ts'

const maxAtOnce = 1000

/** Runs before any role starts; has no effect unless a backup was restored. Returns how many emails it held. */
export async function holdAfterRestore(db: Db, nowMs: number): Promise<number> {
  const restore = await findRestore(db)
  if (!restore || restore.heldAt !== null) return 0
  let held = 0
  for (;;) {
    const some = await holdSome(db, restore, nowMs)
    held += some
    if (some < maxAtOnce) return held
  }
}

function holdSome(db: Db, restore: Restore, nowMs: number): Promise<number> {
  return db.transaction(async (tx) => {
    const some = await holdRestored(tx, maxAtOnce, nowMs)
    await changeStatuses(tx, some, ['pending', 'softfail'], 'held')
    const details = `held: queued in the backup of ${restore.backupMadeAt.toISOString()} and possibly sent since`
    const at = new Date(nowMs)
    await appendEvents(
      tx,
      some
        .filter((one) => statusBefore(one) !== 'held')
        .map((one) => ({
          tenantId: one.tenantId,
          kind: 'MessageHeld' as const,
          emailId: one.emailId,
          at,
          data: {
            ...dataWithoutAttempt(details, statusBefore(one), { nowMs, clockOffsetMs: one.clockOffsetMs }),
            holdReason: 'restored',
          },
        })),
    )
    if (some.length < maxAtOnce) await recordHeld(tx, nowMs)
    return some.length
  })
}

/** Releases all emails and webhooks held by a restore; returns how many emails. */
export async function resumeAfterRestore(db: Db, nowMs: number): Promise<number> {
  await holdAfterRestore(db, nowMs)
  let released = 0
  for (;;) {
    const some = await releaseSome(db, nowMs)
    released += some
    if (some < maxAtOnce) return released
  }
}

function releaseSome(db: Db, nowMs: number): Promise<number> {
  return db.transaction(async (tx) => {
    const some = await releaseRestored(tx, maxAtOnce)
    await recordReleased(tx, some, nowMs)
    if (some.length < maxAtOnce) await recordResumed(tx, nowMs)
    return some.length
  })
}

/** The restore that awaits the operator's decision; undefined: no backup was restored, or it was resumed. */
export async function restoreWaiting(on: Queryable): Promise<{ backupMadeAt: Date; emails: number } | undefined> {
  const restore = await findRestore(on)
  return restore && { backupMadeAt: restore.backupMadeAt, emails: await countHeldByRestore(on) }
}
