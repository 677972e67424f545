/**
 * Applies a tenant's change to everything that belongs to it (contract section 8), in one transaction. Its queued emails follow soon after.
 */
import { revokeCredentialsOfTenant } from '#credentials'
import type { Db, Tx } from '#db'
import { removeAssignmentsOfTenant, removeRulesOfTenant, removeTransportStatesOfTenant } from '#delivery'
import { removeDomainsOfTenant } from '#domains'
import { removeInboxOfTenant } from '#emails'
import { removeLimitsOfKeys, removeLimitsOfTenant } from '#limits'
import { removeMembersOfTenant } from '#members'
import { removeReceivedOfTenant } from '#received-mail'
import { recordTenantChange, removeQueuePausesOfTenant, removeTestClockOfTenant } from '#spool'
import { removeSuppressionsOfTenant } from '#suppressions'
import { removeTemplatesOfTenant } from '#templates'
import { changeTenant, removeTenant, type Tenant, type TenantChanges } from '#tenants'
import { removeWebhooksOfTenant } from '#webhooks'

/** Refuses `not_found`, `validation_error` and `default_tenant_protected`. */
export function updateTenant(db: Db, id: string, changes: TenantChanges, nowMs: number): Promise<Tenant> {
  return db.transaction(async (tx) => {
    const { before, after } = await changeTenant(tx, id, changes, nowMs)
    if (before.status === 'active' && after.status !== 'active') await recordTenantChange(tx, id, 'paused', nowMs)
    if (before.status !== 'active' && after.status === 'active') await recordTenantChange(tx, id, 'resumed', nowMs)
    return after
  })
}

/**
 * Deletes everything but its emails and logs, which stay for organisation-level keys until their retention. Housekeeping deletes suppressions,
 * webhook deliveries and received mail, which may be many: a transaction that has written stops the readers of the event log. Refuses as
 * `updateTenant`.
 */
export function deleteTenant(db: Db, id: string, nowMs: number): Promise<void> {
  return db.transaction(async (tx) => {
    await removeTenant(tx, id)
    await removeLimitsOfKeys(tx, await revokeCredentialsOfTenant(tx, id, nowMs))
    for (const remove of removals) await remove(tx, id, nowMs)
    await recordTenantChange(tx, id, 'deleted', nowMs)
  })
}

const removals: readonly ((tx: Tx, tenantId: string, nowMs: number) => Promise<unknown>)[] = [
  removeDomainsOfTenant, // also removes its track domains, by foreign key
  removeSuppressionsOfTenant,
  removeWebhooksOfTenant,
  removeTestClockOfTenant,
  removeQueuePausesOfTenant,
  removeInboxOfTenant,
  removeMembersOfTenant,
  removeLimitsOfTenant,
  removeAssignmentsOfTenant,
  removeRulesOfTenant,
  removeTransportStatesOfTenant,
  removeTemplatesOfTenant,
  removeReceivedOfTenant,
]
