/**
 * Claiming: the owner of shards takes ready recipients in fair order. A lane is one tenant's mail for one destination. Tenants take
 * turns, and within a tenant its destinations; a lane gives no more than its window, so that a hanging destination holds few.
 * The claim is the intent to send: committed before any of it is handed to a connection, it tells "perhaps sent" from "not started".
 */
import { type Db, type Queryable, sql } from '#db'
import { aheadOfRow } from './test-clocks.ts'

export interface Claimed {
  tenantId: string
  emailId: string
  contentId: string
  shard: number
  epoch: number
  recipient: string
  destination: string
  failures: number
  manual: boolean
  test: boolean
  sizeOctets: number
  /** Why it was held, when it was until it was claimed; `released` when it was let go. */
  heldBecause: string | null
  /** How far the tenant's test clock is ahead, for test mail; else 0. */
  aheadMs: number
}

/** The status of an email in the spool, told from its row. */
export function statusBefore(row: Pick<Claimed, 'heldBecause' | 'manual' | 'failures'>): 'pending' | 'softfail' | 'held' {
  if (row.heldBecause === 'released') return 'pending'
  if (row.heldBecause !== null) return 'held'
  return row.manual || row.failures === 0 ? 'pending' : 'softfail'
}

export interface Lane {
  tenantId: string
  destination: string
}

const claimedColumns = sql.part`
  spool.tenant_id as "tenantId", spool.email_id as "emailId", spool.content_id as "contentId", spool.shard, spool.epoch,
  spool.recipient, spool.destination, spool.failures, spool.manual, spool.test, spool.size_octets as "sizeOctets",
  spool.held_because as "heldBecause", ${aheadOfRow} as "aheadMs"`

/**
 * Plans are kept, and one that was made while the spool was as good as empty believes that everything in it is one row: any way of finding
 * it costs the same. So that it cannot read the backlog where it should find a few rows, no other way is left to it: `isNow` keeps it from
 * a whole partial index, `between` a key and the same key from all keys, and the loose scans name the columns of the index of ready
 * recipients from the first on, as ranges and in its order, which no other index can serve.
 */
const isNow = sql.part`spool.state || ''`

/**
 * Two loose index scans (the next tenant after this one, the next destination after this one) instead of a sort, so that the cost
 * follows the number of lanes looked at and not the length of the backlog.
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
  lane (shard, epoch, tenant_id, destination, nth) as (
    select tenant.shard, tenant.epoch, tenant.tenant_id, first.destination, 1
    from tenant
    left join unnest($3::text[], $4::text[]) as cursor (tenant_id, destination) on cursor.tenant_id = tenant.tenant_id
    cross join lateral (
      select spool.destination
      from spool
      where state = 'ready' and (spool.shard, spool.tenant_id) <= (tenant.shard, tenant.tenant_id)
        and (spool.shard, spool.tenant_id, spool.destination) > (tenant.shard, tenant.tenant_id, coalesce(cursor.destination, ''))
      order by spool.shard, spool.tenant_id, spool.destination
      limit 1
    ) as first
    union all
    select lane.shard, lane.epoch, lane.tenant_id, next.destination, lane.nth + 1
    from lane, lateral (
      select spool.destination
      from spool
      where state = 'ready' and (spool.shard, spool.tenant_id) <= (lane.shard, lane.tenant_id)
        and (spool.shard, spool.tenant_id, spool.destination) > (lane.shard, lane.tenant_id, lane.destination)
      order by spool.shard, spool.tenant_id, spool.destination
      limit 1
    ) as next
    where lane.nth < $5
  ),
  filled as (
    select lane.shard, lane.epoch, lane.tenant_id, lane.destination, coalesce(known.size, $9) as size,
           count(*) over (partition by lane.tenant_id, lane.destination) as shards
    from lane
    left join unnest($6::text[], $7::text[], $8::integer[]) as known (tenant_id, destination, size)
      on known.tenant_id = lane.tenant_id and known.destination = lane.destination
    where lane.destination <> all($11)
  ),
  candidate as (
    select ready.tenant_id, ready.email_id, filled.destination, filled.epoch, filled.size,
           row_number() over (partition by filled.tenant_id, filled.destination order by ready.content_id, ready.email_id) as nth_in_lane
    from filled
    cross join lateral (
      select spool.tenant_id, spool.content_id, spool.email_id
      from spool
      where state = 'ready' and (spool.shard, spool.tenant_id, spool.destination) >= (filled.shard, filled.tenant_id, filled.destination)
        and (spool.shard, spool.tenant_id, spool.destination) <= (filled.shard, filled.tenant_id, filled.destination)
      order by spool.shard, spool.tenant_id, spool.destination, spool.content_id, spool.email_id
      -- Of each shard hardly more than its share: a long backlog is not read and sorted to find its beginning.
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

/** Not by another process since then, nor by this one again. */
const isStillClaimed = sql.part`
  (spool.tenant_id, spool.email_id) between (given.tenant_id, given.email_id) and (given.tenant_id, given.email_id) and ${isNow} = 'sending'
  and (spool.epoch, spool.failures) = (given.epoch, given.failures)`

