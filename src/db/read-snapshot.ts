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

/**
 * Like `inSnapshot`, with 25 seconds for each statement, less than the time limit of a response: a slow search occupies a connection that other
 * requests need. Throws `tooLong` after a longer one.
 */
export async function searchInSnapshot<T>(db: Db, tooLong: () => Refusal, work: (tx: Tx) => Promise<T>): Promise<T> {
  try {
    return await db.transaction(async (tx) => {
      await tx.script(`set transaction isolation level repeatable read, read only; set local statement_timeout = '25s'`)
      return work(tx)
    })
  } catch (error) {
    throw isStatementTimeout(error) ? tooLong() : error
  }
}
