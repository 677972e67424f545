/**
 * Sealed columns when the secret changes: each room says how its own are found and saved, and all are gone through in the same way, a page
 * of rows at a time, in the order of their keys, so that it can stop anywhere and begin again.
 */
import type { Secrets } from '#base'
import type { Db } from './queryable.ts'
import type { Sql } from './sql.ts'

export interface SealedColumns {
  /** `table.column`: every one that this seals anew. */
  columns: readonly string[]
  /** Seals anew what another secret than the current one has sealed: some rows behind `after`. A row that changed meanwhile is left for another time. */
  reseal: (db: Db, secrets: Secrets, after: string) => Promise<Resealed>
}

export interface Resealed {
  rows: number
  /** To go on behind; undefined: there are no more. */
  last: string | undefined
}

const pageRows = 200

interface Way<Row> {
  columns: readonly string[]
  /** $1: what begins all that the current secret has sealed; $2: the key to go on behind; $3: how many at most. */
  find: Sql<Row & { key: string }>
  /** Only where the row still is as it was found. */
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

/** One column, whose rows are named when they are sealed by `named`. `save`: $1 the key, $2 the new value, $3 the old one. */
export const sealedColumn = (
  column: string,
  sealName: (named: string) => string,
  { find, save }: { find: Sql<{ key: string; named: string; sealed: Buffer }>; save: Sql<unknown> },
): SealedColumns =>
  sealedColumns<{ named: string; sealed: Buffer }>({
    columns: [column],
    find,
    save,
    sealAnew: ({ key, named, sealed }, secrets) => {
      const name = sealName(named)
      return [key, secrets.seal(name, secrets.open(name, sealed)), sealed]
    },
  })
