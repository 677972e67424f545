/** Parts of suppression lists by the origin of their entries, as the lists of other vendors are divided. */
import { type Db, type Queryable, type Sql, sql } from '#db'
import { parseAddress } from '#mail'
import { isShown, recordListChanges, type Suppression, suppressionColumns } from './manage-suppressions.ts'

/** The cause of an entry in the words of other vendors: an unsubscription and a request are both `manual`. */
export type SuppressionOrigin = 'bounce' | 'complaint' | 'manual'

export const originOf = ({ source, reason }: Pick<Suppression, 'source' | 'reason'>): SuppressionOrigin =>
  source === 'manual' || reason === 'unsubscribe' ? 'manual' : reason === 'complaint' ? 'complaint' : 'bounce'

const originOfRow = sql.part`case
  when source = 'manual' or reason = 'unsubscribe' then 'manual' when reason = 'complaint' then 'complaint' else 'bounce' end`

const besides = (step: Sql<unknown>, direction: Sql<unknown>) => sql<Suppression>`
  select entry."tenantId", entry.address, entry.reason, entry.source, entry."createdAt", entry."emailId"
  from unnest($1::text[]) as list (list_id),
    lateral (
      select ${suppressionColumns}, id
      from suppressions
      where tenant_id = list_id
        and ($2::text is null or $2 = ${originOfRow})
        and ${step}
        and ${isShown(sql.part`$1`)}
      order by id ${direction}
      limit $4
    ) as entry
  order by entry.id ${direction}
  limit $4`
const [newestFirst, oldestFirst] = [sql.part`desc`, sql.part`asc`]
const idOfEntry = sql.part`(
  select cursor.id
  from suppressions as cursor
  where cursor.tenant_id = any($1) and cursor.address = $3
  order by cursor.tenant_id desc
  limit 1)`
const newestOnes = besides(sql.part`$3::text is null`, newestFirst)
const olderOnes = besides(sql.part`id < ${idOfEntry}`, newestFirst)
const newerOnes = besides(sql.part`id > ${idOfEntry}`, oldestFirst)

/**
 * Up to `most` entries of these lists, newest first: those older than the entry of the address `after`, or the nearest ones that are newer than
 * that of `before`. Without such an entry the list is empty. An entry of the organisation's list ('') is left out if another list has its address.
 */
export async function listSuppressionsBeside(
  on: Queryable,
  lists: readonly string[],
  { origin, after, before, most }: { origin?: SuppressionOrigin | undefined; after?: string; before?: string; most: number },
): Promise<Suppression[]> {
  if (before !== undefined) return (await on.rows(newerOnes, [lists, origin ?? null, before.toLowerCase(), most])).reverse()
  return after === undefined
    ? on.rows(newestOnes, [lists, origin ?? null, null, most])
    : on.rows(olderOnes, [lists, origin ?? null, after.toLowerCase(), most])
}

const paged = sql.parameters({
  lists: 'text[]',
  origin: 'text',
  after: 'timestamptz',
  before: 'timestamptz',
  limit: 'bigint',
  offset: 'bigint',
})

const pageOfOrigin = sql<Suppression>`
  select entry."tenantId", entry.address, entry.reason, entry.source, entry."createdAt", entry."emailId"
  from unnest(${paged.lists}) as list (list_id),
    lateral (
      select ${suppressionColumns}, id
      from suppressions
      where tenant_id = list_id
        and ${originOfRow} = ${paged.origin}
        and created_at between ${paged.after} and ${paged.before}
        and ${isShown(paged.lists)}
      order by id desc
      limit ${paged.limit} + ${paged.offset}
    ) as entry
  order by entry.id desc
  limit ${paged.limit} offset ${paged.offset}`

export interface OriginPage {
  origin: SuppressionOrigin
  limit: number
  offset: number
  /** Times of the entries, both inclusive. */
  after: Date
  before: Date
}

/** A page of the entries of one origin in these lists, newest first, as `listSuppressionsBeside` shows them. */
export const listSuppressionsOfOrigin = (on: Queryable, lists: readonly string[], page: OriginPage): Promise<Suppression[]> =>
  on.rows(pageOfOrigin, sql.values(paged, { lists, ...page }))

