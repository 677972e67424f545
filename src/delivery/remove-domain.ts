/** Deleting a sending domain: with it goes the right to send what is queued from it, so both are one transaction. */
import type { Db } from '#db'
import { type Domain, removeDomain } from '#domains'
import { noteDomainDeleted } from '#spool'

/** Its queued emails fail within seconds. Refuses `not_found` when it is gone already. */
export function deleteDomain(db: Db, domain: Pick<Domain, 'tenantId' | 'id' | 'name'>, nowMs: number): Promise<void> {
  return db.transaction(async (tx) => {
    await removeDomain(tx, domain)
    await noteDomainDeleted(tx, domain.tenantId, domain.name, nowMs)
  })
}
