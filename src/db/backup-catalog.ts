/**
 * Reads the tables and sequences to back up from the database's own catalogue, so that a new table is included automatically. Those that no
 * migration made are left out, because a restored database would lack them. Transaction numbers, which are meaningless on another server,
 * are rewritten so that their order survives.
 */
import { ownSchema } from './own-schema.ts'
import type { DbSession, Queryable } from './queryable.ts'
import { sql } from './sql-tag.ts'

export interface StoredTable {
  name: string
  columns: string[]
}

export interface StoredPartition {
  table: string
  name: string
  bounds: string
  /** Storage settings. */
  settings: string | null
}

export interface StoredSequence {
  name: string
  value: number
  /** Numbers the event log, whose external readers store their position by it. */
  ofLog: boolean
}

interface ColumnFacts {
  table: string
  column: string
  type: string
  /** Filled with the writing transaction's number: the table is a log that is read in commit order. */
  stamped: boolean
}

const allColumns = sql<ColumnFacts>`
  select c.relname::text as table, a.attname::text as column, a.atttypid::regtype::text as type,
    coalesce(pg_get_expr(d.adbin, d.adrelid) = 'pg_current_xact_id()', false) as stamped
  from pg_class c
  join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and a.attgenerated = ''
  left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum
  where c.relnamespace = ${ownSchema} and c.relkind in ('r', 'p') and not c.relispartition and c.relname <> 'migrations'
    and not exists (select from pg_inherits i where i.inhrelid = c.oid)
    and (c.relkind = 'p' or c.relname !~ '_[0-9]{8}$')
  order by c.relname, a.attnum`

const references = sql<{ table: string; needs: string }>`
  select conrelid::regclass::text as table, confrelid::regclass::text as needs
  from pg_constraint
  where contype = 'f' and connamespace = ${ownSchema} and conrelid <> confrelid and conparentid = 0`

const partitions = sql<StoredPartition>`
  select parent.relname::text as table, c.relname::text as name, pg_get_expr(c.relpartbound, c.oid) as bounds,
    array_to_string(c.reloptions, ', ') as settings
  from pg_class c
  join pg_inherits i on i.inhrelid = c.oid
  join pg_class parent on parent.oid = i.inhparent
  where c.relnamespace = ${ownSchema} and c.relkind = 'r' and c.relispartition and not i.inhdetachpending
  order by c.relname`

const sequences = sql<{ name: string; value: number; table: string | null }>`
  select s.sequencename::text as name, coalesce(s.last_value, 0) as value, owner.relname::text as table
  from pg_sequences s
  left join pg_depend d on d.objid = format('%I.%I', s.schemaname, s.sequencename)::regclass and d.deptype in ('i', 'a')
    and d.classid = 'pg_class'::regclass and d.refclassid = 'pg_class'::regclass
  left join pg_class owner on owner.oid = d.refobjid
  where to_regnamespace(quote_ident(s.schemaname)) = ${ownSchema}
  order by s.sequencename`

export interface Catalogue {
  /** Referenced tables first. */
  tables: StoredTable[]
  columns: readonly ColumnFacts[]
  partitions: StoredPartition[]
  /** Names of tables that no migration made. */
  leftOut: string[]
}

/** `made`: names of the tables that migrations make; undefined includes all tables. */
export async function readCatalogue(on: Queryable, made?: ReadonlySet<string>): Promise<Catalogue> {
  const all = await on.rows(allColumns)
  const isOwn = (table: string) => made?.has(table) ?? true
  const columns = all.filter(({ table }) => isOwn(table))
  const byTable = Map.groupBy(columns, ({ table }) => table)
  const needs = (await on.rows(references)).filter((one) => byTable.has(one.needs))
  const tables: StoredTable[] = []
  const done = new Set<string>()
  // At most one round per table: each round takes at least one table, unless the references are circular.
  for (let round = 0; round < byTable.size && done.size < byTable.size; round++) {
    for (const [name, own] of byTable) {
      if (done.has(name) || needs.some((one) => one.table === name && !done.has(one.needs))) continue
      done.add(name)
      tables.push({ name, columns: own.map(({ column }) => column) })
    }
  }
  if (done.size < byTable.size) throw new Error('tables reference each other in a cycle: cannot order them')
  return {
    tables,
    columns,
    partitions: (await on.rows(partitions)).filter(({ table }) => byTable.has(table)),
    leftOut: [...new Set(all.map(({ table }) => table))].filter((table) => !isOwn(table)),
  }
}

