/**
 * The delay of the event log. Its readers stop before the oldest open transaction that has written, of any database of the server, because
 * an earlier event could still follow from it: webhooks, event streams, counts and the automatic pause wait with them.
 */
import { type Queryable, sql } from '#db'

const firstUnreadable = sql<{ at: Date }>`
  select at
  from events
  where xact >= pg_snapshot_xmin(pg_current_snapshot())
  order by xact, id
  limit 1`

/** Milliseconds since the oldest event that cannot be read yet; 0 without one. */
export async function logDelayMs(on: Queryable, nowMs: number): Promise<number> {
  const first = await on.first(firstUnreadable)
  return first ? Math.max(0, nowMs - first.at.getTime()) : 0
}

/** A transaction that has written and is still open, or is prepared for a commit in two phases. */
interface OpenTransaction {
  database: string
  /** The process id of its session; null: prepared. */
  pid: number | null
  /** The application's name, or the name of the prepared transaction. */
  name: string
}

const oldestOpen = sql<OpenTransaction>`
  select database, pid, name
  from (
    select datname as database, pid, application_name as name, backend_xid as xid
    from pg_stat_activity
    where backend_xid is not null
    union all
    select database, null, gid, transaction
    from pg_prepared_xacts
  ) as open
  order by age(xid) desc
  limit 1`

/** The oldest transaction that has written, of all databases of the server. */
export const findOldestOpenTransaction = (on: Queryable): Promise<OpenTransaction | undefined> => on.first(oldestOpen)