const unclaim = sql`
  update spool
  set state = 'ready'
  from unnest($1::text[], $2::text[], $3::bigint[], $4::integer[]) as given (tenant_id, email_id, epoch, failures)
  where ${isStillClaimed}`

const putOff = sql`
  update spool
  set state = 'deferred', due_at = $5, waits_for = $6
  from unnest($1::text[], $2::text[], $3::bigint[], $4::integer[]) as given (tenant_id, email_id, epoch, failures)
  where ${isStillClaimed}`

const interrupted = sql<Claimed>`
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

/**
 * Through the same index. It has held recipients too, whose time may be as far off, so that it is not asked often.
 */
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
  /** How many recipients at most. */
  most: number
  /** How many destinations of one tenant in one shard to look at. */
  lanesPerTenant: number
  /** Where to go on in a tenant with more destinations than that. */
  cursors: ReadonlyMap<string, string>
  /** How much may be taken from lanes that are being worked on; 0 for those that have enough. */
  windows: readonly (Lane & { size: number })[]
  /** How much may be taken from any other lane. */
  freshWindow: number
  /** Destinations that nothing is taken for. */
  paused: readonly string[]
}

/** Commits the intent to send and returns the recipients taken, in fair order of turns. */
export function claim(db: Db, wish: ClaimWish): Promise<Claimed[]> {
  return db.rows(claimReady, [
    wish.shards.map((one) => one.shard),
    wish.shards.map((one) => one.epoch),
    [...wish.cursors.keys()],
    [...wish.cursors.values()],
    wish.lanesPerTenant,
    wish.windows.map((one) => one.tenantId),
    wish.windows.map((one) => one.destination),
    wish.windows.map((one) => one.size),
    wish.freshWindow,
    wish.most,
    wish.paused,
  ])
}

type ClaimKey = Pick<Claimed, 'tenantId' | 'emailId' | 'epoch' | 'failures'>

const columnsOf = (claimed: readonly ClaimKey[]) => [
  claimed.map((one) => one.tenantId),
  claimed.map((one) => one.emailId),
  claimed.map((one) => one.epoch),
  claimed.map((one) => one.failures),
]

/** Gives back what was claimed and never handed to a connection. */
export async function giveBack(on: Queryable, claimed: readonly ClaimKey[]): Promise<void> {
  if (claimed.length === 0) return
  await on.run(unclaim, columnsOf(claimed))
}

/** As `giveBack`, not to be claimed again before `due`; no attempt is counted. `waitsFor`: for people. */
export async function postpone(
  on: Queryable,
  claimed: readonly ClaimKey[],
  { due, waitsFor }: { due: Date; waitsFor: string },
): Promise<void> {
  if (claimed.length === 0) return
  await on.run(putOff, [...columnsOf(claimed), due, waitsFor])
}

/** Recipients of these shards that are claimed and not in the owner's hands (`heldEmailIds`): perhaps sent. */
export function findInterrupted(db: Db, shards: readonly OwnedShard[], heldEmailIds: readonly string[], most: number): Promise<Claimed[]> {
  return db.rows(interrupted, [shards.map((one) => one.shard), shards.map((one) => one.epoch), heldEmailIds, most])
}

/** Deferred recipients whose time has come become ready; returns how many. */
export function promote(db: Db, shards: readonly OwnedShard[], nowMs: number, most: number): Promise<number> {
  return db.run(promoteDue, [shards.map((one) => one.shard), new Date(nowMs), most])
}

/**
 * Deferred recipients that are due later than anything puts off, because a clock was ahead when that was written, are due now; returns how
 * many.
 */
export function recall(db: Db, shards: readonly OwnedShard[], latestMs: number, nowMs: number, most: number): Promise<number> {
  return db.run(recallDistant, [shards.map((one) => one.shard), new Date(latestMs), new Date(nowMs), most])
}
