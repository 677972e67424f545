/**
 * Daily partitions (UTC days), named `<table>_20261120`: created ahead of time for accepting and recording, and dropped by retention.
 * Neither blocks readers or writers of the table.
 */
import { emailIdPrefix } from '#base'
import { sqlState } from './errors.ts'
import { ownSchema } from './own-schema.ts'
import { withProcessLock } from './process-lock.ts'
import type { Db, Queryable } from './queryable.ts'
import { sql } from './sql-tag.ts'

export interface PartitionedTable {
  table: string
  /** The partition key: the time that email ids begin with, or a timestamp. */
  key: 'email-id' | 'time'
  /** Storage settings of each partition, such as `fillfactor = 50`. */
  settings?: string
}

const dayMs = 86_400_000
const makingLock = 7_305_002
/** Shared by backups: partitions are not dropped while a backup runs. */
export const droppingLock = 7_305_003

const indexingLock = 7_305_004

const waitForLock = sql`
  select pg_advisory_xact_lock($1::bigint)`

const presentAmong = sql<{ name: string }>`
  select relname::text as name
  from pg_class
  where relnamespace = ${ownSchema} and relname = any($1::text[])`

const partitionsOf = sql<{ name: string; attached: boolean; leaving: boolean }>`
  select c.relname::text as name, i.inhrelid is not null as attached, coalesce(i.inhdetachpending, false) as leaving
  from pg_class c
  left join pg_inherits i on i.inhrelid = c.oid
  where c.relnamespace = ${ownSchema} and c.relkind = 'r' and c.relname ~ ('^' || $1::text || '_[0-9]{8}$')
  order by c.relname`

const storedPages = sql<{ name: string; pages: number }>`
  select c.relname::text as name, coalesce(pg_relation_size(c.oid) / current_setting('block_size')::integer, 0)::integer as pages
  from pg_class c
  join pg_inherits i on i.inhrelid = c.oid
  where c.relnamespace = ${ownSchema} and c.relkind = 'r' and c.relname ~ ('^' || $1::text || '_[0-9]{8}$') and not i.inhdetachpending
  order by c.relname`

const indexState = sql<{ isValid: boolean }>`
  select indisvalid as "isValid"
  from pg_index
  where indexrelid = to_regclass($1)`

const dayOf = (timeMs: number) => new Date(timeMs).toISOString().slice(0, 10).replaceAll('-', '')
const boundOf = (key: PartitionedTable['key'], dayStartMs: number) =>
  key === 'email-id' ? `'${emailIdPrefix(dayStartMs)}'` : `'${new Date(dayStartMs).toISOString()}'`

function rejectOddName(table: string): void {
  if (!/^[a-z_]{1,50}$/.test(table)) throw new Error(`"${table}" is not a table name`)
}

/** Rows by their place: those of a day from `firstRow` on and before `endRow`, both values of `ctid`. */
export interface RowRange {
  from: Date
  before: Date
  firstRow: string
  endRow: string
}

/** Four megabytes: a statement that reads so much is short. */
const pagesOfRange = 512
const endOfTable = '(4294967295,0)'

/**
 * The whole table in ranges, oldest day first, so that statements that need every row read each once. An update may move its row to a range
 * that was read before: the caller must allow for that.
 */
export async function listRowRanges(on: Queryable, { table }: PartitionedTable): Promise<RowRange[]> {
  rejectOddName(table)
  return (await on.rows(storedPages, [table])).flatMap(({ name, pages }) => {
    const day = name.slice(-8)
    const fromMs = Date.UTC(Number(day.slice(0, 4)), Number(day.slice(4, 6)) - 1, Number(day.slice(6)))
    const ranges = Math.max(1, Math.ceil(pages / pagesOfRange))
    return Array.from({ length: ranges }, (_, nth) => ({
      from: new Date(fromMs),
      before: new Date(fromMs + dayMs),
      firstRow: `(${nth * pagesOfRange},0)`,
      endRow: nth === ranges - 1 ? endOfTable : `(${(nth + 1) * pagesOfRange},0)`,
    }))
  })
}

/** A row found no partition for its day, for example if no process ran long enough to create it ahead. */
export const isMissingPartition = (error: unknown): boolean => sqlState(error) === '23514'