/** Those of the catalogue's tables. The event log's sequence is marked: see `StoredSequence.ofLog`. */
export async function readSequences(
  on: Queryable,
  { columns }: Catalogue,
): Promise<{ sequences: StoredSequence[] /** Names of those without a table. */; leftOut: string[] }> {
  const own = new Set(columns.map(({ table }) => table))
  const logs = new Set(columns.filter(({ stamped }) => stamped).map(({ table }) => table))
  const all = await on.rows(sequences)
  return {
    sequences: all.flatMap(({ name, value, table }) => (table !== null && own.has(table) ? [{ name, value, ofLog: logs.has(table) }] : [])),
    leftOut: all.filter(({ table }) => table === null).map(({ name }) => name),
  }
}

export const quoted = (name: string) => `"${name.replaceAll('"', '""')}"`

/** The lines of a `copy … to stdout`. */
export async function linesOf(session: DbSession, text: string): Promise<string[]> {
  const pieces: Buffer[] = []
  for await (const piece of session.copyOut(text)) pieces.push(piece as Buffer)
  return Buffer.concat(pieces)
    .toString()
    .split('\n')
    .filter((line) => line !== '')
}

/** The transaction numbers used by positions in the log, in order. Numbers between two of them need not be distinguished. */
export async function findMarks(session: DbSession, { columns }: Catalogue): Promise<string[]> {
  const parts = columns.flatMap(({ table, column, type, stamped }) => {
    const [from, name] = [quoted(table), quoted(column)]
    if (type === 'xid8' && !stamped) return [`select ${name} as mark from ${from}`]
    if (type !== 'pg_snapshot') return []
    return [
      `select pg_snapshot_xmin(${name}) from ${from}`,
      `select pg_snapshot_xmax(${name}) from ${from}`,
      `select pg_snapshot_xip(${name}) from ${from}`,
    ]
  })
  if (parts.length === 0) return []
  return linesOf(
    session,
    `copy (select distinct mark::text::bigint as mark from (${parts.join(' union all ')}) as marks where mark is not null order by mark) to stdout`,
  )
}

/** The highest number that `copyText` writes for a transaction, given the number of marks. */
export const highestNumber = (marks: number) => 2 * marks + 1

/**
 * The statement that reads a table for a backup. A transaction number becomes twice its mark's index, or the odd number between two marks.
 * Every comparison with a position keeps its result, and the numbers are small enough for a new server, which counts from the start.
 */
export function copyText({ name, columns }: StoredTable, { columns: facts }: Catalogue, marks: readonly string[]): string {
  const numbered = (value: string) => {
    const number = `(${value})::text::bigint`
    const place = `width_bucket(${number}, marks.numbers)`
    return `(case when marks.numbers[${place}] = ${number} then 2 * ${place} else 2 * ${place} + 1 end)`
  }
  const written = columns.map((column) => {
    const value = `own.${quoted(column)}`
    const type = facts.find((one) => one.table === name && one.column === column)?.type
    if (type === 'xid8') return numbered(value)
    if (type !== 'pg_snapshot') return value
    const running = `(select string_agg(${numbered('x')}::text, ',' order by x) from pg_snapshot_xip(${value}) as x)`
    return `${numbered(`pg_snapshot_xmin(${value})`)} || ':' || ${numbered(`pg_snapshot_xmax(${value})`)} || ':' || coalesce(${running}, '')`
  })
  const withMarks = written.some((one) => one.includes('marks.numbers'))
  const marksTable = withMarks ? `, (select '{${marks.join(',')}}'::bigint[] as numbers offset 0) as marks` : ''
  return `copy (select ${written.join(', ')} from ${quoted(name)} as own${marksTable}) to stdout`
}
