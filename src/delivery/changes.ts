/**
 * Brings queued emails into line with what happened to their tenant or domain (contract sections 7.2, 8 and 10): one change after the
 * other, in batches, and again from the start after a crash, which does no harm.
 */
import type { Db, Tx } from '#db'
import { changeStatus, emailsOfDomain } from '#emails'
import { appendEvents } from '#events'
import {
  forgetQueueChange,
  listStill,
  nextQueueChange,
  type QueueChange,
  releaseHeldForDomain,
  releaseHeldForTenant,
  wake,
  wakeEmails,
} from '#spool'

const mostAtOnce = 1000
/** Of one tenant's long queue; then other chores have their turn, and the next one goes on here. */
const mostBatches = 20
/** By then every process has noticed the change itself, so that nothing is attempted on its old terms. */
const settledAfterMs = 1500

/** Returns how many changes were carried out. */
export async function followQueueChanges(db: Db, nowMs: number): Promise<number> {
  for (let done = 0; ; done++) {
    const change = await nextQueueChange(db, nowMs - settledAfterMs)
    if (!change || !(await follow(db, change, nowMs))) return done
    await forgetQueueChange(db, change)
  }
}

/** False when there is more to do. */
async function follow(db: Db, { tenantId, change, domain }: QueueChange, nowMs: number): Promise<boolean> {
  const ofDomain = (each: (ids: string[]) => Promise<unknown>) => eachOfDomain(db, tenantId, domain ?? '', each)
  if (change === 'domain deleted') return ofDomain((ids) => wakeEmails(db, tenantId, ids))
  if (change === 'domain resumed') return ofDomain((ids) => release(db, tenantId, nowMs, (tx) => releaseHeldForDomain(tx, tenantId, ids)))
  const batch = () => {
    if (change === 'resumed') return release(db, tenantId, nowMs, (tx) => releaseHeldForTenant(tx, tenantId, mostAtOnce))
    return wake(db, tenantId, change === 'stopped' ? ['deferred'] : ['deferred', 'held', 'waiting'], mostAtOnce)
  }
  for (let done = 0; done < mostBatches; done++) if ((await batch()) === 0) return true
  return false
}

function release(db: Db, tenantId: string, nowMs: number, letGo: (tx: Tx) => Promise<string[]>): Promise<number> {
  return db.transaction(async (tx) => {
    const released = await letGo(tx)
    for (const id of released) await changeStatus(tx, { tenantId, id }, ['held'], 'pending')
    const at = new Date(nowMs)
    await appendEvents(
      tx,
      released.map((emailId) => ({ tenantId, kind: 'EmailReleased' as const, emailId, at, data: { was: 'held' } })),
    )
    return released.length
  })
}

/** Walks a tenant's resting emails from a sending domain, in order. */
async function eachOfDomain(db: Db, tenantId: string, domain: string, each: (ids: string[]) => Promise<unknown>): Promise<true> {
  for (let after = ''; ; ) {
    const ids = await listStill(db, tenantId, after, mostAtOnce)
    const last = ids.at(-1)
    if (last === undefined) return true
    const affected = await emailsOfDomain(db, tenantId, ids, domain)
    if (affected.length > 0) await each(affected)
    after = last
  }
}
