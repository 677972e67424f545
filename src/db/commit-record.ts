/** A commit without effect, as a check that the database commits. A read would not show it: a primary without its standby answers reads. */
import type { Queryable } from './queryable.ts'
import { sql } from './sql-tag.ts'

/** A WAL record that no table sees: its commit waits for the disk and for the standbys like every other. */
const emitRecord = sql`
  select pg_logical_emit_message(true, 'postrider', '')`

export async function commitRecord(on: Queryable): Promise<void> {
  await on.rows(emitRecord)
}
