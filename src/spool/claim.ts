/**
 * Claims ready recipients for the owned shards in fair order. A lane is one tenant's mail for one recipient domain. Tenants take turns,
 * and within a tenant its recipient domains. A lane yields at most its window, so that an unresponsive site holds few recipients. The
 * claim is committed before sending, so that a crash distinguishes "not started" from "possibly sent".
 */
import { type Db, type Queryable, sql } from '#db'
import { rowClockOffset } from './test-clocks.ts'

export interface Claimed {
  tenantId: string
  emailId: string
  contentId: string
  shard: number
  epoch: number
  recipient: string
  recipientDomain: string
  attempts: number
  manualRetry: boolean
  test: boolean
  sizeOctets: number
  /** The hold reason, if the recipient was held until the claim; `released` if it had been released. */
  holdReason: string | null
  /** Clock offset of the tenant's test clock, for test mail; otherwise 0. */
  clockOffsetMs: number
}

/** The status of an email in the spool, derived from its row. */
export function statusBefore(row: Pick<Claimed, 'holdReason' | 'manualRetry' | 'attempts'>): 'pending' | 'softfail' | 'held' {
  if (row.holdReason === 'released') return 'pending'
  if (row.holdReason !== null) return 'held'
  return row.manualRetry || row.attempts === 0 ? 'pending' : 'softfail'
}

export interface Lane {
  tenantId: string
  recipientDomain: string
}

const claimedColumns = sql.part`
  spool.tenant_id as "tenantId", spool.email_id as "emailId", spool.content_id as "contentId", spool.shard, spool.epoch,
  spool.recipient, spool.recipient_domain as "recipientDomain", spool.attempt_count as "attempts", spool.manual_retry as "manualRetry", spool.test, spool.size_octets as "sizeOctets",
  spool.hold_reason as "holdReason", ${rowClockOffset} as "clockOffsetMs"`

/**
 * The server caches plans. A plan made while the spool was nearly empty assumes that the spool has one row, so that every access path
 * costs the same. These guards leave only the intended path, so that no plan reads the backlog to find a few rows. `isNow` excludes a
 * whole partial index, and `between` a key and the same key excludes all keys. The loose scans name the columns of the index of ready
 * recipients from the first on, as ranges and in its order, which no other index can serve.
 */
const isNow = sql.part`spool.state || ''`

/**
 * Two loose index scans (the next tenant after this one, the next recipient domain after this one) replace a sort. The cost therefore
 * depends on the number of lanes examined and not on the length of the backlog.
 */
