/**
 * The position in the other program up to which a tenant's history has come. It is kept in the transaction that brings it, so that an
 * interrupted import goes on from there.
 */
import { type Queryable, sql, type Tx } from '#db'

export interface ImportPosition {
  /** Older messages were left out. */
  since: Date
  /** The number of the last message, in the other program. */
  position: number
}

const positionOf = sql<ImportPosition>`
  select since, position
  from import_positions
  where tenant_id = $1 and source = $2`

const setPosition = sql`
  insert into import_positions (tenant_id, source, since, position)
  values ($1, $2, $3, $4)
  on conflict (tenant_id, source) do update
  set since = excluded.since, position = excluded.position`

export const findPosition = (on: Queryable, tenantId: string, source: 'postal'): Promise<ImportPosition | undefined> =>
  on.first(positionOf, [tenantId, source])

export const movePosition = (tx: Tx, tenantId: string, source: 'postal', { since, position }: ImportPosition): Promise<number> =>
  tx.run(setPosition, [tenantId, source, since, position])
