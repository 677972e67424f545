/**
 * The suppression lists of a key of another vendor's API. A key of the organisation sends the mail of the default tenant, whose list gets its
 * bounces; the organisation's list applies to that mail too.
 */
import { Refusal } from '#base'
import type { Credential } from '#credentials'
import { findMessageIds } from '#emails'
import { findSuppression, removeSuppression, type Suppression, saveSuppression, suppressed } from '#suppressions'
import type { VendorDeps } from './vendor-api.ts'

export interface VendorLists {
  /** The list to which entries are added. */
  own: string
  /** The lists whose entries the key shows and removes, `own` first. */
  all: readonly string[]
}

export async function listsOf({ tenantId }: Credential, { tenants }: VendorDeps): Promise<VendorLists> {
  const own = tenantId ?? (await tenants.default()).id
  return { own, all: tenantId === null ? [own, ''] : [own] }
}

/** Refuses `invalid_email_format`. */
export async function findListed(address: string, credential: Credential, deps: VendorDeps): Promise<Suppression | undefined> {
  for (const list of (await listsOf(credential, deps)).all) {
    const { entry } = await findSuppression(deps.db, list, address)
    if (entry) return entry
  }
  return undefined
}

export async function addToList(wanted: Parameters<typeof saveSuppression>[2], credential: Credential, deps: VendorDeps) {
  return saveSuppression(deps.db, (await listsOf(credential, deps)).own, wanted, deps.clock.nowMs())
}

/** Returns false if the address was on none of the lists. */
export async function removeFromLists(address: string, credential: Credential, deps: VendorDeps): Promise<boolean> {
  let removed = false
  for (const list of (await listsOf(credential, deps)).all)
    try {
      await removeSuppression(deps.db, list, address, deps.clock.nowMs())
      removed = true
    } catch (error) {
      if (!(error instanceof Refusal && error.code === 'not_found')) throw error
    }
  return removed
}

/** Whether mail of the key to the address is held: for a key of a tenant, the organisation's list counts too. */
export async function isSuppressed(address: string, credential: Credential, deps: VendorDeps): Promise<boolean> {
  const recipient = { tenantId: (await listsOf(credential, deps)).own, address }
  return (await suppressed(deps.db, [recipient]))(recipient)
}

/** The id of the message that caused an entry, as its send returned it: the email's own id once its record is deleted; null without one. */
export async function causesOf(entries: readonly Suppression[], { db }: VendorDeps): Promise<(entry: Suppression) => string | null> {
  const caused = entries.flatMap(({ tenantId, emailId }) => (emailId === null ? [] : [{ tenantId, id: emailId }]))
  const ids = await findMessageIds(db, caused)
  return ({ emailId }) => (emailId === null ? null : (ids.get(emailId) ?? emailId))
}
