/**
 * Brings queued emails into line with what happened to their tenant or domain (contract sections 7.2, 8 and 10): one change after the
 * other, in batches, and again from the start after a crash, which does no harm.
 */
import type { Db } from '#db'
import { changeStatus, emailsOfDomain } from '#emails'
import { appendEvents } from '#events'
import { forgetQueueChange, listStill, nextQueueChange, type QueueChange, releaseHeldForTenant, wake, wakeEmails } from '#spool'

const mostAtOnce = 1000
/** By then every process has noticed the change itself, so that nothing is attempted on its old terms. */
const settledAfterMs = 1500

/** Returns how many changes were carried out. */
export async function followQueueChanges(db: Db, nowMs: number): Promise<number> {
  for (let done = 0; ; done++) {
    const change = await nextQueueChange(db, nowMs - settledAfterMs)
    if (!change) return done
    await follow(db, change, nowMs)
    await forgetQueueChange(db, change)
  }
}

async function follow(db: Db, { tenantId, change, domain }: QueueChange, nowMs: number): Promise<void> {
  if (change === 'domain deleted') return wakeDomain(db, tenantId, domain ?? '')
  const batch = () => {
    if (change === 'resumed') return release(db, tenantId, nowMs)
    return wake(db, tenantId, change === 'stopped' ? ['deferred'] : ['deferred', 'held', 'waiting'], mostAtOnce)
  }
  while ((await batch()) > 0);
}

function release(db: Db, tenantId: string, nowMs: number): Promise<number> {
  return db.transaction(async (tx) => {
    const released = await releaseHeldForTenant(tx, tenantId, mostAtOnce)
    for (const id of released) await changeStatus(tx, { tenantId, id }, ['held'], 'pending')
    const at = new Date(nowMs)
    await appendEvents(
      tx,
      released.map((emailId) => ({ tenantId, kind: 'EmailReleased' as const, emailId, at, data: { was: 'held' } })),
    )
    return released.length
  })
}

async function wakeDomain(db: Db, tenantId: string, domain: string): Promise<void> {
  for (let after = ''; ; ) {
    const ids = await listStill(db, tenantId, after, mostAtOnce)
    const last = ids.at(-1)
    if (last === undefined) return
    const affected = await emailsOfDomain(db, tenantId, ids, domain)
    if (affected.length > 0) await wakeEmails(db, tenantId, affected)
    after = last
  }
}
