/** A quick look for new events, for readers of the log that keep their position in a table of one row. */
import { type Sql, sql } from '#db'

/**
 * The id of the next event that no earlier one can precede any more; no row without one. For readers that look often: a transaction that
 * locks the position would flush to disk each time, without an event. Order and limit keep the planner on the index. Without a position
 * it looks from the start of the log, so that counting, whose transaction requires one, reports the loss.
 */
export const nextEventAfter = (position: Sql<unknown>): Sql<{ id: number }> => sql<{ id: number }>`
  select id
  from events
  where (xact, id) > (
      coalesce((select position.xact from ${position} as position), '0'::xid8), coalesce((select position.id from ${position} as position), 0)
    )
    and xact < pg_snapshot_xmin(pg_current_snapshot())
  order by events.xact, events.id
  limit 1`
