/** Counts the recent emails that people opened, and those whose links they used: bounded, for the page of tracking. */
import { emailIdPrefix } from '#base'
import { type Queryable, sql } from '#db'

export interface ReaderCounts {
  opened: number
  clicked: number
  /** false: there are more events than are counted. */
  isComplete: boolean
}

/** Read in a tenth of a second. */
const maxEvents = 100_000

const recentReaders = sql<{ opened: number; clicked: number; events: number }>`
  select count(distinct email_id) filter (where kind = 'open' and source <> 'machine')::integer as opened,
         count(distinct email_id) filter (where kind = 'click' and source <> 'machine')::integer as clicked,
         count(*)::integer as events
  from (
    select email_id, kind, source
    from tracking_events
    where ($1::text is null or tenant_id = $1) and email_id >= $2
    limit $3
  ) as recent`

/** Of the emails accepted since then. `tenantId` null: of all tenants. */
export async function countReaders(on: Queryable, tenantId: string | null, sinceMs: number): Promise<ReaderCounts> {
  const { opened = 0, clicked = 0, events = 0 } = (await on.first(recentReaders, [tenantId, emailIdPrefix(sinceMs), maxEvents])) ?? {}
  return { opened, clicked, isComplete: events < maxEvents }
}
