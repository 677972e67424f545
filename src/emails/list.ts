/** Lists of emails, newest first, and how many match. Filters by address or tag read an index; all others are found by counts. */
import { emailIdPrefix, emailIdTimeMs } from '#base'
import { type Db, inSnapshot, type Queryable, type Sql, sql, type Tx } from '#db'
import { dayMs } from './counts.ts'
import { openWalk, type Walk } from './paging.ts'
import { type Email, emailColumns } from './record.ts'
import type { EmailStatus } from './status.ts'

/** Absent members match everything; times are exclusive. `tenantId` null means all tenants. */
export interface EmailFilter {
  tenantId: string | null
  status?: EmailStatus | undefined
  recipient?: string | undefined
  sender?: string | undefined
  tag?: string | undefined
  after?: Date | undefined
  before?: Date | undefined
}

const oldestEmail = sql<{ id: string | null }>`
  select min(id) as id
  from emails`

const ofTenant = sql.part`tenant_id = $1 and id >= $2 and id < $3`
const ofAll = sql.part`$1 = '' and id >= $2 and id < $3`
const inStatus = sql.part`($4::text is null or status = $4)`

const pageOf = (where: Sql<unknown>) => sql<Email>`
  select ${emailColumns}
  from emails
  where ${where} and ${inStatus}
  order by id desc
  limit $5 offset $6`

const numberOf = (where: Sql<unknown>) => sql<{ total: number }>`
  select count(*) as total
  from emails
  where ${where} and ${inStatus}`

const plain = { tenant: { page: pageOf(ofTenant), count: numberOf(ofTenant) }, all: { page: pageOf(ofAll), count: numberOf(ofAll) } }

/** By one column's index, or by a tenant's; the other filters are looked at row by row. */
const filtered = (condition: Sql<unknown>) => {
  const where = sql.part`
    where ${condition} and id >= $4 and id < $5 and ($6::text is null or tenant_id = $6) and ($7::text is null or status = $7)
      and ($1::text is null or lower(recipient) = $1) and ($2::text is null or sender = $2) and ($3::text is null or tag = $3)`
  return {
    page: sql<Email>`
      select ${emailColumns}
      from emails
      ${where}
      order by id desc
      limit $8 offset $9`,
    count: sql<{ total: number }>`
      select count(*) as total
      from emails
      ${where}`,
  }
}
const filteredOfTenant = filtered(sql.part`tenant_id = $6`)

/**
 * What the column alone finds asks for nothing that is not in its index: how many, up to a limit, and a page, whose rows are read only
 * when their place is known.
 */
const indexed = (column: Sql<unknown>, parameter: Sql<unknown>) => ({
  ...filtered(sql.part`${column} = ${parameter}`),
  found: sql<{ total: number }>`
    select count(*) as total
    from (
      select
      from emails
      where ${column} = $1 and id >= $2 and id < $3
      limit $4
    ) as matching`,
  foundPage: sql<Email>`
    select ${emailColumns}
    from emails
    where id = any(array(
      select id
      from emails
      where ${column} = $1 and id >= $2 and id < $3
      order by id desc
      limit $4 offset $5
    ))
    order by id desc`,
})
const byRecipient = indexed(sql.part`lower(recipient)`, sql.part`$1`)
const bySender = indexed(sql.part`sender`, sql.part`$2`)
const byTag = indexed(sql.part`tag`, sql.part`$3`)

/** So few emails of a tenant are looked through without asking how many a filter finds in all tenants. */
const fewOfTenant = 1000

/** When the oldest email that is kept was accepted. */
export const findOldestEmailMs = async (on: Queryable): Promise<number | undefined> =>
  emailIdTimeMs((await on.first(oldestEmail))?.id ?? '')

