/**
 * Emails kept out of delivery: those over the send limit, released in order of acceptance, and held ones, among them those that have expired.
 */
import { emailIdTimeMs } from '#base'
import { type Db, type Queryable, type Sql, sql, type Tx } from '#db'
import { appendEvents } from '#events'
import { addWaiting, type FreeSlots, listFullLimits, roomForWaiting, type SendLimits, settleWaiting } from '#limits'
import { rowClockOffset } from './test-clocks.ts'

interface OfTenantAndKey {
  tenantId: string
  /** null: the key has no limit of its own. */
  keyId: number | null
}

/** Releases the emails of `candidate`, which are those over the limit that no key's limit keeps back. */
const releaseOf = (candidate: Sql<unknown>) => sql<OfTenantAndKey & { taken: number }>`
  with room (tenant_id, slots) as (
    select tenant_id, slots
    from unnest($2::text[], $3::bigint[]) as room (tenant_id, slots)
  ),
  ${candidate},
  ranked as (
    select tenant_id, email_id, row_number() over (partition by tenant_id order by email_id) as nth
    from candidate
  ),
  next as (
    select ranked.tenant_id, ranked.email_id
    from ranked
    left join room on room.tenant_id = ranked.tenant_id
    where room.slots is null or ranked.nth <= room.slots
    order by ranked.email_id
    limit $4
  ),
  released as (
    update spool
    set state = 'ready'
    from next
    where spool.tenant_id = next.tenant_id and spool.email_id = next.email_id and spool.state = 'over_limit'
    returning spool.tenant_id, spool.limited_key
  )
  select tenant_id as "tenantId", limited_key as "keyId", count(*) as taken
  from released
  group by tenant_id, limited_key`

const releaseSome = releaseOf(sql.part`candidate as (
    select tenant_id, email_id
    from spool
    where state = 'over_limit' and test = $1
  )`)

/** $5, $6: the free slots of keys. */
const releaseWithinKeys = releaseOf(sql.part`key_room (id, slots) as (
    select id, slots
    from unnest($5::bigint[], $6::bigint[]) as key_room (id, slots)
  ),
  of_key as (
    select tenant_id, email_id, limited_key, row_number() over (partition by limited_key order by email_id) as nth
    from spool
    where state = 'over_limit' and test = $1
  ),
  candidate as (
    select tenant_id, email_id
    from of_key
    left join key_room on key_room.id = of_key.limited_key
    where key_room.slots is null or of_key.nth <= key_room.slots
  )`)

const countWaiting = sql<OfTenantAndKey & { waiting: number }>`
  select tenant_id as "tenantId", limited_key as "keyId", count(*) as waiting
  from spool
  where state = 'over_limit' and test = $1
  group by tenant_id, limited_key`

const waitingKeys = sql<{ id: number }>`
  select distinct limited_key as id
  from spool
  where state = 'over_limit' and limited_key is not null`

/** $2, $3: the tenants and keys whose mail is left out. */
const firstReleasable = sql<{ emailId: string }>`
  select email_id as "emailId"
  from spool
  where state = 'over_limit' and test = $1 and tenant_id <> all($2) and (limited_key is null or limited_key <> all($3))
  order by email_id
  limit 1`

interface ExpiredHold {
  tenantId: string
  emailId: string
  recipient: string
  attempts: number
  clockOffsetMs: number
}

const takeExpired = sql<ExpiredHold>`
  delete from spool
  where (tenant_id, email_id) in (
    select tenant_id, email_id
    from spool
    where state = 'held' and due_at <= $1 and ($3::text is null or (tenant_id = $3 and test))
    limit $2
  ) and state = 'held'
  returning tenant_id as "tenantId", email_id as "emailId", recipient, attempt_count as "attempts", ${rowClockOffset} as "clockOffsetMs"`

export interface HeldEmail {
  shard: number
  dueAt: Date
  emailId: string
  tenantId: string
  holdReason: string
}