const claimReady = sql<Claimed>`
  with recursive owned (shard, epoch) as (
    select shard, epoch
    from unnest($1::smallint[], $2::bigint[]) as owned (shard, epoch)
  ),
  tenant (shard, epoch, tenant_id) as (
    select owned.shard, owned.epoch, first.tenant_id
    from owned, lateral (
      select tenant_id
      from spool
      where state = 'ready' and spool.shard >= owned.shard and spool.shard <= owned.shard
      order by spool.shard, tenant_id
      limit 1
    ) as first
    union all
    select tenant.shard, tenant.epoch, next.tenant_id
    from tenant, lateral (
      select tenant_id
      from spool
      where state = 'ready' and (spool.shard, spool.tenant_id) > (tenant.shard, tenant.tenant_id) and spool.shard <= tenant.shard
      order by spool.shard, tenant_id
      limit 1
    ) as next
  ),
  lane (shard, epoch, tenant_id, recipient_domain, nth) as (
    select tenant.shard, tenant.epoch, tenant.tenant_id, first.recipient_domain, 1
    from tenant
    left join unnest($3::text[], $4::text[]) as cursor (tenant_id, recipient_domain) on cursor.tenant_id = tenant.tenant_id
    cross join lateral (
      select spool.recipient_domain
      from spool
      where state = 'ready' and (spool.shard, spool.tenant_id) <= (tenant.shard, tenant.tenant_id)
        and (spool.shard, spool.tenant_id, spool.recipient_domain) > (tenant.shard, tenant.tenant_id, coalesce(cursor.recipient_domain, ''))
      order by spool.shard, spool.tenant_id, spool.recipient_domain
      limit 1
    ) as first
    union all
    select lane.shard, lane.epoch, lane.tenant_id, next.recipient_domain, lane.nth + 1
    from lane, lateral (
      select spool.recipient_domain
      from spool
      where state = 'ready' and (spool.shard, spool.tenant_id) <= (lane.shard, lane.tenant_id)
        and (spool.shard, spool.tenant_id, spool.recipient_domain) > (lane.shard, lane.tenant_id, lane.recipient_domain)
      order by spool.shard, spool.tenant_id, spool.recipient_domain
      limit 1
    ) as next
    where lane.nth < $5
  ),
  filled as (
    select lane.shard, lane.epoch, lane.tenant_id, lane.recipient_domain, coalesce(known.size, $9) as size,
           count(*) over (partition by lane.tenant_id, lane.recipient_domain) as shards
    from lane
    left join unnest($6::text[], $7::text[], $8::integer[]) as known (tenant_id, recipient_domain, size)
      on known.tenant_id = lane.tenant_id and known.recipient_domain = lane.recipient_domain
    where lane.recipient_domain <> all($11)
  ),
  candidate as (
    select ready.tenant_id, ready.email_id, filled.recipient_domain, filled.epoch, filled.size,
           row_number() over (partition by filled.tenant_id, filled.recipient_domain order by ready.content_id, ready.email_id) as nth_in_lane
    from filled
    cross join lateral (
      select spool.tenant_id, spool.content_id, spool.email_id
      from spool
      where state = 'ready' and (spool.shard, spool.tenant_id, spool.recipient_domain) >= (filled.shard, filled.tenant_id, filled.recipient_domain)
        and (spool.shard, spool.tenant_id, spool.recipient_domain) <= (filled.shard, filled.tenant_id, filled.recipient_domain)
      order by spool.shard, spool.tenant_id, spool.recipient_domain, spool.content_id, spool.email_id
      -- Hardly more than its share of each shard, so that a long backlog is not read and sorted to find its beginning.
      limit least(filled.size, 4 + 3 * filled.size / (2 * filled.shards))
    ) as ready
    where filled.size > 0
  ),
  turn as (
    select tenant_id, email_id, epoch,
           row_number() over (partition by tenant_id order by nth_in_lane, email_id) as nth
    from candidate
    where nth_in_lane <= size
  ),
  picked as materialized (
    select tenant_id, email_id, epoch
    from turn
    order by nth
    limit $10
  )
  update spool
  set state = 'sending', epoch = picked.epoch
  from picked
  where (spool.tenant_id, spool.email_id) between (picked.tenant_id, picked.email_id) and (picked.tenant_id, picked.email_id)
    and ${isNow} = 'ready'
  returning ${claimedColumns}`

/** Not claimed since then by another process or again by this one. */
const isStillClaimed = sql.part`
  (spool.tenant_id, spool.email_id) between (given.tenant_id, given.email_id) and (given.tenant_id, given.email_id) and ${isNow} = 'sending'
  and (spool.epoch, spool.attempt_count) = (given.epoch, given.attempt_count)`

const requeueClaimed = sql`
  update spool
  set state = 'ready'
  from unnest($1::text[], $2::text[], $3::bigint[], $4::integer[]) as given (tenant_id, email_id, epoch, attempt_count)
  where ${isStillClaimed}`

const postponeClaimed = sql`
  update spool
  set state = 'deferred', due_at = $5, delay_reason = $6
  from unnest($1::text[], $2::text[], $3::bigint[], $4::integer[]) as given (tenant_id, email_id, epoch, attempt_count)
  where ${isStillClaimed}`

const orphanedClaims = sql<Claimed>`
  select ${claimedColumns}
  from spool
  join unnest($1::smallint[], $2::bigint[]) as owned (shard, epoch) on owned.shard = spool.shard
  where spool.state = 'sending' and spool.epoch <= owned.epoch and spool.email_id <> all($3)
  limit $4`

const promoteDue = sql`
  update spool
  set state = 'ready', due_at = null
  from (
    select tenant_id, email_id
    from spool
    where state = 'deferred' and shard = any($1) and due_at <= $2
    order by due_at
    limit $3
  ) as due
  where (spool.tenant_id, spool.email_id) between (due.tenant_id, due.email_id) and (due.tenant_id, due.email_id) and ${isNow} = 'deferred'`

