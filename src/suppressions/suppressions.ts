/**
 * Suppressed recipients and reasons: a list for each tenant, and the organisation's own, which applies to every tenant.
 * Owns: suppressions, suppression_erasures. Uses: base, mail, db, tenants, events. Used by: tracking, delivery, returns, housekeeping, resend,
 * sendgrid, postmark, ses, mailgun, imports, http.
 * Promises: addresses are compared in lower case; adding one twice keeps one entry; a deleted tenant has no list; every entry added or
 * removed has an event in the same transaction, except imported ones and those whose time ended.
 */
import { type Queryable, sql, type Tx } from '#db'
import { appendEvents } from '#events'
import { keepTenants } from '#tenants'
import { isOfList } from './deleted-lists.ts'
import { listChange } from './list-changes.ts'
import { type Suppression, suppressionColumns } from './manage-suppressions.ts'

export { deleteRemovedLists, removeSuppressionsOfTenant } from './deleted-lists.ts'
export { listSuppressionsByAddress } from './list-by-address.ts'
export {
  type ChosenEntries,
  listOriginByAddress,
  listSuppressionsBeside,
  listSuppressionsOfOrigin,
  originOf,
  removeSuppressionsOfOrigin,
  type SuppressionOrigin,
} from './list-by-origin.ts'
export {
  deleteEndedSuppressions,
  findSuppression,
  type ImportedSuppression,
  importSuppressions,
  listSuppressions,
  removeSuppression,
  type Suppression,
  saveSuppression,
  saveSuppressions,
  suppressionId,
} from './manage-suppressions.ts'

export type AutomaticReason = 'hard fail' | 'too many soft fails' | 'bounce' | 'complaint' | 'unsubscribe'

interface Recipient {
  tenantId: string
  address: string
}

/** Both lists, as in `suppressedAmong`. The tenant's own entry comes first. */
const entryFor = sql<Suppression>`
  select ${suppressionColumns}
  from suppressions
  where tenant_id in ($1, '') and address = $2 and ${isOfList}
  order by tenant_id desc
  limit 1`

const suppressedAmong = sql<Recipient>`
  select wanted.tenant_id as "tenantId", wanted.address
  from unnest($1::text[], $2::text[]) as wanted (tenant_id, address)
  where exists (
    select from suppressions
    where suppressions.tenant_id in (wanted.tenant_id, '') and suppressions.address = wanted.address and ${isOfList}
  )`

const addAutomatically = sql<AutomaticEntry & { isNew: boolean }>`
  insert into suppressions (tenant_id, address, reason, source, created_at, email_id)
  select distinct on (tenant_id, address) tenant_id, address, reason, 'automatic', created_at, email_id
  from unnest($1::text[], $2::text[], $3::text[], $4::timestamptz[], $5::text[]) as found (tenant_id, address, reason, created_at, email_id)
  order by tenant_id, address, created_at
  on conflict (tenant_id, address) do update
  set keep_until = null
  where suppressions.keep_until is not null
  returning tenant_id as "tenantId", address, reason, created_at as at, email_id as "emailId", xmax = 0 as "isNew"`

const removeAutomatic = sql<Recipient & { reason: string | null }>`
  delete from suppressions
  using unnest($1::text[], $2::text[]) as delivered (tenant_id, address)
  where suppressions.tenant_id = delivered.tenant_id
    and suppressions.address = delivered.address
    and suppressions.source = 'automatic'
  returning suppressions.tenant_id as "tenantId", suppressions.address, suppressions.reason`

const key = (recipient: Recipient) => `${recipient.tenantId} ${recipient.address.toLowerCase()}`

/** Returns a test for membership of either list, with one query for all `recipients`. */
export async function suppressed(on: Queryable, recipients: readonly Recipient[]): Promise<(recipient: Recipient) => boolean> {
  const rows = await on.rows(suppressedAmong, [recipients.map((one) => one.tenantId), recipients.map((one) => one.address.toLowerCase())])
  const found = new Set(rows.map(key))
  return (recipient) => found.has(key(recipient))
}

/** The entry that suppresses this recipient, of either list. */
export const findSuppressingEntry = (on: Queryable, { tenantId, address }: Recipient): Promise<Suppression | undefined> =>
  on.first(entryFor, [tenantId, address.toLowerCase()])

interface AutomaticEntry extends Recipient {
  reason: AutomaticReason
  at: Date
  /** The email that caused the entry. */
  emailId: string
}

/**
 * Adds entries from delivery, reports and links to the lists of tenants that still exist, because mail outlives its tenant. Returns those
 * that were not on their list before.
 */
export async function suppress(tx: Tx, found: readonly AutomaticEntry[]): Promise<AutomaticEntry[]> {
  if (found.length === 0) return []
  const tenants = await keepTenants(
    tx,
    found.map((one) => one.tenantId),
  )
  const kept = found.filter((one) => tenants.has(one.tenantId))
  const written = await tx.rows(addAutomatically, [
    kept.map((one) => one.tenantId),
    kept.map((one) => one.address.toLowerCase()),
    kept.map((one) => one.reason),
    kept.map((one) => one.at),
    kept.map((one) => one.emailId),
  ])
  const added = written.filter(({ isNew }) => isNew)
  await appendEvents(
    tx,
    added.map((one) => listChange('SuppressionAdded', { ...one, source: 'automatic' }, one.at)),
  )
  return added
}

/** Removes automatic entries: the manual retry of an email has shown that its recipient can be reached. */
export async function unsuppress(tx: Tx, delivered: readonly (Recipient & { emailId: string; at: Date })[]): Promise<void> {
  if (delivered.length === 0) return
  const emails = Map.groupBy(delivered, key)
  const removed = await tx.rows(removeAutomatic, [delivered.map((one) => one.tenantId), delivered.map((one) => one.address.toLowerCase())])
  await appendEvents(
    tx,
    removed.flatMap((one) => {
      const email = emails.get(key(one))?.[0]
      return email ? [listChange('SuppressionRemoved', { ...one, source: 'automatic', emailId: email.emailId }, email.at)] : []
    }),
  )
}
