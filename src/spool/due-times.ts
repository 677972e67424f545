/**
 * Due times of deferred recipients: those that are due become ready, and a due time beyond any regular delay is corrected.
 */
import { type Db, type Sql, sql } from '#db'
import type { OwnedShard } from './claim.ts'
import { hasKeyOf, stateByKey } from './row-guards.ts'

/** The first parameters of both statements, so that they have the same numbers in `firstDue`. */
const dueTypes = { shards: 'smallint[]', bound: 'timestamptz', mostOfShard: 'bigint', most: 'bigint' } as const
const promoted = sql.parameters(dueTypes)
const recalled = sql.parameters({ ...dueTypes, now: 'timestamptz' })

/** Each shard is read in the order of its index and only so far: with all shards in one condition, every row that is due would be sorted. */
const firstDue = (isWanted: Sql<unknown>) => sql.part`
    select early.tenant_id, early.email_id
    from unnest(${promoted.shards}) as owned (shard)
    cross join lateral (
      select spool.tenant_id, spool.email_id, spool.due_at
      from spool
      where state = 'deferred' and spool.shard = owned.shard and ${isWanted}
      order by due_at
      limit ${promoted.mostOfShard}
    ) as early
    order by early.due_at
    limit ${promoted.most}`

const promoteDue = sql`
  update spool
  set state = 'ready', due_at = null
  from (
    ${firstDue(sql.part`due_at <= ${promoted.bound}`)}
  ) as due
  where ${hasKeyOf(sql.part`due`)} and ${stateByKey} = 'deferred'`

/** Uses the index of due times, as the promotion does. It also contains held recipients, whose time may be as far in the future, so this runs rarely. */
const recallDistant = sql`
  update spool
  set due_at = ${recalled.now}
  from (
    ${firstDue(sql.part`due_at > ${promoted.bound}`)}
  ) as distant
  where ${hasKeyOf(sql.part`distant`)} and ${stateByKey} = 'deferred'`

/** More than the share of a shard, so that the earliest of all shards are among them, though mail is spread unevenly. */
const limitsOf = (shards: readonly OwnedShard[], most: number) => ({
  shards: shards.map((one) => one.shard),
  mostOfShard: Math.min(most, 4 * Math.ceil(most / shards.length)),
  most,
})

/** Makes deferred recipients ready when they are due; returns how many. */
export function promote(db: Db, shards: readonly OwnedShard[], nowMs: number, most: number): Promise<number> {
  return db.run(promoteDue, sql.values(promoted, { ...limitsOf(shards, most), bound: new Date(nowMs) }))
}

/**
 * Makes deferred recipients due now if they are due after `latestMs`, beyond any regular delay: a process whose clock was fast wrote that
 * time. Returns how many.
 */
export function recall(db: Db, shards: readonly OwnedShard[], latestMs: number, nowMs: number, most: number): Promise<number> {
  return db.run(recallDistant, sql.values(recalled, { ...limitsOf(shards, most), bound: new Date(latestMs), now: new Date(nowMs) }))
}
