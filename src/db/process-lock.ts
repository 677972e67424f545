/** Work of one process at a time, under an advisory lock. The lock belongs to a connection, so it ends with its process. */
import type { Db, DbSession } from './queryable.ts'
import { sql } from './sql-tag.ts'

const tryLock = sql<{ taken: boolean }>`
  select pg_try_advisory_lock($1::bigint) as taken`

/** Returns undefined, without any work, while another process has the lock. */
export async function withProcessLock<T>(db: Db, lock: number, work: (session: DbSession) => Promise<T>): Promise<T | undefined> {
  const session = await db.session()
  try {
    if (!(await session.first(tryLock, [lock]))?.taken) return undefined
    return await work(session)
  } finally {
    await session.close()
  }
}
