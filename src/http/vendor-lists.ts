/**
 * The suppression lists of a key of another vendor's API. A key of the organisation sends the mail of the default tenant, whose list gets its
 * bounces; the organisation's list applies to that mail too.
 */
import { Refusal } from '#base'
import type { Credential } from '#credentials'
import { findMessageIds, type LastAttempt, lastAttempts } from '#emails'
import {
  type ChosenEntries,
  findSuppression,
  removeSuppression,
  removeSuppressionsOfOrigin,
  type Suppression,
  saveSuppression,
  suppressed,
} from '#suppressions'
import type { VendorDeps } from './vendor-api.ts'

interface VendorLists {
  /** The list to which entries are added. */
  own: string
  /** The lists whose entries the key shows and removes, `own` first. */
  all: readonly string[]
}

/** `ofTenant`: the tenant that sends the mail, for a key of the organisation perhaps another than the default one. */
export async function listsOf({ tenantId }: Credential, { tenants }: VendorDeps, ofTenant = tenantId): Promise<VendorLists> {
  const own = ofTenant ?? (await tenants.default()).id
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

/** Returns false if the address was on none of the lists. `ofTenant`: as in `listsOf`. */
export async function removeFromLists(
  address: string,
  credential: Credential,
  deps: VendorDeps,
  ofTenant = credential.tenantId,
): Promise<boolean> {
  let removed = false
  for (const list of (await listsOf(credential, deps, ofTenant)).all)
    try {
      await removeSuppression(deps.db, list, address, deps.clock.nowMs())
      removed = true
    } catch (error) {
      if (!(error instanceof Refusal && error.code === 'not_found')) throw error
    }
  return removed
}

const mostAtOnce = 1000
/** More are removed by repeated requests. */
const mostInRequest = 50_000

/** Removes the entries of one origin: those with these addresses, or (undefined) all. `isComplete` is false if there may be more. */
export async function removeOriginFromLists(
  chosen: ChosenEntries,
  credential: Credential,
  deps: VendorDeps,
): Promise<{ removed: number; isComplete: boolean }> {
  let removed = 0
  for (const list of (await listsOf(credential, deps)).all)
    for (let after: string | undefined = ''; after !== undefined; ) {
      if (removed >= mostInRequest) return { removed, isComplete: false }
      const part = await removeSuppressionsOfOrigin(deps.db, list, { ...chosen, after, most: mostAtOnce }, deps.clock.nowMs())
      removed += part.removed
      after = part.removed < mostAtOnce ? undefined : part.last
    }
  return { removed, isComplete: true }
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

/** The last attempts of the emails that caused entries, as far as they are stored. */
export async function attemptsOf(
  entries: readonly Suppression[],
  { db }: VendorDeps,
): Promise<(entry: Suppression) => LastAttempt | undefined> {
  const attempts = await lastAttempts(
    db,
    entries.flatMap(({ tenantId, emailId }) => (emailId === null ? [] : [{ tenantId, emailId }])),
  )
  return ({ emailId }) => attempts.get(emailId ?? '')
}