/** In the order of the index of due times, which also finds the due time: no deferred email that is due earlier is read. */
const heldAfter = sql<HeldEmail>`
  select shard, due_at as "dueAt", email_id as "emailId", tenant_id as "tenantId", hold_reason as "holdReason"
  from spool
  where state = 'held' and due_at > $1 and (shard, due_at, email_id) > ($2, $3, $4)
  order by shard, due_at, email_id
  limit $5`

/** Releases as many emails over the send limit as there is capacity for, in order of acceptance; returns how many. */
export const releaseWaiting = (db: Db, limits: SendLimits, nowMs: number): Promise<number> =>
  db.transaction((tx) => releaseWaitingIn(tx, limits, nowMs))

export async function releaseWaitingIn(tx: Tx, limits: SendLimits, nowMs: number): Promise<number> {
  let released = 0
  const listWaitingKeys = async () => (await tx.rows(waitingKeys)).map((one) => one.id)
  for (const room of await roomForWaiting(tx, limits, nowMs, listWaitingKeys)) released += await releaseWithin(tx, room, limits, nowMs)
  return released
}

/**
 * Releases waiting emails that the counters do not count, with all others; returns how many. A flush counts its emails before it inserts
 * them: a release between the two sees none of them, and stores the count of those that it sees.
 */
export async function releaseUncounted(db: Db, limits: SendLimits, nowMs: number): Promise<number> {
  const found = { live: 0, test: 0 }
  for (const { test, tenants, keys } of await listFullLimits(db, limits, nowMs))
    if (await db.first(firstReleasable, [test, tenants, keys])) found[test ? 'test' : 'live'] = 1
  if (found.live + found.test === 0) return 0
  return db.transaction(async (tx) => {
    // One email counted is enough: the release counts all that still wait.
    await addWaiting(tx, found, limits, nowMs)
    return releaseWaitingIn(tx, limits, nowMs)
  })
}

async function releaseWithin(tx: Tx, room: FreeSlots, limits: SendLimits, nowMs: number): Promise<number> {
  const given = [room.test, [...room.tenants.keys()], [...room.tenants.values()], room.organisation]
  const taken = await (room.keys.size === 0
    ? tx.rows(releaseSome, given)
    : tx.rows(releaseWithinKeys, [...given, [...room.keys.keys()], [...room.keys.values()]]))
  const waiting = await tx.rows(countWaiting, [room.test])
  const ofTenants = sums(taken, (one) => one.tenantId)
  const ofKeys = sums(taken, (one) => one.keyId)
  // A key or a tenant at its own ceiling delays only its own mail; all other mail waits for the organisation's capacity.
  const waitsForKey = ({ keyId }: OfTenantAndKey) => keyId !== null && isFull(room.keys.get(keyId), ofKeys.get(keyId))
  const waitsForTenant = ({ tenantId }: OfTenantAndKey) => isFull(room.tenants.get(tenantId), ofTenants.get(tenantId))
  const [behindKeys, others] = split(waiting, waitsForKey)
  const [behindTenants, behindOrganisation] = split(others, waitsForTenant)
  const waitingOfKeys = sums(behindKeys.map(counted), (one) => one.keyId)
  const waitingOfTenants = sums(behindTenants.map(counted), (one) => one.tenantId)
  const outcome = {
    taken: ofTenants,
    stillWaiting: {
      organisation: behindOrganisation.reduce((sum, one) => sum + one.waiting, 0),
      tenants: new Map([...room.tenants.keys()].map((id) => [id, waitingOfTenants.get(id) ?? 0])),
    },
    keys: new Map([...room.keys.keys()].map((id) => [id, { taken: ofKeys.get(id) ?? 0, stillWaiting: waitingOfKeys.get(id) ?? 0 }])),
  }
  await settleWaiting(tx, room.test, outcome, limits, nowMs, appendEvents)
  return taken.reduce((sum, one) => sum + one.taken, 0)
}

const isFull = (free: number | undefined, taken = 0) => free !== undefined && free <= taken

