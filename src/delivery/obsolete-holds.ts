/**
 * Releases emails that are held for a pause that has ended. A delivery process holds an email by a state of the tenant that is up
 * to a second old, and records the hold later, after a lost connection much later. The record may therefore come after the release that
 * followed the pause (queue-updates.ts), and no other release looks at the email.
 */
import type { Db, Tx } from '#db'
import { emailsOfDomain } from '#emails'
import { type HeldEmail, hasQueueUpdate, listHeld, listQueuePauses, releaseHeldFor, wakeEmails } from '#spool'
import { findTenant } from '#tenants'
import { recordReleased } from './record-released.ts'

const maxAtOnce = 1000
/** Batches of one pass, because held mail of paused tenants is read too. The next pass continues there. */
const maxBatches = 20
/** Held emails are due after 7 days. No other mail is due so late, and mail that was held for 6 days has been looked at before. */
const dueAfterMs = 86_400_000

export class ObsoleteHolds {
  readonly #db: Db
  #after: HeldEmail | undefined

  constructor(db: Db) {
    this.#db = db
  }

  /** Returns how many emails it released. */
  async run(nowMs: number): Promise<number> {
    let released = 0
    for (let batch = 0; batch < maxBatches; batch++) {
      const some = await listHeld(this.#db, nowMs + dueAfterMs, this.#after, maxAtOnce)
      for (const [tenantId, held] of Map.groupBy(some, (one) => one.tenantId)) released += await this.#releaseOf(tenantId, held, nowMs)
      this.#after = some.length < maxAtOnce ? undefined : some.at(-1)
      if (!this.#after) break
    }
    return released
  }

  /**
   * A pause that begins meanwhile needs no lock: released emails are ready, and delivery holds ready emails of a paused tenant or domain.
   * Emails that a restore holds have another reason.
   */
  async #releaseOf(tenantId: string, held: readonly HeldEmail[], nowMs: number): Promise<number> {
    const idsHeldFor = (reason: string) => held.filter(({ holdReason }) => holdReason === reason).map(({ emailId }) => emailId)
    const [ofTenant, ofDomains] = [idsHeldFor('tenant'), idsHeldFor('domain')]
    if (ofTenant.length + ofDomains.length === 0) return 0
    return this.#db.transaction(async (tx) => {
      // The queue will follow the change, in the order of acceptance.
      if (await hasQueueUpdate(tx, tenantId)) return 0
      const tenant = await findTenant(tx, tenantId)
      if (!tenant) return wakeEmails(tx, tenantId, [...ofTenant, ...ofDomains])
      if (tenant.status !== 'active' || tenant.pauseReason !== null) return 0
      const released = [
        ...(await releaseHeldFor(tx, tenantId, 'tenant', ofTenant)),
        ...(await releaseHeldFor(tx, tenantId, 'domain', await withoutPausedDomains(tx, tenantId, ofDomains))),
      ]
      const emails = released.map((emailId) => ({ tenantId, emailId }))
      return recordReleased(tx, emails, nowMs)
    })
  }
}

async function withoutPausedDomains(tx: Tx, tenantId: string, emailIds: readonly string[]): Promise<string[]> {
  if (emailIds.length === 0) return []
  const paused = new Set<string>()
  for (const pause of await listQueuePauses(tx)) {
    if (pause.kind !== 'domain' || pause.tenantId !== tenantId) continue
    for (const id of await emailsOfDomain(tx, tenantId, emailIds, pause.name)) paused.add(id)
  }
  return emailIds.filter((id) => !paused.has(id))
}
