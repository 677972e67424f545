/** Manages suppression lists: add, find, remove, page, and up to 1000 entries at once. The list of `tenantId` '' is the organisation's. */
import { createHash } from 'node:crypto'
import { Refusal, rejectUnstorableText, wrongField } from '#base'
import { type Db, type Queryable, type Sql, searchInSnapshot, sql, type Tx } from '#db'
import { appendEvents } from '#events'
import { parseAddress } from '#mail'
import { findServer, tenantForNew } from '#tenants'
import { isOfList } from './deleted-lists.ts'
import { listChange } from './list-changes.ts'

export interface Suppression {
  /** '': the organisation's. */
  tenantId: string
  /** Lower case. */
  address: string
  reason: string | null
  source: 'manual' | 'automatic'
  createdAt: Date
  /** The email that caused an automatic entry. */
  emailId: string | null
}

/** `reason` undefined: keeps the existing one. */
export interface Wanted {
  address: string
  reason?: string | null | undefined
}

export const suppressionColumns = sql.part`
  tenant_id as "tenantId", address, reason, source, created_at as "createdAt", email_id as "emailId"`

/**
 * The condition that an entry of several lists has no other one for the same address, except in the organisation's list, which comes last.
 * `lists`: the ids of the lists.
 */
export const isShown = (lists: Sql<unknown>) => sql.part`(
    suppressions.tenant_id <> '' or not exists (
      select
      from suppressions as own
      where own.tenant_id = any(${lists}) and own.tenant_id <> '' and own.address = suppressions.address))`

const saveEntries = sql<Suppression & { added: boolean }>`
  insert into suppressions (tenant_id, address, reason, source, created_at)
  select $1, address, reason, 'manual', $5::timestamptz
  from unnest($2::text[], $3::text[]) as wanted (address, reason)
  order by address
  on conflict (tenant_id, address) do update
  set reason = case when excluded.address = any($4::text[]) then suppressions.reason else excluded.reason end, source = 'manual',
      keep_until = null
  returning ${suppressionColumns}, xmax = 0 as added`

const importEntries = sql<{ added: boolean }>`
  insert into suppressions (tenant_id, address, reason, source, created_at, keep_until)
  select $1, address, reason, source, created_at, keep_until
  from unnest($2::text[], $3::text[], $4::text[], $5::timestamptz[], $6::timestamptz[]) as given (address, reason, source, created_at, keep_until)
  order by address
  on conflict (tenant_id, address) do update
  set keep_until = null
  where suppressions.keep_until is not null and excluded.keep_until is null
  returning xmax = 0 as added`

const countListed = sql<{ listed: number }>`
  select count(*) as listed
  from suppressions
  where tenant_id = $1 and address = any($2::text[])`

const deleteEnded = sql`
  delete from suppressions
  where keep_until <= $1`

const entryOf = sql<Suppression>`
  select ${suppressionColumns}
  from suppressions
  where tenant_id = $1 and address = $2 and ${isOfList}`

const deleteEntry = sql<Suppression>`
  delete from suppressions
  where tenant_id = $1 and address = $2
  returning ${suppressionColumns}`

const filtered = sql.part`
    and ${isOfList}
    and ($2::text is null or address like $2)
    and ($3::text is null or reason = $3)`
const statementsOf = (scope: Sql<unknown>) => ({
  page: sql<Suppression>`
    select ${suppressionColumns}
    from suppressions
    where ${scope} ${filtered}
    order by id desc
    limit $4 offset $5`,
  count: sql<{ total: number }>`
    select count(*) as total
    from suppressions
    where ${scope} ${filtered}`,
})
const ofOneList = statementsOf(sql.part`tenant_id = $1`)
const ofEveryList = statementsOf(sql.part`$1::text is null`)

/**
 * The public id: 48 bits of a hash of list and address. The row's number, which counts the entries of all tenants, only keeps their order.
 */
export const suppressionId = ({ tenantId, address }: Pick<Suppression, 'tenantId' | 'address'>): number =>
  createHash('sha256').update(`${tenantId} ${address}`).digest().readUIntBE(0, 6)

/** The normalised address; refuses `invalid_email_format`. */
function listed(address: string): string {
  const parsed = normal(address)
  if (parsed !== undefined) return parsed
  throw wrongField('address', 'is not an email address', 'invalid_email_format')
}

const normal = (address: string) => parseAddress(address)?.text.toLowerCase()

/** In one statement, in the order of the addresses, so that concurrent callers cannot deadlock. */
const save = (db: Db, tenantId: string, wanted: ReadonlyMap<string, string | null | undefined>, nowMs: number) =>
  db.transaction(async (tx) => {
    if (tenantId !== '') await tenantForNew(tx, tenantId)
    const saved = await tx.rows(saveEntries, [
      tenantId,
      [...wanted.keys()],
      [...wanted.values()].map((reason) => reason ?? null),
      [...wanted].flatMap(([address, reason]) => (reason === undefined ? [address] : [])),
      new Date(nowMs),
    ])
    await recordListChanges(
      tx,
      'SuppressionAdded',
      saved.filter((one) => one.added),
      nowMs,
    )
    return saved
  })