const counted = ({ waiting, ...of }: OfTenantAndKey & { waiting: number }) => ({ ...of, taken: waiting })

function sums<Row extends { taken: number }, Key>(rows: readonly Row[], keyOf: (row: Row) => Key): Map<Key, number> {
  const all = new Map<Key, number>()
  for (const row of rows) all.set(keyOf(row), (all.get(keyOf(row)) ?? 0) + row.taken)
  return all
}

const split = <One>(list: readonly One[], belongs: (one: One) => boolean): [One[], One[]] => [
  list.filter(belongs),
  list.filter((one) => !belongs(one)),
]

/** Removes expired held emails from the spool; the caller makes them hardfail in the same transaction. `testMailOf`: only test mail of this tenant. */
export function takeExpiredHolds(tx: Tx, nowMs: number, most: number, testMailOf?: string): Promise<ExpiredHold[]> {
  return tx.rows(takeExpired, [new Date(nowMs), most, testMailOf ?? null])
}

/** Held emails that are due after `dueMs`, in order, after this one. */
export const listHeld = (on: Queryable, dueMs: number, after: HeldEmail | undefined, most: number): Promise<HeldEmail[]> =>
  on.rows(heldAfter, [new Date(dueMs), after?.shard ?? 0, after?.dueAt ?? new Date(dueMs), after?.emailId ?? '', most])

const queuedContents = sql<{ contentId: string }>`
  select distinct content_id as "contentId"
  from spool
  where tenant_id = any($1) and content_id = any($2)`

const queuedContentsOfTenant = sql<{ contents: number }>`
  select count(distinct content_id)::integer as contents
  from spool
  where tenant_id = $1`

const oldestQueued = sql<{ oldest: string | null }>`
  select least(min(email_id), min(content_id)) as oldest
  from spool`

/** Returns those of the given contents that a recipient in the spool still needs. */
export async function contentsStillQueued(
  on: Queryable,
  emails: readonly { tenantId: string; contentId: string }[],
): Promise<ReadonlySet<string>> {
  const rows = await on.rows(queuedContents, [[...new Set(emails.map((one) => one.tenantId))], emails.map((one) => one.contentId)])
  return new Set(rows.map((row) => row.contentId))
}

/** The number of contents that recipients in the spool still need. */
export const countQueuedContents = async (on: Queryable, tenantId: string): Promise<number> =>
  (await on.first(queuedContentsOfTenant, [tenantId]))?.contents ?? 0

/** Acceptance time (ms) of the oldest email or content in the spool, if there is any. */
export async function oldestQueuedMs(on: Queryable): Promise<number | undefined> {
  const oldest = (await on.first(oldestQueued))?.oldest
  return oldest == null ? undefined : emailIdTimeMs(oldest)
}

const putRetry = sql`
  insert into spool (tenant_id, email_id, content_id, shard, recipient, recipient_domain, state, manual_retry, test, size_octets)
  values ($1, $2, $3, $4, $5, $6, 'ready', true, $7, $8)
  on conflict (tenant_id, email_id) do update
  set state = 'ready', manual_retry = true, attempt_count = 0, due_at = null, hold_reason = null
  where spool.state in ('deferred', 'held', 'ready')`

/**
 * Returns an email to the queue, ready now, marked as a manual retry; false while it is being sent, is over the send limit or scheduled.
 * `sizeOctets`: of its stored content, so that large contents are not all loaded with a claim.
 */
export async function queueRetry(
  tx: Tx,
  email: { tenantId: string; id: string; contentId: string; recipient: string; test: boolean; sizeOctets: number },
  shard: number,
): Promise<boolean> {
  const { tenantId, id, contentId, recipient, test, sizeOctets } = email
  const recipientDomain = recipient.slice(recipient.lastIndexOf('@') + 1)
  return (await tx.run(putRetry, [tenantId, id, contentId, shard, recipient, recipientDomain, test, sizeOctets])) === 1
}
