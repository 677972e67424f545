/** Pages of a suppression list in the order of the addresses, so that a page stays valid while entries are added and removed. */
import { type Queryable, sql } from '#db'
import { type Suppression, suppressionColumns } from './manage-suppressions.ts'

const paged = sql.parameters({
  tenantId: 'text',
  beyond: 'text',
  kinds: 'text[]',
  after: 'timestamptz',
  before: 'timestamptz',
  limit: 'bigint',
})

const pageBeyond = sql<Suppression>`
  select ${suppressionColumns}
  from suppressions
  where tenant_id = ${paged.tenantId}
    and address > ${paged.beyond}
    and case when reason in ('complaint', 'unsubscribe') then 'complaint' else 'bounce' end = any(${paged.kinds})
    and created_at between ${paged.after} and ${paged.before}
  order by address
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

export const listSuppressionsByAddress = (on: Queryable, tenantId: string, page: AddressPage): Promise<Suppression[]> =>
  on.rows(pageBeyond, sql.values(paged, { tenantId, ...page }))