/** Events of the organisation's list have the organisation's id. */
export async function recordListChanges(
  tx: Tx,
  kind: 'SuppressionAdded' | 'SuppressionRemoved',
  entries: readonly Suppression[],
  nowMs: number,
): Promise<void> {
  const [first] = entries
  if (!first) return
  const tenantId = first.tenantId === '' ? (await findServer(tx, null)).uuid : first.tenantId
  await appendEvents(
    tx,
    entries.map((one) => listChange(kind, { ...one, tenantId, emailId: null }, new Date(nowMs))),
  )
}

/** Adds an address to a list, or changes its reason. Refuses `invalid_email_format` and `tenant_archived`. */
export async function saveSuppression(
  db: Db,
  tenantId: string,
  { address, reason }: Wanted,
  nowMs: number,
): Promise<{ entry: Suppression; added: boolean }> {
  if (reason) rejectUnstorableText('reason', reason)
  const [saved] = await save(db, tenantId, new Map([[listed(address), reason]]), nowMs)
  if (!saved) throw new Error('failed to save a suppression')
  const { added, ...entry } = saved
  return { entry, added }
}

/** An invalid address fails alone; a repeated one counts as updated, with its last reason. Refuses `tenant_archived`. */
export async function saveSuppressions(
  db: Db,
  tenantId: string,
  wanted: readonly Wanted[],
  nowMs: number,
): Promise<{ added: number; updated: number; failed: number }> {
  const reasons = new Map<string, string | null | undefined>()
  let failed = 0
  for (const [index, { address, reason }] of wanted.entries()) {
    if (reason) rejectUnstorableText(`suppressions[${index}].reason`, reason)
    const valid = normal(address)
    if (valid === undefined) failed++
    else reasons.set(valid, reason === undefined ? reasons.get(valid) : reason)
  }
  const saved = await save(db, tenantId, reasons, nowMs)
  const added = saved.filter((one) => one.added).length
  return { added, updated: wanted.length - failed - added, failed }
}

export interface ImportedSuppression {
  address: string
  reason: string | null
  source: Suppression['source']
  createdAt: Date
  /** null: the entry does not end. */
  keepUntil: Date | null
}

/**
 * Adds entries of another program with their times. An address that is on the list stays as it is, except that its end is removed by an
 * entry without an end. Of a repeated address, the first entry counts. With `dryRun` it only counts. Returns how many were added, and
 * how many have an invalid address. Refuses as `tenantForNew`.
 */
export async function importSuppressions(
  db: Db,
  tenantId: string,
  entries: readonly ImportedSuppression[],
  { dryRun = false } = {},
): Promise<{ added: number; failed: number }> {
  const valid = new Map<string, ImportedSuppression>()
  let failed = 0
  for (const entry of entries) {
    const address = normal(entry.address)
    if (address === undefined) failed++
    else if (!valid.has(address)) valid.set(address, entry)
  }
  const rows = [...valid.values()]
  const added = await db.transaction(async (tx) => {
    if (tenantId !== '') await tenantForNew(tx, tenantId)
    if (dryRun) return valid.size - ((await tx.first(countListed, [tenantId, [...valid.keys()]]))?.listed ?? 0)
    const written = await tx.rows(importEntries, [
      tenantId,
      [...valid.keys()],
      rows.map(({ reason }) => reason),
      rows.map(({ source }) => source),
      rows.map(({ createdAt }) => createdAt),
      rows.map(({ keepUntil }) => keepUntil),
    ])
    return written.filter((one) => one.added).length
  })
  return { added, failed }
}

/** Deletes the entries whose time has ended. */
export const deleteEndedSuppressions = (on: Queryable, nowMs: number): Promise<number> => on.run(deleteEnded, [new Date(nowMs)])

/** `entry` is undefined for a valid address that is not on the list. */
export async function findSuppression(
  on: Queryable,
  tenantId: string,
  given: string,
): Promise<{ address: string; entry: Suppression | undefined }> {
  const address = listed(given)
  return { address, entry: await on.first(entryOf, [tenantId, address]) }
}

/** Removes an address from a list; refuses `not_found` if it is not there. */
export async function removeSuppression(db: Db, tenantId: string, given: string, nowMs: number): Promise<void> {
  const address = normal(given)
  const removed = await db.transaction(async (tx) => {
    const entries = address === undefined ? [] : await tx.rows(deleteEntry, [tenantId, address])
    await recordListChanges(tx, 'SuppressionRemoved', entries, nowMs)
    return entries.length
  })
  if (removed === 0) throw new Refusal('not_found', { message: 'address: not on the list' })
}

const tooLong = () =>
  wrongField('address', 'search reads too many entries', 'validation_error', 'Look up one address with GET /v1/suppressions/{email}')

/**
 * A page of a list, or (null) of all lists, newest first: addresses that contain `address`, with exactly the given `reason`. Refuses a search
 * that takes too long.
 */
export function listSuppressions(
  db: Db,
  filter: { tenantId: string | null; address?: string | undefined; reason?: string | undefined },
  page: { number: number; size: number },
): Promise<{ entries: Suppression[]; total: number }> {
  const containing = filter.address === undefined ? null : `%${filter.address.toLowerCase().replace(/[\\%_]/g, '\\$&')}%`
  const parameters = [filter.tenantId, containing, filter.reason ?? null]
  const statements = filter.tenantId === null ? ofEveryList : ofOneList
  const offset = (page.number - 1) * page.size
  return searchInSnapshot(db, tooLong, async (tx) => {
    const total = (await tx.first(statements.count, parameters))?.total ?? 0
    return { entries: offset < total ? await tx.rows(statements.page, [...parameters, page.size, offset]) : [], total }
  })
}
