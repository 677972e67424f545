/**
 * Re-encrypts sealed columns after a secret rotation. Each module declares how its rows are found and saved. All columns are processed
 * alike, one page of rows at a time in key order, so that the process can stop and resume at any point.
 */
import type { Secrets } from '#base'
import type { Db } from './queryable.ts'
import type { Sql } from './sql-tag.ts'

export interface SealedColumns {
  /** `table.column` of every column handled here. */
  columns: readonly string[]
  /**
   * Re-encrypts some rows after key `after` that are sealed with an older secret. A row that changed meanwhile is left for a later pass.
   */
  reseal: (db: Db, secrets: Secrets, after: string) => Promise<Resealed>
}

export interface Resealed {
  rows: number
  /** The key to resume after; undefined: no rows are left. */
  last: string | undefined
}

const pageRows = 200

interface Way<Row> {
  columns: readonly string[]
  /** $1: prefix of values sealed with the current secret; $2: the key to resume after; $3: the limit. */
  find: Sql<Row & { key: string }>
  /** Updates only if the row is unchanged since it was read. */
  save: Sql<unknown>
  /** Parameters of `save`. */
  sealAnew: (row: Row & { key: string }, secrets: Secrets) => readonly unknown[]
}

export const sealedColumns = <Row>({ columns, find, save, sealAnew }: Way<Row>): SealedColumns => ({
  columns,
  async reseal(db, secrets, after) {
    const found = await db.rows(find, [secrets.mark, after, pageRows])
    for (const row of found) await db.run(save, sealAnew(row, secrets))
    return { rows: found.length, last: found.length < pageRows ? undefined : found.at(-1)?.key }
  },
})

export interface SealedValue {
  key: string
  /** The part of the seal's name that belongs to the row. */
  named: string
  sealed: Buffer
}

/** A single column whose sealed rows are bound to `named`. `save`: $1 the key, $2 the new value, $3 the old one. */
export const sealedColumn = (
  column: string,
  sealName: (named: string) => string,
  { find, save }: { find: Sql<SealedValue>; save: Sql<unknown> },
): SealedColumns =>
  sealedColumns<SealedValue>({
    columns: [column],
    find,
    save,
    sealAnew: ({ key, named, sealed }, secrets) => {
      const name = sealName(named)
      return [key, secrets.seal(name, secrets.open(name, sealed)), sealed]
    },
  })