/** A page of the emails that match, newest first, and how many match in all. */
export function listEmails(
  db: Db,
  filter: EmailFilter,
  page: { number: number; size: number },
  nowMs: number,
): Promise<{ emails: Email[]; total: number }> {
  return inSnapshot(db, async (tx) => {
    const oldestMs = await findOldestEmailMs(tx)
    if (oldestMs === undefined) return { emails: [], total: 0 }
    const fromMs = Math.max(Math.floor(oldestMs / dayMs) * dayMs, filter.after ? Math.floor(filter.after.getTime()) + 1 : 0)
    // Ids of processes whose clocks are ahead are listed too.
    const toMs = filter.before ? Math.min(Math.ceil(filter.before.getTime()), nowMs + dayMs) : nowMs + dayMs
    if (toMs <= fromMs) return { emails: [], total: 0 }
    const offset = (page.number - 1) * page.size
    if (filter.recipient === undefined && filter.sender === undefined && filter.tag === undefined)
      return listByCounts(tx, filter, { fromMs, toMs }, offset, page.size)
    return listFiltered(tx, filter, { fromMs, toMs }, offset, page.size)
  })
}

/** What is read is the smaller of two: what the filter finds in all tenants, and what the tenant has. */
async function listFiltered(
  tx: Tx,
  filter: EmailFilter,
  { fromMs, toMs }: { fromMs: number; toMs: number },
  offset: number,
  size: number,
): Promise<{ emails: Email[]; total: number }> {
  const { tenantId, status } = filter
  const [recipient, sender, tag] = [filter.recipient?.toLowerCase() ?? null, filter.sender?.toLowerCase() ?? null, filter.tag ?? null]
  const [column, value] = recipient !== null ? [byRecipient, recipient] : tag !== null ? [byTag, tag] : [bySender, sender]
  const range = [emailIdPrefix(fromMs), emailIdPrefix(toMs)]
  const found = async (most: number) => (await tx.first(column.found, [value, ...range, most]))?.total ?? 0
  let chosen: { page: Sql<Email>; count: Sql<{ total: number }> } = column
  if (tenantId !== null) {
    const owned = (await walkOf(tx, { tenantId }, { fromMs, toMs })).total
    if (owned === 0) return { emails: [], total: 0 }
    if (owned <= fewOfTenant || (await found(owned)) >= owned) chosen = filteredOfTenant
  }
  if (tenantId === null && status === undefined && [recipient, sender, tag].filter((one) => one !== null).length === 1) {
    const total = await found(Number.MAX_SAFE_INTEGER)
    return { emails: offset < total ? await tx.rows(column.foundPage, [value, ...range, size, offset]) : [], total }
  }
  const parameters = [recipient, sender, tag, ...range, tenantId, status ?? null]
  const total = (await tx.first(chosen.count, parameters))?.total ?? 0
  return { emails: offset < total ? await tx.rows(chosen.page, [...parameters, size, offset]) : [], total }
}

function walkOf(tx: Tx, { tenantId, status }: EmailFilter, range: { fromMs: number; toMs: number }): Promise<Walk> {
  const { count } = tenantId === null ? plain.all : plain.tenant
  const scope = tenantId ?? ''
  return openWalk(tx, { tenantId: scope, status, ...range }, async (fromMs, toMs) => {
    return (await tx.first(count, [scope, emailIdPrefix(fromMs), emailIdPrefix(toMs), status ?? null]))?.total ?? 0
  })
}

async function listByCounts(
  tx: Tx,
  filter: EmailFilter,
  range: { fromMs: number; toMs: number },
  offset: number,
  size: number,
): Promise<{ emails: Email[]; total: number }> {
  const { tenantId, status } = filter
  const { page } = tenantId === null ? plain.all : plain.tenant
  const scope = tenantId ?? ''
  const read = (fromMs: number, toMs: number, most: number, skip: number) =>
    tx.rows(page, [scope, emailIdPrefix(fromMs), emailIdPrefix(toMs), status ?? null, most, skip])
  const walk = await walkOf(tx, filter, range)
  const emails: Email[] = []
  if (offset >= walk.total) return { emails, total: walk.total }
  for await (const { segment, skip } of walk.from(offset)) {
    // In no particular state, what follows is simply the next; of one state there may be far between.
    const fromMs = status === undefined ? range.fromMs : segment.fromMs
    emails.push(...(await read(fromMs, segment.toMs, size - emails.length, skip)))
    if (emails.length >= size || status === undefined) break
  }
  return { emails, total: walk.total }
}