/** Creates the missing partitions of `days` days, starting with the day of `fromMs`; safe to run concurrently. Returns their names. */
export async function ensurePartitions(db: Db, tables: readonly PartitionedTable[], fromMs: number, days: number): Promise<string[]> {
  const firstDayMs = Math.floor(fromMs / dayMs) * dayMs
  const wanted = tables.flatMap(({ table, key, settings }) => {
    rejectOddName(table)
    return Array.from({ length: days }, (_, day) => {
      const startMs = firstDayMs + day * dayMs
      const name = `${table}_${dayOf(startMs)}`
      // Created first and attached afterwards: "create table … partition of" would lock out the table's readers and writers.
      const text = `create table ${name} (like ${table} including defaults including storage including constraints)${settings === undefined ? '' : ` with (${settings})`};
        alter table ${table} attach partition ${name} for values from (${boundOf(key, startMs)}) to (${boundOf(key, startMs + dayMs)})`
      return { name, text }
    })
  })
  const names = wanted.map(({ name }) => name)
  const here = new Set((await db.rows(presentAmong, [names])).map(({ name }) => name))
  if (names.every((name) => here.has(name))) return []
  return db.transaction(async (tx) => {
    await tx.run(waitForLock, [makingLock])
    const present = new Set((await tx.rows(presentAmong, [names])).map(({ name }) => name))
    const missing = wanted.filter(({ name }) => !present.has(name))
    for (const { text } of missing) await tx.script(text)
    return missing.map(({ name }) => name)
  })
}

/** Runs a write, and repeats it once if a partition was missing, after creating the partitions for the given moments. */
export async function withPartitions<T>(
  db: Db,
  write: () => Promise<T>,
  days: readonly { tables: readonly PartitionedTable[]; timesMs: readonly number[] }[],
): Promise<T> {
  try {
    return await write()
  } catch (error) {
    if (!isMissingPartition(error)) throw error
    for (const { tables, timesMs } of days)
      for (const day of new Set(timesMs.map((timeMs) => Math.floor(timeMs / dayMs)))) await ensurePartitions(db, tables, day * dayMs, 1)
    return write()
  }
}

/** Drops the partitions that end at or before `beforeMs` and returns their names; returns no names while another process is dropping. */
export async function dropPartitions(db: Db, table: string, beforeMs: number): Promise<string[]> {
  rejectOddName(table)
  const dropped = await withProcessLock(db, droppingLock, async (session) => {
    const firstKept = `${table}_${dayOf(beforeMs)}`
    const old = (await session.rows(partitionsOf, [table])).filter(({ name }) => name < firstKept)
    for (const { name, attached, leaving } of old) {
      // Dropping an attached partition would lock out the table's readers and writers. An earlier attempt may have stopped between the
      // steps.
      if (leaving) await session.script(`alter table ${table} detach partition ${name} finalize`)
      else if (attached) await session.script(`alter table ${table} detach partition ${name} concurrently`)
      await session.script(`drop table ${name}`)
    }
    return old.map(({ name }) => name)
  })
  return dropped ?? []
}

/**
 * Gives each partition that ends at or before `beforeMs` an index of its own, `<partition>_<name>`, so that writers to the current
 * partition do not pay for it. Blocks neither readers nor writers. Returns the names of the newly indexed partitions; empty while another
 * process is indexing.
 */
export async function indexPartitions(
  db: Db,
  table: string,
  beforeMs: number,
  { name, definition }: { name: string; definition: string },
): Promise<string[]> {
  rejectOddName(table)
  const indexed = await withProcessLock(db, indexingLock, async (session) => {
    const made: string[] = []
    const firstLeftOut = `${table}_${dayOf(beforeMs)}`
    const ended = (await session.rows(partitionsOf, [table])).filter((one) => one.attached && !one.leaving && one.name < firstLeftOut)
    for (const partition of ended.reverse()) {
      const index = `${partition.name}_${name}`
      const found = await session.first(indexState, [index])
      if (found?.isValid) continue
      // Left by an attempt that did not complete.
      if (found) await session.script(`drop index concurrently ${index}`)
      await session.script(`create index concurrently ${index} on ${partition.name} ${definition}`)
      made.push(partition.name)
    }
    return made
  })
  return indexed ?? []
}
