/** Runs several statements on one snapshot of the database. */
import type { Db, Tx } from './queryable.ts'

/** Read-only. For results that must be consistent across statements. */
export function inSnapshot<T>(db: Db, work: (tx: Tx) => Promise<T>): Promise<T> {
  return db.transaction(async (tx) => {
    await tx.script('set transaction isolation level repeatable read, read only')
    return work(tx)
  })
}