const next = sql.parameters({ tenantId: 'text', origin: 'text', after: 'text', most: 'bigint' })
const chosen = sql.parameters({ tenantId: 'text', origin: 'text', addresses: 'text[]' })

/** The addresses in order after one of them. */
const nextOnes = sql.part`
  select tenant_id, address
  from suppressions
  where tenant_id = ${next.tenantId} and address > ${next.after} and ${originOfRow} = ${next.origin}
  order by address
  limit ${next.most}
  for update`

/** Each address is looked up alone: compared with the whole list, a thousand would take seconds. */
const theseOnes = sql.part`
  select entry.tenant_id, entry.address
  from unnest(${chosen.addresses}) as wanted (address),
    lateral (
      select tenant_id, address
      from suppressions
      where tenant_id = ${chosen.tenantId} and suppressions.address = wanted.address and ${originOfRow} = ${chosen.origin}
      limit 1
      for update
    ) as entry`

const deleteChosen = (rows: Sql<unknown>) => sql<Suppression & { last: string }>`
  with removed (list_id, listed) as materialized (${rows})
  delete from suppressions
  using removed
  where tenant_id = list_id and address = listed
  returning ${suppressionColumns}, (select max(listed) from removed) as last`
const deleteNext = deleteChosen(nextOnes)
const deleteThese = deleteChosen(theseOnes)

/** A part of a list: its entries of one origin. */
export interface ChosenEntries {
  origin: SuppressionOrigin
  /** Only these, at most a thousand; undefined: any. Addresses that are not on the list or have another origin are passed over. */
  addresses: readonly string[] | undefined
}

/**
 * Removes entries of a list, and without addresses up to `most` of those after the address `after` ('': from the first on). Returns how many
 * it removed, and the last one in order; undefined: none are left.
 */
export async function removeSuppressionsOfOrigin(
  db: Db,
  tenantId: string,
  { origin, addresses, after, most }: ChosenEntries & { after: string; most: number },
  nowMs: number,
): Promise<{ removed: number; last: string | undefined }> {
  // In order, as the rows are locked.
  const lower = [...new Set(addresses?.map((one) => parseAddress(one)?.text.toLowerCase() ?? ''))].sort()
  return db.transaction(async (tx) => {
    const removed = addresses
      ? await tx.rows(deleteThese, sql.values(chosen, { tenantId, origin, addresses: lower }))
      : await tx.rows(deleteNext, sql.values(next, { tenantId, origin, after, most }))
    await recordListChanges(tx, 'SuppressionRemoved', removed, nowMs)
    return { removed: removed.length, last: removed[0]?.last }
  })
}

const byAddress = sql.parameters({ lists: 'text[]', origin: 'text', from: 'text', limit: 'bigint' })
const inOrder = (step: Sql<unknown>, direction: Sql<unknown>) => sql<Suppression>`
  select entry.*
  from unnest(${byAddress.lists}) as list (list_id),
    lateral (
      select ${suppressionColumns}
      from suppressions
      where tenant_id = list_id
        and ${originOfRow} = ${byAddress.origin}
        and ${step}
        and ${isShown(byAddress.lists)}
      order by address ${direction}
      limit ${byAddress.limit}
    ) as entry
  order by entry.address ${direction}
  limit ${byAddress.limit}`
const following = inOrder(sql.part`address > ${byAddress.from}`, sql.part`asc`)
const preceding = inOrder(sql.part`(${byAddress.from} = '' or address < ${byAddress.from})`, sql.part`desc`)

/**
 * Up to `most` entries of one origin in the order of their addresses, as `listSuppressionsBeside` shows them: those after the address `from`,
 * or the nearest ones before it. An empty `from` is the beginning, or the end. The address need not be on the lists, so that a caller may
 * remove the entries of each page.
 */
export async function listOriginByAddress(
  on: Queryable,
  lists: readonly string[],
  { origin, from, isBackward, most }: { origin: SuppressionOrigin; from: string; isBackward: boolean; most: number },
): Promise<Suppression[]> {
  const values = sql.values(byAddress, { lists, origin, from: from.toLowerCase(), limit: most })
  return isBackward ? (await on.rows(preceding, values)).reverse() : on.rows(following, values)
}
