/** Lists events of some kinds between two times, in pages in the order of the log, in either direction. Scans the log of these days. */
import { Refusal } from '#base'
import { type Db, type Sql, searchInSnapshot, sql, type Tx } from '#db'
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
 * In the order of the index, a page begins soon; the planner takes the kinds of a new partition for rarer than they are, and would sort all.
 */
const readInOrder = sql`
  select set_config('enable_sort', 'off', true)`

const tooLong = () =>
  new Refusal('validation_error', {
    message: 'the search covers too long a period',
    suggestion: 'Search a shorter period, with a begin and an end',
  })

/**
 * Up to `most` events of emails, beginning beside the position `from`, which is not included. As of `readEvents`, events that an open
 * transaction could still precede are left out, so that a later page has them. Refuses a period that is too long to be searched.
 */
export async function listEventsBetween(
  db: Db,
  { tenantId, kinds, after, before }: EventRange,
  { from, ascending, most }: { from: LogPosition | undefined; ascending: boolean; most: number },
): Promise<LoggedEvent[]> {
  const { oldestFirst, newestFirst } = tenantId === null ? ofAll : ofTenant
  const { xact, id } = from ?? (ascending ? startOfTime : endOfTime)
  const values = sql.values(listed, { tenantId: tenantId ?? '', kinds, after, before, xact, id, limit: most })
  const search = async (tx: Tx) => {
    await tx.run(readInOrder)
    return tx.rows(ascending ? oldestFirst : newestFirst, values)
  }
  return searchInSnapshot(db, tooLong, search, { statementMs: 10_000, customPlan: true })
}
