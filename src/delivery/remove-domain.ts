/**
 * Deletes a sending domain and fails its queued mail in one transaction, because the right to send that mail ends with the domain.
 */
import type { Db } from '#db'
import { type Domain, removeDomain } from '#domains'
import { recordDomainDeleted, resumeQueue } from '#spool'

/** Its queued emails fail within seconds, and its pause ends with it. Refuses `not_found` if it does not exist. */
export function deleteDomain(db: Db, domain: Pick<Domain, 'tenantId' | 'id' | 'name'>, nowMs: number): Promise<void> {
  return db.transaction(async (tx) => {
    await removeDomain(tx, domain)
    await resumeQueue(tx, { tenantId: domain.tenantId, kind: 'domain', name: domain.name })
    await recordDomainDeleted(tx, domain.tenantId, domain.name, nowMs)
  })
}