/** Uses the same index. The index also contains held recipients, whose time may be as far in the future, so this runs rarely. */
const recallDistant = sql`
  update spool
  set due_at = $3
  from (
    select tenant_id, email_id
    from spool
    where state = 'deferred' and shard = any($1) and due_at > $2
    order by due_at
    limit $4
  ) as distant
  where (spool.tenant_id, spool.email_id) between (distant.tenant_id, distant.email_id) and (distant.tenant_id, distant.email_id)
    and ${isNow} = 'deferred'`

export interface OwnedShard {
  shard: number
  epoch: number
}

export interface ClaimWish {
  shards: readonly OwnedShard[]
  /** Maximum number of recipients. */
  most: number
  /** Number of recipient domains to examine for one tenant in one shard. */
  lanesPerTenant: number
  /** Where to continue in a tenant with more recipient domains than that. */
  cursors: ReadonlyMap<string, string>
  /** Maximum to claim from lanes with mail in flight; 0 for a lane that has enough. */
  windows: readonly (Lane & { size: number })[]
  /** Maximum to claim from any other lane. */
  freshWindow: number
  /** Recipient domains from which no recipient is claimed. */
  paused: readonly string[]
}

/** Commits the claim, and returns the claimed recipients in fair order of turns. */
export function claim(db: Db, wish: ClaimWish): Promise<Claimed[]> {
  return db.rows(claimReady, [
    wish.shards.map((one) => one.shard),
    wish.shards.map((one) => one.epoch),
    [...wish.cursors.keys()],
    [...wish.cursors.values()],
    wish.lanesPerTenant,
    wish.windows.map((one) => one.tenantId),
    wish.windows.map((one) => one.recipientDomain),
    wish.windows.map((one) => one.size),
    wish.freshWindow,
    wish.most,
    wish.paused,
  ])
}

type ClaimKey = Pick<Claimed, 'tenantId' | 'emailId' | 'epoch' | 'attempts'>

const columnsOf = (claimed: readonly ClaimKey[]) => [
  claimed.map((one) => one.tenantId),
  claimed.map((one) => one.emailId),
  claimed.map((one) => one.epoch),
  claimed.map((one) => one.attempts),
]

/** Requeues recipients that were claimed and never reached a connection. */
export async function requeueUnsent(on: Queryable, claimed: readonly ClaimKey[]): Promise<void> {
  if (claimed.length === 0) return
  await on.run(requeueClaimed, columnsOf(claimed))
}

/** Like `requeueUnsent`, but not to be claimed again before `due`; counts as no attempt. `delayReason`: the delay reason, for people. */
export async function postpone(
  on: Queryable,
  claimed: readonly ClaimKey[],
  { due, delayReason }: { due: Date; delayReason: string },
): Promise<void> {
  if (claimed.length === 0) return
  await on.run(postponeClaimed, [...columnsOf(claimed), due, delayReason])
}

/** Orphaned claims of these shards: recipients that are claimed but not in flight (`inFlightEmailIds`). They may have been sent. */
export function findOrphanedClaims(
  db: Db,
  shards: readonly OwnedShard[],
  inFlightEmailIds: readonly string[],
  most: number,
): Promise<Claimed[]> {
  return db.rows(orphanedClaims, [shards.map((one) => one.shard), shards.map((one) => one.epoch), inFlightEmailIds, most])
}

/** Makes deferred recipients ready when they are due; returns how many. */
export function promote(db: Db, shards: readonly OwnedShard[], nowMs: number, most: number): Promise<number> {
  return db.run(promoteDue, [shards.map((one) => one.shard), new Date(nowMs), most])
}

/**
 * Makes deferred recipients due now if they are due after `latestMs`, beyond any regular delay: a process whose clock was fast wrote that
 * time. Returns how many.
 */
export function recall(db: Db, shards: readonly OwnedShard[], latestMs: number, nowMs: number, most: number): Promise<number> {
  return db.run(recallDistant, [shards.map((one) => one.shard), new Date(latestMs), new Date(nowMs), most])
}
