/**
 * Due times of deferred recipients: those that are due become ready, and a due time beyond any regular delay is corrected.
 */
import { type Db, sql } from '#db'
import type { OwnedShard } from './claim.ts'
import { hasKeyOf, stateByKey } from './row-guards.ts'

const promoted = sql.parameters({ shards: 'smallint[]', now: 'timestamptz', most: 'bigint' })

const promoteDue = sql`
  update spool
  set state = 'ready', due_at = null
  from (
    select tenant_id, email_id
    from spool
    where state = 'deferred' and shard = any(${promoted.shards}) and due_at <= ${promoted.now}
    order by due_at
    limit ${promoted.most}
  ) as due
  where ${hasKeyOf(sql.part`due`)} and ${stateByKey} = 'deferred'`

const recalled = sql.parameters({ shards: 'smallint[]', latest: 'timestamptz', now: 'timestamptz', most: 'bigint' })

/** Uses the index of due times, as the promotion does. It also contains held recipients, whose time may be as far in the future, so this runs rarely. */
const recallDistant = sql`
  update spool
  set due_at = ${recalled.now}
  from (
    select tenant_id, email_id
    from spool
    where state = 'deferred' and shard = any(${recalled.shards}) and due_at > ${recalled.latest}
    order by due_at
    limit ${recalled.most}
  ) as distant
  where ${hasKeyOf(sql.part`distant`)} and ${stateByKey} = 'deferred'`

/** Makes deferred recipients ready when they are due; returns how many. */
export function promote(db: Db, shards: readonly OwnedShard[], nowMs: number, most: number): Promise<number> {
  return db.run(promoteDue, sql.values(promoted, { shards: shards.map((one) => one.shard), now: new Date(nowMs), most }))
}

/**
 * Makes deferred recipients due now if they are due after `latestMs`, beyond any regular delay: a process whose clock was fast wrote that
 * time. Returns how many.
 */
export function recall(db: Db, shards: readonly OwnedShard[], latestMs: number, nowMs: number, most: number): Promise<number> {
  const times = { latest: new Date(latestMs), now: new Date(nowMs) }
  return db.run(recallDistant, sql.values(recalled, { shards: shards.map((one) => one.shard), ...times, most }))
}
