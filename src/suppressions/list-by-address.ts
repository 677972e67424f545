/** Pages of a suppression list in the order of the addresses, so that a page stays valid while entries are added and removed. */
import { type Queryable, sql } from '#db'
import { isShown, type Suppression, suppressionColumns } from './manage-suppressions.ts'

const paged = sql.parameters({
  lists: 'text[]',
  beyond: 'text',
  kinds: 'text[]',
  after: 'timestamptz',
  before: 'timestamptz',
  limit: 'bigint',
})

/** Each list is read in the order of its primary key. */
const pageBeyond = sql<Suppression>`
  select entry.*
  from unnest(${paged.lists}) as list (id),
    lateral (
      select ${suppressionColumns}
      from suppressions
      where tenant_id = list.id
        and address > ${paged.beyond}
        and case when reason in ('complaint', 'unsubscribe') then 'complaint' else 'bounce' end = any(${paged.kinds})
        and created_at between ${paged.after} and ${paged.before}
        and ${isShown(paged.lists)}
      order by address
      limit ${paged.limit}
    ) as entry
  order by entry.address
  limit ${paged.limit}`

export interface AddressPage {
  /** The last address of the page before; '' for the first page. */
  beyond: string
  /** Entries that the recipient asked for, by a complaint or an unsubscription; all others; or both. */
  kinds: readonly ('complaint' | 'bounce')[]
  /** Times of the entries, both inclusive. */
  after: Date
  before: Date
  limit: number
}

/** `lists`: ids of a tenant, and '' for the organisation's list, whose entry for an address that both have is left out. */
export const listSuppressionsByAddress = (on: Queryable, lists: readonly string[], page: AddressPage): Promise<Suppression[]> =>
  on.rows(pageBeyond, sql.values(paged, { lists, ...page }))
