/**
 * Applies a change of a tenant or sending domain to its queued emails (contract sections 7.2, 8 and 10): one change of a tenant after the
 * other, in batches, and tenants take turns. After a crash a change is applied again from the start, which is harmless. A pause or resumption that has been reversed is not
 * applied: delivery would hold the released mail again, or retry deferred mail before its time.
 */
import type { Db } from '#db'
import { emailsOfDomain } from '#emails'
import {
  deleteQueueUpdate,
  listWaitingIn,
  nextQueueUpdate,
  oldestQueueUpdate,
  type QueueUpdate,
  releaseHeldFor,
  type WaitingState,
  waitingStates,
  wakeEmails,
} from '#spool'
import { findTenant } from '#tenants'
import { recordReleased } from './record-released.ts'

const maxAtOnce = 1000
/** Emails in one pass. Other chores then run, and the next pass continues here. */
const maxInPass = 20_000
/** After this time every process has noticed the change, so that no attempt uses the old settings. */
export const settledAfterMs = 1500

/** The emails that a change concerns. */
const statesOf: Record<QueueUpdate['change'], readonly WaitingState[]> = {
  paused: ['deferred'],
  resumed: ['held'],
  deleted: waitingStates,
  'domain deleted': waitingStates,
  'domain resumed': ['held'],
}

export class QueueUpdates {
  readonly #db: Db
  /** By tenant, where the walk of its change stopped. A new process begins again. */
  readonly #stopped = new Map<string, { id: number; after: string }>()
  /** Whose change was followed last. */
  #lastTenantId = ''

  constructor(db: Db) {
    this.#db = db
  }

  /** Returns whether there was a change, completed now or not. */
  async run(nowMs: number): Promise<boolean> {
    for (let emails = 0, found = false; ; found = true) {
      const change = await this.#next(nowMs - settledAfterMs)
      if (!change) return found || (await oldestQueueUpdate(this.#db, nowMs)) !== undefined
      if (emails >= maxInPass) return true
      emails += await this.#follow(change, nowMs)
    }
  }

  /** Of the next tenant that has one. */
  async #next(beforeMs: number): Promise<QueueUpdate | undefined> {
    const change = (await nextQueueUpdate(this.#db, beforeMs, this.#lastTenantId)) ?? (await nextQueueUpdate(this.#db, beforeMs, ''))
    this.#lastTenantId = change?.tenantId ?? ''
    return change
  }

  /**
   * Takes the next batch of the tenant's emails in order, so that each follows the change once at most: delivery may hold or defer it again at
   * once. After the last one, deletes the change. Returns the size of the batch.
   */
  async #follow(update: QueueUpdate, nowMs: number): Promise<number> {
    const { id, tenantId, change } = update
    const stopped = this.#stopped.get(tenantId)
    const after = stopped?.id === id ? stopped.after : ''
    const ids = (await this.#isReversed(update)) ? [] : await listWaitingIn(this.#db, tenantId, statesOf[change], after, maxAtOnce)
    const last = ids.at(-1)
    if (last === undefined) {
      await deleteQueueUpdate(this.#db, update)
      this.#stopped.delete(tenantId)
    } else {
      await this.#apply(update, ids, nowMs)
      this.#stopped.set(tenantId, { id, after: last })
    }
    return ids.length
  }

  /** A pause or resumption during a batch needs no lock: its own change follows. */
  async #isReversed({ tenantId, change }: QueueUpdate): Promise<boolean> {
    if (change !== 'paused' && change !== 'resumed') return false
    const tenant = await findTenant(this.#db, tenantId)
    // Ready emails of a deleted tenant fail.
    if (!tenant) return false
    const isPaused = tenant.status !== 'active' || tenant.pauseReason !== null
    return isPaused !== (change === 'paused')
  }

  async #apply({ tenantId, change, domain }: QueueUpdate, ids: readonly string[], nowMs: number): Promise<void> {
    const isOfDomain = change === 'domain deleted' || change === 'domain resumed'
    const affected = isOfDomain ? await emailsOfDomain(this.#db, tenantId, ids, domain ?? '') : ids
    if (affected.length === 0) return
    if (change === 'resumed' || change === 'domain resumed')
      await this.#release(tenantId, change === 'resumed' ? 'tenant' : 'domain', affected, nowMs)
    else await wakeEmails(this.#db, tenantId, affected, statesOf[change])
  }

  #release(tenantId: string, reason: 'tenant' | 'domain', ids: readonly string[], nowMs: number): Promise<number> {
    return this.#db.transaction(async (tx) => {
      const released = await releaseHeldFor(tx, tenantId, reason, ids)
      const emails = released.map((emailId) => ({ tenantId, emailId }))
      return recordReleased(tx, emails, nowMs)
    })
  }
}
