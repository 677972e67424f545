/** The share of the reported mail that passes DMARC, by From domain, source or day, for reputation. Only of reports with a valid signature. */
import { type Queryable, type Sql, sql } from '#db'

export interface DmarcShare {
  messages: number
  aligned: number
}

interface DmarcShareFilter {
  /** Null: all tenants. */
  tenantId: string | null
  /** The first and the last day, UTC. */
  from: string
  to: string
  /** The From domain. */
  domain?: string | undefined
  source?: string | undefined
}

type NamedShare = DmarcShare & { name: string }

const sums = sql.part`
  coalesce(sum(messages), 0)::double precision as messages, coalesce(sum(aligned), 0)::double precision as aligned`

const matching = sql.part`
  authenticated and day >= $2::date and day <= $3::date and ($4::text is null or header_from = $4) and ($5::text is null or source = $5)`

const readersOf = (scope: Sql<unknown>) => {
  const sharesBy = (key: Sql<unknown>) => sql<NamedShare>`
    select ${key} as name, ${sums}
    from dmarc_days
    where ${scope} and ${matching} and ${key} = any($6)
    group by ${key}
    limit $7`
  return {
    total: sql<DmarcShare>`
      select ${sums}
      from dmarc_days
      where ${scope} and ${matching}`,
    domain: sharesBy(sql.part`header_from`),
    source: sharesBy(sql.part`source`),
    changes: sql<DmarcChangeRow>`
      select tenant_id as "tenantId", header_from as "headerFrom",
        coalesce(sum(messages) filter (where day < $3::date), 0)::double precision as "messagesBefore",
        coalesce(sum(aligned) filter (where day < $3::date), 0)::double precision as "alignedBefore",
        coalesce(sum(messages) filter (where day = $3::date), 0)::double precision as "messagesNow",
        coalesce(sum(aligned) filter (where day = $3::date), 0)::double precision as "alignedNow"
      from dmarc_days
      where ${scope} and authenticated and day >= $2::date and day <= $3::date
      group by tenant_id, header_from
      having coalesce(sum(messages) filter (where day = $3::date), 0) >= $4
      order by sum(messages) desc, tenant_id, header_from
      limit $5`,
  }
}
const ofTenant = readersOf(sql.part`tenant_id = $1`)
const ofAll = readersOf(sql.part`$1::text is null`)

interface DmarcChangeRow {
  tenantId: string
  headerFrom: string
  messagesBefore: number
  alignedBefore: number
  messagesNow: number
  alignedNow: number
}

interface DmarcChange {
  tenantId: string
  headerFrom: string
  before: DmarcShare
  now: DmarcShare
}

const valuesOf = ({ tenantId, from, to, domain, source }: DmarcShareFilter) => [tenantId, from, to, domain ?? null, source ?? null]

export const sumDmarc = async (on: Queryable, filter: DmarcShareFilter): Promise<DmarcShare> =>
  (await on.first((filter.tenantId === null ? ofAll : ofTenant).total, valuesOf(filter))) ?? { messages: 0, aligned: 0 }

/** By name, of those among `names` with messages. */
export async function sumDmarcBy(
  on: Queryable,
  filter: DmarcShareFilter,
  by: 'domain' | 'source',
  names: readonly string[],
): Promise<Map<string, DmarcShare>> {
  const rows = await on.rows((filter.tenantId === null ? ofAll : ofTenant)[by], [...valuesOf(filter), names, names.length])
  return new Map(rows.map(({ name, ...share }) => [name, share]))
}

/** The From domains with at least `least` messages on the day `now`, and the figures of the day `before`; the largest first. */
export async function compareDmarcDays(
  on: Queryable,
  tenantId: string | null,
  { before, now, least, limit }: { before: string; now: string; least: number; limit: number },
): Promise<DmarcChange[]> {
  const rows = await on.rows((tenantId === null ? ofAll : ofTenant).changes, [tenantId, before, now, least, limit])
  return rows.map((row) => ({
    tenantId: row.tenantId,
    headerFrom: row.headerFrom,
    before: { messages: row.messagesBefore, aligned: row.alignedBefore },
    now: { messages: row.messagesNow, aligned: row.alignedNow },
  }))
}
