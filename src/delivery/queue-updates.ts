/**
 * Applies a change of a tenant or sending domain to its queued emails (contract sections 7.2, 8 and 10): one change after the other, in
 * batches. After a crash a change is applied again from the start, which is harmless.
 */
import type { Db, Tx } from '#db'
import { emailsOfDomain } from '#emails'
import {
  deleteQueueUpdate,
  listStillQueued,
  nextQueueUpdate,
  type QueueUpdate,
  releaseHeldFor,
  releaseHeldForTenant,
  wake,
  wakeEmails,
} from '#spool'
import { recordReleased } from './record-released.ts'

const maxAtOnce = 1000
/** Batches of one change in one pass. Other chores then run, and the next pass continues here. */
const maxBatches = 20
/** After this time every process has noticed the change, so that no attempt uses the old settings. */
export const settledAfterMs = 1500

export class QueueUpdates {
  readonly #db: Db
  /** Where the walk of a change stopped. A new process begins again. */
  #stopped: { id: number; after: string } | undefined

  constructor(db: Db) {
    this.#db = db
  }

  /** Returns whether there was a change, completed now or not. */
  async run(nowMs: number): Promise<boolean> {
    for (let found = false; ; found = true) {
      const change = await nextQueueUpdate(this.#db, nowMs)
      if (!change) return found
      if (change.at.getTime() > nowMs - settledAfterMs || !(await this.#follow(change, nowMs))) return true
      await deleteQueueUpdate(this.#db, change)
    }
  }

  /** Returns false when more batches remain. */
  async #follow(update: QueueUpdate, nowMs: number): Promise<boolean> {
    const db = this.#db
    const { tenantId, change } = update
    if (change === 'domain deleted') return this.#walkDomain(update, (ids) => wakeEmails(db, tenantId, ids))
    if (change === 'domain resumed')
      return this.#walkDomain(update, (ids) => release(db, tenantId, nowMs, (tx) => releaseHeldFor(tx, tenantId, 'domain', ids)))
    const batch = () => {
      if (change === 'resumed') return release(db, tenantId, nowMs, (tx) => releaseHeldForTenant(tx, tenantId, maxAtOnce))
      return wake(db, tenantId, change === 'paused' ? ['deferred'] : ['deferred', 'held', 'over_limit', 'scheduled'], maxAtOnce)
    }
    for (let done = 0; done < maxBatches; done++) if ((await batch()) === 0) return true
    return false
  }

  /** Walks a tenant's unclaimed emails of a sending domain, in order, from where the pass before stopped. Returns false when more remain. */
  async #walkDomain({ id, tenantId, domain }: QueueUpdate, each: (ids: string[]) => Promise<unknown>): Promise<boolean> {
    let after = this.#stopped?.id === id ? this.#stopped.after : ''
    for (let done = 0; done < maxBatches; done++) {
      const ids = await listStillQueued(this.#db, tenantId, after, maxAtOnce)
      const last = ids.at(-1)
      if (last === undefined) return true
      const affected = await emailsOfDomain(this.#db, tenantId, ids, domain ?? '')
      if (affected.length > 0) await each(affected)
      after = last
      this.#stopped = { id, after }
    }
    return false
  }
}

function release(db: Db, tenantId: string, nowMs: number, releaseSome: (tx: Tx) => Promise<string[]>): Promise<number> {
  return db.transaction(async (tx) => {
    const ids = await releaseSome(tx)
    const emails = ids.map((emailId) => ({ tenantId, emailId }))
    return recordReleased(tx, emails, nowMs)
  })
}
