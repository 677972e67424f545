/**
 * Conditions that find rows of the spool by key, for every statement that changes rows it has selected before.
 *
 * The server caches plans. A plan made while the spool was nearly empty assumes that the spool has one row, so that every access path
 * costs the same. These guards leave only the primary key, so that no plan reads the backlog to find a few rows: `|| ''` excludes the
 * partial indexes of a state, and `between` a key and the same key excludes a join that compares all keys.
 */
import { type Sql, sql, type Tx } from '#db'

/** The state of a row found by key. No partial index can serve a condition on it. */
export const stateByKey = sql.part`spool.state || ''`

/** The row with the key of `other`, which has the columns `tenant_id` and `email_id`. */
export const hasKeyOf = (other: Sql<unknown>): Sql<never> => sql.part`
  (spool.tenant_id, spool.email_id) between (${other}.tenant_id, ${other}.email_id) and (${other}.tenant_id, ${other}.email_id)`

/**
 * The fence: the row with the key of `claim` if the claim still stands, so that no process has claimed the row since. `claim` also has the
 * columns `epoch` and `attempt_count`, as claimed.
 */
export const isStillClaimed = (claim: Sql<unknown>): Sql<never> => sql.part`
  ${hasKeyOf(claim)} and ${stateByKey} = 'sending'
  and (spool.epoch, spool.attempt_count) = (${claim}.epoch, ${claim}.attempt_count)`

const preferIndexes = sql`
  select set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true), set_config('enable_hashjoin', 'off', true),
         set_config('enable_mergejoin', 'off', true), set_config('jit', 'off', true)`

/**
 * For transactions outside delivery, whose sessions have these settings (hosted-roles.ts): without them the planner may compare each key with the
 * whole backlog. Call it before the first statement with a guard.
 */
export const allowOnlyKeys = (tx: Tx): Promise<unknown> => tx.rows(preferIndexes)
