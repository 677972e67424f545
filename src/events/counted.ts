/** The log as what counts emails reads it: events without their texts, and all that comes after a position summed up. */
import { type Queryable, type Sql, sql } from '#db'
import type { EventKind, LogPosition } from './log.ts'

/** What a count needs of an event. */
export interface CountedEvent extends LogPosition {
  tenantId: string
  kind: EventKind
  emailId: string | null
  was: string | null
  /** Of accepted emails: how many in which unix second. */
  seconds: [second: number, count: number][] | null
  test: boolean | null
}

/** So many emails went from one status to that of `kind`, or were accepted. */
export interface CountedChange {
  kind: EventKind
  was: string | null
  test: boolean | null
  count: number
}

/** Ordered by the column and not by its text of the same name: '9' comes before '10'. */
const countedEvents = sql<CountedEvent>`
  select xact::text as xact, id, tenant_id as "tenantId", kind, email_id as "emailId", data ->> 'was' as was, data -> 'seconds' as seconds,
    (data -> 'test')::boolean as test
  from events
  where (xact, id) > ($1::text::xid8, $2) and xact < pg_snapshot_xmin(pg_current_snapshot())
  order by events.xact, events.id
  limit $3`

const digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
/** The second of acceptance that an email id begins with, as `emailIdTimeMs` reads it. */
const acceptedMs = sql.repeated(
  8,
  ' + ',
  (nth) => `(strpos('${digits}', substr(email_id, ${nth + 1}, 1)) - 1) * ${62 ** (7 - nth)}::bigint`,
)
const acceptedSecond = sql.part`(${acceptedMs}) / 1000`

/**
 * The events after a position. Order and limit keep the planner on the index, whatever a prepared plan takes the position for: a tail is
 * mostly empty, at the end of a log of many millions.
 */
const unread = (where: Sql<unknown>) => sql.part`(
      select tenant_id, email_id, kind, data
      from events
      where (xact, id) > ($1::text::xid8, $2) and ${where}
      order by xact, id
      limit (select $3::bigint)
    ) as unread`

/** Summed in the database: a tail is millions of events long after a foreign transaction has kept the roll-up from going on. */
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

/** The next events in order, as far as no transaction is open that could still write one before them. */
export const readCountedEvents = (on: Queryable, after: LogPosition, most: number): Promise<CountedEvent[]> =>
  on.rows(countedEvents, [after.xact, after.id, most])

/** What every event after a position that is visible now changes, by second of acceptance; of one tenant, or all. */
export const readTailBySecond = (on: Queryable, after: LogPosition, tenantId: string | null) =>
  on.rows(tailBySecond, [after.xact, after.id, endless, tenantId])

/** The same by tenant, of emails accepted within a time (unix seconds); of some tenants, or all. */
export const readTailByTenant = (
  on: Queryable,
  after: LogPosition,
  within: { fromSecond: number; toSecond: number },
  only: readonly string[] | null,
) => on.rows(tailByTenant, [after.xact, after.id, endless, only, within.fromSecond, within.toSecond])
