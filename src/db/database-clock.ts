/** The database's clock, for decisions that must not depend on the clock of one machine. Other statements get the time as a parameter. */
import type { Queryable } from './queryable.ts'
import { sql } from './sql-tag.ts'

const readClock = sql<{ ms: number }>`
  select (extract(epoch from $1::timestamptz) * 1000)::bigint as ms`

/** PostgreSQL reads `now` as the time at which it began the statement. */
export async function databaseNowMs(on: Queryable): Promise<number> {
  const row = await on.first(readClock, ['now'])
  if (!row) throw new Error('the database returned no time')
  return row.ms
}
