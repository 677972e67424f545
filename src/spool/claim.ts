/**
 * Claims ready recipients for the owned shards in fair order. A lane is one tenant's mail for one recipient domain. Tenants take turns,
 * and within a tenant its recipient domains. A lane yields at most its window, so that an unresponsive site holds few recipients. The
 * claim is committed before sending, so that a crash distinguishes "not started" from "possibly sent".
 */
import { type Db, type Queryable, sql } from '#db'
import { hasKeyOf, isStillClaimed, stateByKey } from './row-guards.ts'
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
  /** When a scheduled email was to leave, in real time. */
  scheduledAt: Date | null
  /** It is sent without regard to the TLS policy of the recipient's domain; null: no. */
  ignoresTlsPolicies?: boolean | null
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
  spool.hold_reason as "holdReason", ${rowClockOffset} as "clockOffsetMs", spool.scheduled_at as "scheduledAt",
  spool.ignores_tls_policies as "ignoresTlsPolicies"`

/** The shards that the caller owns, in every statement of a delivery process. */
const ownedTypes = { shards: 'smallint[]', epochs: 'bigint[]' } as const

const wished = sql.parameters({
  ...ownedTypes,
  cursorTenants: 'text[]',
  cursorDomains: 'text[]',
  lanesPerTenant: 'integer',
  windowTenants: 'text[]',
  windowDomains: 'text[]',
  windowSizes: 'integer[]',
  freshWindow: 'integer',
  busyTenants: 'text[]',
  busySizes: 'integer[]',
  mostOfTenant: 'integer',
  most: 'bigint',
  paused: 'text[]',
})

/**
 * A loose index scan (the next lane after this one) replaces a sort, so the cost depends on the number of lanes examined and not on the
 * length of the backlog. One scan goes over all shards: a shard without mail has no cost. The scans name the columns of the index of ready
 * recipients from the first on, as ranges and in its order, which no other index can serve, also in a plan for an empty spool.
 */
const claimReady = sql<Claimed>`
  with recursive
  -- The shards of this process, with the epochs of their leases.
  owned (shard, epoch) as (
    select shard, epoch
    from unnest(${wished.shards}, ${wished.epochs}) as owned (shard, epoch)
  ),
  -- The places where the scan lands: lanes, the first lane of a tenant whose cursor is behind it, and shards of other processes (no epoch).
  step (shard, epoch, tenant_id, recipient_domain, cursor, nth) as (
    select 0::smallint, null::bigint, '' collate "C", '' collate "C", null::text collate "C", 0
    union all
    select next.shard, owned.epoch, next.tenant_id, next.recipient_domain, cursor.recipient_domain,
           case
             when (next.shard, next.tenant_id) = (step.shard, step.tenant_id) then step.nth + 1
             when next.recipient_domain <= cursor.recipient_domain then 0
             else 1
           end
    from step
    cross join lateral (
      select spool.shard, spool.tenant_id, spool.recipient_domain
      from spool
      where state = 'ready' and (spool.shard, spool.tenant_id, spool.recipient_domain) > (
        case when step.epoch is null and step.tenant_id <> '' then step.shard + 1 else step.shard end,
        case when step.epoch is null then '' else step.tenant_id end,
        case
          when step.epoch is null then ''
          -- Behind all domains of the tenant.
          when step.nth >= ${wished.lanesPerTenant} then chr(1114111)
          else greatest(step.recipient_domain, step.cursor)
        end
      )
      order by spool.shard, spool.tenant_id, spool.recipient_domain
      limit 1
    ) as next
    left join owned on owned.shard = next.shard
    left join unnest(${wished.cursorTenants}, ${wished.cursorDomains}) as cursor (tenant_id, recipient_domain)
      on cursor.tenant_id = next.tenant_id
  ),
  lane (shard, epoch, tenant_id, recipient_domain) as (
    select shard, epoch, tenant_id, recipient_domain
    from step
    where epoch is not null and nth > 0
  ),
  -- The window of each lane, and the number of shards that it extends over.
  filled as (
    select lane.shard, lane.epoch, lane.tenant_id, lane.recipient_domain, coalesce(known.size, ${wished.freshWindow}) as size,
           count(*) over (partition by lane.tenant_id, lane.recipient_domain) as shards
    from lane
    left join unnest(${wished.windowTenants}, ${wished.windowDomains}, ${wished.windowSizes}) as known (tenant_id, recipient_domain, size)
      on known.tenant_id = lane.tenant_id and known.recipient_domain = lane.recipient_domain
    left join unnest(${wished.busyTenants}, ${wished.busySizes}) as busy (tenant_id, recipients) on busy.tenant_id = lane.tenant_id
    where lane.recipient_domain <> all(${wished.paused}) and coalesce(busy.recipients, 0) < ${wished.mostOfTenant}
  ),
  -- The oldest recipients of each lane in each shard, numbered over all shards.
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
  -- The turns of each tenant: its lanes alternate, and no lane exceeds its window.
  turn as (
    select tenant_id, email_id, epoch,
           row_number() over (partition by tenant_id order by nth_in_lane, email_id) as nth
    from candidate
    where nth_in_lane <= size
  ),
  -- The first turn of every tenant, then the second, until there are enough. Recipients in flight are turns that a tenant has had, so that a
  -- tenant with hundreds of unresponsive sites does not take each place that becomes free.
  picked as materialized (
    select turn.tenant_id, turn.email_id, turn.epoch
    from turn
    left join unnest(${wished.busyTenants}, ${wished.busySizes}) as busy (tenant_id, recipients) on busy.tenant_id = turn.tenant_id
    where turn.nth + coalesce(busy.recipients, 0) <= ${wished.mostOfTenant}
    order by turn.nth + coalesce(busy.recipients, 0), turn.email_id
    limit ${wished.most}
  )
  update spool
  set state = 'sending', epoch = picked.epoch, transport = null
  from picked
  where ${hasKeyOf(sql.part`picked`)} and ${stateByKey} = 'ready'
  returning ${claimedColumns}`

/** The first parameters of both statements, so that they have the same numbers in `givenClaims`. */
const claimTypes = { tenantIds: 'text[]', emailIds: 'text[]', epochs: 'bigint[]', attempts: 'integer[]' } as const
const requeued = sql.parameters(claimTypes)
const postponed = sql.parameters({ ...claimTypes, due: 'timestamptz', delayReason: 'text' })

const givenClaims = sql.part`
  unnest(${requeued.tenantIds}, ${requeued.emailIds}, ${requeued.epochs}, ${requeued.attempts}) as given (tenant_id, email_id, epoch, attempt_count)`

const requeueClaimed = sql`
  update spool
  set state = 'ready'
  from ${givenClaims}
  where ${isStillClaimed(sql.part`given`)}`

const postponeClaimed = sql`
  update spool
  set state = 'deferred', due_at = ${postponed.due}, delay_reason = ${postponed.delayReason}
  from ${givenClaims}
  where ${isStillClaimed(sql.part`given`)}`

const sought = sql.parameters({ ...ownedTypes, inFlight: 'text[]', most: 'bigint' })

const orphanedClaims = sql<OrphanedClaim>`
  select ${claimedColumns}, spool.transport
  from spool
  join unnest(${sought.shards}, ${sought.epochs}) as owned (shard, epoch) on owned.shard = spool.shard
  where spool.state = 'sending' and spool.epoch <= owned.epoch and spool.email_id <> all(${sought.inFlight})
  limit ${sought.most}`

const routed = sql.parameters({ ...claimTypes, transports: 'text[]' })

const noteTransportsOf = sql`
  update spool
  set transport = nullif(given.transport, '')
  from unnest(${routed.tenantIds}, ${routed.emailIds}, ${routed.epochs}, ${routed.attempts}, ${routed.transports})
    as given (tenant_id, email_id, epoch, attempt_count, transport)
  where ${isStillClaimed(sql.part`given`)}`

/** A claim without an owner. */
export interface OrphanedClaim extends Claimed {
  /** The transport that it was to take; null: the default. */
  transport: string | null
}

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
  /** Recipients in flight of tenants with many. */
  busyTenants?: ReadonlyMap<string, number>
  /** Maximum for one tenant, with those in flight. */
  mostOfTenant?: number
  /** Recipient domains from which no recipient is claimed. */
  paused: readonly string[]
}

/** Commits the claim, and returns the claimed recipients in fair order of turns. */
export function claim(db: Db, wish: ClaimWish): Promise<Claimed[]> {
  const values = sql.values(wished, {
    ...columnsOfShards(wish.shards),
    cursorTenants: [...wish.cursors.keys()],
    cursorDomains: [...wish.cursors.values()],
    lanesPerTenant: wish.lanesPerTenant,
    windowTenants: wish.windows.map((one) => one.tenantId),
    windowDomains: wish.windows.map((one) => one.recipientDomain),
    windowSizes: wish.windows.map((one) => one.size),
    freshWindow: wish.freshWindow,
    busyTenants: [...(wish.busyTenants?.keys() ?? [])],
    busySizes: [...(wish.busyTenants?.values() ?? [])],
    mostOfTenant: wish.mostOfTenant ?? wish.most + 1_000_000,
    most: wish.most,
    paused: wish.paused,
  })
  return db.rows(claimReady, values)
}

const columnsOfShards = (owned: readonly OwnedShard[]) => ({
  shards: owned.map((one) => one.shard),
  epochs: owned.map((one) => one.epoch),
})

type ClaimKey = Pick<Claimed, 'tenantId' | 'emailId' | 'epoch' | 'attempts'>

const columnsOfClaims = (claimed: readonly ClaimKey[]) => ({
  tenantIds: claimed.map((one) => one.tenantId),
  emailIds: claimed.map((one) => one.emailId),
  epochs: claimed.map((one) => one.epoch),
  attempts: claimed.map((one) => one.attempts),
})

/** Requeues recipients that were claimed and never reached a connection. */
export async function requeueUnsent(on: Queryable, claimed: readonly ClaimKey[]): Promise<void> {
  if (claimed.length === 0) return
  await on.run(requeueClaimed, sql.values(requeued, columnsOfClaims(claimed)))
}

/** Like `requeueUnsent`, but not to be claimed again before `due`; counts as no attempt. `delayReason`: the delay reason, for people. */
export async function postpone(
  on: Queryable,
  claimed: readonly ClaimKey[],
  { due, delayReason }: { due: Date; delayReason: string },
): Promise<void> {
  if (claimed.length === 0) return
  await on.run(postponeClaimed, sql.values(postponed, { ...columnsOfClaims(claimed), due, delayReason }))
}

/**
 * Stores the transport that claimed recipients are about to take; null: the default, which a claim also sets. If the process ends before it
 * records an outcome, the next owner of the shard can name it.
 */
export async function noteTransports(on: Queryable, routes: readonly { claimed: ClaimKey; transport: string | null }[]): Promise<void> {
  if (routes.length === 0) return
  const keys = columnsOfClaims(routes.map((one) => one.claimed))
  await on.run(noteTransportsOf, sql.values(routed, { ...keys, transports: routes.map((one) => one.transport ?? '') }))
}

/** Orphaned claims of these shards: recipients that are claimed but not in flight (`inFlightEmailIds`). They may have been sent. */
export function findOrphanedClaims(
  db: Db,
  shards: readonly OwnedShard[],
  inFlightEmailIds: readonly string[],
  most: number,
): Promise<OrphanedClaim[]> {
  return db.rows(orphanedClaims, sql.values(sought, { ...columnsOfShards(shards), inFlight: inFlightEmailIds, most }))
}
