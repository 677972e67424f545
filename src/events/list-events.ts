/** Lists events of some kinds between two times, in pages in the order of the log, in either direction. Scans the log of these days. */
import { type Queryable, type Sql, sql } from '#db'
import type { EventKind, LoggedEvent, LogPosition } from './event-log.ts'

const listed = sql.parameters({
  tenantId: 'text',
  kinds: 'text[]',
  after: 'timestamptz',
  before: 'timestamptz',
  xact: 'text',
  id: 'bigint',
  limit: 'bigint',
})

const pagesOf = (scope: Sql<unknown>) => {
  const page = (step: Sql<unknown>) => sql<LoggedEvent>`
    select xact::text as xact, id, tenant_id as "tenantId", kind, email_id as "emailId", at, data
    from events
    where ${scope} and kind = any(${listed.kinds}) and email_id is not null and at between ${listed.after} and ${listed.before}
      and xact < pg_snapshot_xmin(pg_current_snapshot()) and ${step}
    limit ${listed.limit}`
  return {
    oldestFirst: page(sql.part`(xact, id) > (${listed.xact}::xid8, ${listed.id}) order by events.xact, events.id`),
    newestFirst: page(sql.part`(xact, id) < (${listed.xact}::xid8, ${listed.id}) order by events.xact desc, events.id desc`),
  }
}
const ofTenant = pagesOf(sql.part`tenant_id = ${listed.tenantId}`)
const ofAll = pagesOf(sql.part`${listed.tenantId} = ''`)

/** Beyond every event. */
const endOfTime: LogPosition = { xact: '18446744073709551615', id: Number.MAX_SAFE_INTEGER }
const startOfTime: LogPosition = { xact: '0', id: 0 }

export interface EventRange {
  /** null: of all tenants. */
  tenantId: string | null
  kinds: readonly EventKind[]
  /** Both inclusive. */
  after: Date
  before: Date
}

/**
 * Up to `most` events of emails, beginning beside the position `from`, which is not included. As of `readEvents`, events that an open
 * transaction could still precede are left out, so that a later page has them.
 */
export function listEventsBetween(
  on: Queryable,
  range: EventRange,
  { from, ascending, most }: { from: LogPosition | undefined; ascending: boolean; most: number },
): Promise<LoggedEvent[]> {
  const { oldestFirst, newestFirst } = range.tenantId === null ? ofAll : ofTenant
  const { xact, id } = from ?? (ascending ? startOfTime : endOfTime)
  const { tenantId, kinds, after, before } = range
  return on.rows(
    ascending ? oldestFirst : newestFirst,
    sql.values(listed, { tenantId: tenantId ?? '', kinds, after, before, xact, id, limit: most }),
  )
}
