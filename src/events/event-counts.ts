/** Reads the log for email counts: events without their texts, and the sum of all events after a position. */
import { type Queryable, type Sql, sql } from '#db'
import type { EventKind, LogPosition } from './event-log.ts'

/** The fields of an event that counts need. */
export interface CountedEvent extends LogPosition {
  tenantId: string
  kind: EventKind
  emailId: string | null
  was: string | null
  /** For accepted emails: their number by Unix second. */
  seconds: [second: number, count: number][] | null
  test: boolean | null
}

/** A number of emails that were accepted, or changed from one status to that of `kind`. */
export interface CountedChange {
  kind: EventKind
  was: string | null
  test: boolean | null
  count: number
}

/** Ordered by the column and not by its text alias: '9' sorts after '10' as text. */
const countedEvents = sql<CountedEvent>`
  select xact::text as xact, id, tenant_id as "tenantId", kind, email_id as "emailId", data ->> 'was' as was, data -> 'seconds' as seconds,
    (data -> 'test')::boolean as test
  from events
  where (xact, id) > ($1::text::xid8, $2) and xact < pg_snapshot_xmin(pg_current_snapshot())
  order by events.xact, events.id
  limit $3`

const digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
/** The acceptance second in an email id, decoded as in `emailIdTimeMs`. */
const acceptedMs = sql.repeated(
  8,
  ' + ',
  (nth) => `(strpos('${digits}', substr(email_id, ${nth + 1}, 1)) - 1) * ${62 ** (7 - nth)}::bigint`,
)
const acceptedSecond = sql.part`(${acceptedMs}) / 1000`

/**
 * The events after a position. Order and limit keep the planner on the index for any position it assumes for a prepared plan. The tail is
 * mostly empty, at the end of a log of many millions.
 */
const unread = (where: Sql<unknown>) => sql.part`(
      select tenant_id, email_id, kind, data
      from events
      where (xact, id) > ($1::text::xid8, $2) and ${where}
      order by xact, id
      limit (select $3::bigint)
    ) as unread`

/** Summed in the database: after a long transaction of another program has blocked the roll-up, a tail has millions of events. */
const countedTail = (ofTenants: Sql<unknown>) => sql.part`
    select tenant_id, ${acceptedSecond} as second, kind, data ->> 'was' as was, false as test, 1 as count
    from ${unread(sql.part`email_id is not null and ${ofTenants}`)}
    union all
    select tenant_id, (pair -> 0)::bigint, kind, null, (data -> 'test')::boolean, (pair -> 1)::integer
    from ${unread(sql.part`kind = 'EmailsAccepted' and ${ofTenants}`)}, jsonb_array_elements(data -> 'seconds') as pair`

const endless = Number.MAX_SAFE_INTEGER

const tailBySecond = sql<CountedChange & { second: number }>`
  select second, kind, was, test, sum(count)::bigint as count
  from (${countedTail(sql.part`($4::text is null or tenant_id = $4)`)}
  ) as counted
  group by second, kind, was, test`

const tailByTenant = sql<CountedChange & { tenantId: string }>`
  select tenant_id as "tenantId", kind, was, test, sum(count)::bigint as count
  from (${countedTail(sql.part`($4::text[] is null or tenant_id = any($4))`)}
  ) as counted
  where second >= $5 and second < $6
  group by tenant_id, kind, was, test`

/** The next events in order, up to the first open transaction that could still write an earlier one. */
export const readCountedEvents = (on: Queryable, after: LogPosition, maximum: number): Promise<CountedEvent[]> =>
  on.rows(countedEvents, [after.xact, after.id, maximum])

/** All changes by visible events after a position, by second of acceptance; for one tenant or all. */
export const readTailBySecond = (on: Queryable, after: LogPosition, tenantId: string | null) =>
  on.rows(tailBySecond, [after.xact, after.id, endless, tenantId])

/** The same by tenant, for emails accepted within a time range (Unix seconds); for some tenants or all. */
export const readTailByTenant = (
  on: Queryable,
  after: LogPosition,
  within: { fromSecond: number; toSecond: number },
  only: readonly string[] | null,
) => on.rows(tailByTenant, [after.xact, after.id, endless, only, within.fromSecond, within.toSecond])
