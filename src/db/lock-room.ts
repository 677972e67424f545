/**
 * Room for locks in the server's memory, against the locks of statements that read all daily partitions of a table. A statement locks each
 * partition and each of its indexes; without room, PostgreSQL refuses it with "out of shared memory".
 */
import { ownSchema } from './own-schema.ts'
import type { Queryable } from './queryable.ts'
import { sql } from './sql-tag.ts'

const lockSettings = sql<{ perTransaction: number; connections: number }>`
  select current_setting('max_locks_per_transaction')::integer as "perTransaction", current_setting('max_connections')::integer as connections`

const relationsByTable = sql<{ table: string; relations: number }>`
  select parent.relname::text as table, max((select count(*) + 1 from pg_index x where x.indrelid = i.inhrelid))::integer as relations
  from pg_inherits i
  join pg_class parent on parent.oid = i.inhparent
  where parent.relnamespace = ${ownSchema} and parent.relkind = 'p'
  group by parent.relname`

/** The server keeps each lock once, and has memory for two holders of each. */
const holdersOfLock = 2

export interface LockRoom {
  perTransaction: number
  /** Locks that transactions can hold at once. */
  room: number
  /** Locks that `statements` statements hold at once, each over the kept days of the table with the most. */
  needed: number
  /** The value of `max_locks_per_transaction` that has room for them. */
  sufficient: number
}

export async function readLockRoom(
  on: Queryable,
  { statements, daysOf }: { statements: number; daysOf: (table: string) => number },
): Promise<LockRoom> {
  const { perTransaction, connections } = (await on.first(lockSettings)) ?? { perTransaction: 0, connections: 0 }
  const needed = statements * Math.max(0, ...(await on.rows(relationsByTable)).map(({ table, relations }) => relations * daysOf(table)))
  const room = (value: number) => holdersOfLock * connections * value
  let sufficient = Math.max(1, perTransaction)
  while (connections > 0 && room(sufficient) < needed) sufficient *= 2
  return { perTransaction, room: room(perTransaction), needed, sufficient }
}
