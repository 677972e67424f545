/** Several statements that see one moment of the database. */
import type { Db, Tx } from './queryable.ts'

/** Reads only; for answers that would contradict themselves if something were recorded between two statements. */
export function inSnapshot<T>(db: Db, work: (tx: Tx) => Promise<T>): Promise<T> {
  return db.transaction(async (tx) => {
    await tx.script('set transaction isolation level repeatable read, read only')
    return work(tx)
  })
}
