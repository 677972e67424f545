/** Runs several statements on one snapshot of the database. */
import type { Refusal } from '#base'
import { isStatementTimeout } from './errors.ts'
import type { Db, Tx } from './queryable.ts'

/** Read-only. For results that must be consistent across statements. */
export function inSnapshot<T>(db: Db, work: (tx: Tx) => Promise<T>): Promise<T> {
  return db.transaction(async (tx) => {
    await tx.script('set transaction isolation level repeatable read, read only')
    return work(tx)
  })
}

export interface SearchLimits {
  /** For each statement; absent: 25 seconds, less than the time limit of a response. */
  statementMs?: number
  /** Plans each statement for its values: a generic plan would not use the index of an optional filter. */
  customPlan?: boolean
}

/** Like `inSnapshot`, with a time limit: a slow search occupies a connection that other requests need. Throws `tooLong` if a statement reaches it. */
export async function searchInSnapshot<T>(
  db: Db,
  tooLong: () => Refusal,
  work: (tx: Tx) => Promise<T>,
  { statementMs = 25_000, customPlan = false }: SearchLimits = {},
): Promise<T> {
  const plan = customPlan ? '; set local plan_cache_mode = force_custom_plan' : ''
  try {
    return await db.transaction(async (tx) => {
      await tx.script(
        `set transaction isolation level repeatable read, read only; set local statement_timeout = ${Math.ceil(statementMs)}${plan}`,
      )
      return work(tx)
    })
  } catch (error) {
    throw isStatementTimeout(error) ? tooLong() : error
  }
}
