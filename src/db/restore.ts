/**
 * Restores a backup into an empty database: the schema of the backup's time, every row, then the newer migrations. All rows are loaded in
 * one transaction, which rolls back if the file was truncated or changed. Tables in the file that the schema lacks are skipped: earlier
 * versions also backed up tables that no migration made.
 */
import { promisify } from 'node:util'
import { zstdDecompress } from 'node:zlib'
import type { Clock } from '#base'
import { type BackupHeader, type BackupProgress, unhurried } from './backup.ts'
import { quoted, type StoredSequence, type StoredTable } from './backup-catalog.ts'
import { type Frame, readFrames } from './backup-frames.ts'
import { migrate, refuseUnknown } from './migrate.ts'
import { ownSchema } from './own-schema.ts'
import type { Db, DbSession, Queryable } from './queryable.ts'
import { sql } from './sql-tag.ts'

export interface RestoreOptions {
  source: AsyncIterable<Uint8Array>
  clock: Clock
  /** Called with the header before any change; may throw to refuse the backup. */
  accept: (header: BackupHeader) => void | Promise<void>
  /** Whether a database with the backup's schema is empty. */
  isEmpty: (on: Queryable) => Promise<boolean>
  /** Called in the loading transaction, after the last row. */
  finish: (on: Queryable, header: BackupHeader) => Promise<void>
  progress?: ((now: BackupProgress) => void) | undefined
}

const decompress = promisify(zstdDecompress)
/** A frame of Postrider's holds one MiB of data and the rest of one message of the server. */
const maxOctets = 256 * 1024 * 1024
/**
 * Sequence gap, so that event numbers assigned between backup and loss are not reused; webhook receivers would take new events for known
 * ones.
 */
const logGap = 1_000_000_000

const currentNumber = sql<{ number: number }>`
  select pg_snapshot_xmin(pg_current_snapshot())::text::bigint as number`

const setSequence = sql`
  select setval(format('%I', $1::text)::regclass, $2::bigint)`

const relationsNamed = sql<{ name: string }>`
  select relname::text as name
  from pg_class
  where relnamespace = ${ownSchema} and relname = any($1::text[])`

export interface RestoredBackup {
  header: BackupHeader
  /** The number of rows of each table. */
  tables: Record<string, number>
  /** Names of tables and sequences that the schema lacks. */
  skipped: string[]
  migrated: string[]
}

export async function restoreBackup(db: Db, options: RestoreOptions): Promise<RestoredBackup> {
  const frames = readFrames(options.source)
  const header = read<BackupHeader>(await next(frames), 'h')
  await options.accept(header)
  await refuseUnknown(header.migrations, 'the backup')
  await migrate(db, options.clock, { last: header.migrations.length })
  const session = await db.session()
  try {
    // Before the rows, so that a restore that ends in between leaves none with a number ahead of the server's.
    await countBeyond(session, header.highestNumber)
    await session.script(`begin; ${unhurried}`)
    if (!(await options.isEmpty(session))) {
      throw new Error(
        'this installation is not empty. Restore into an empty data directory (POSTRIDER_DATA) or an empty database (DATABASE_URL)',
      )
    }
    await makePartitions(session, header)
    const { tables, skipped } = await loadTables(session, frames, options.progress)
    await options.finish(session, header)
    await session.script('commit')
    return { header, tables, skipped, migrated: await migrate(db, options.clock) }
  } finally {
    await session.close()
  }
}

const damaged = () => new Error('the backup is damaged: nothing restored')

async function next(frames: AsyncGenerator<Frame>): Promise<Frame> {
  const { value, done } = await frames.next()
  if (done) throw damaged()
  return value
}

function read<T>(frame: Frame, kind: Frame['kind']): T {
  if (frame.kind !== kind) throw damaged()
  return JSON.parse(frame.octets.toString()) as T
}

const presentAmong = async (session: DbSession, names: readonly string[]): Promise<Set<string>> =>
  new Set((await session.rows(relationsNamed, [names])).map(({ name }) => name))

async function makePartitions(session: DbSession, { partitions }: BackupHeader): Promise<void> {
  const here = await presentAmong(
    session,
    partitions.flatMap(({ table, name }) => [table, name]),
  )
  for (const { table, name, bounds, settings } of partitions) {
    if (here.has(name) || !here.has(table)) continue
    const storage = settings ? ` with (${settings})` : ''
    await session.script(`create table ${quoted(name)} partition of ${quoted(table)} ${bounds}${storage}`)
  }
}

type Progress = (octets: number) => void

/** Empties each table first, because migrations insert rows too. */
async function loadTables(
  session: DbSession,
  frames: AsyncGenerator<Frame>,
  progress: RestoreOptions['progress'],
): Promise<{ tables: Record<string, number>; skipped: string[] }> {
  const tables: Record<string, number> = {}
  const skipped: string[] = []
  let octets = 0
  let frame = await next(frames)
  for (; frame.kind === 't'; frame = await next(frames)) {
    const table = read<StoredTable>(frame, 't')
    const counting: Progress = (more) => {
      octets += more
      progress?.({ table: table.name, rows: 0, octets })
    }
    if ((await presentAmong(session, [table.name])).has(table.name)) tables[table.name] = await loadTable(session, table, frames, counting)
    else {
      skipped.push(table.name)
      await skipTable(frames)
    }
  }
  const { sequences } = read<{ sequences: StoredSequence[] }>(frame, 'a')
  const here = await presentAmong(
    session,
    sequences.map(({ name }) => name),
  )
  for (const { name, value, ofLog } of sequences) {
    const next = ofLog ? value + logGap : value
    if (!here.has(name)) skipped.push(name)
    else if (next > 0) await session.rows(setSequence, [name, next])
  }
  // Reads the digest, which follows everything else.
  if (!(await frames.next()).done) throw damaged()
  return { tables, skipped }
}

async function skipTable(frames: AsyncGenerator<Frame>): Promise<void> {
  let frame = await next(frames)
  while (frame.kind === 'd') frame = await next(frames)
  read(frame, 'e')
}

/** Returns the number of rows. */
async function loadTable(session: DbSession, table: StoredTable, frames: AsyncGenerator<Frame>, counting: Progress): Promise<number> {
  await session.script(`delete from ${quoted(table.name)}`)
  const into = session.copyIn(`copy ${quoted(table.name)} (${table.columns.map(quoted).join(', ')}) from stdin`)
  const failed = new Promise<never>((_, reject) => into.once('error', reject))
  failed.catch(() => undefined)
  const finished = new Promise<void>((resolve) => into.once('finish', resolve))
  let frame: Frame
  try {
    for (frame = await next(frames); frame.kind === 'd'; frame = await next(frames)) {
      const data = await decompress(frame.octets, { maxOutputLength: maxOctets })
      if (!into.write(data)) await Promise.race([new Promise((resolve) => into.once('drain', resolve)), failed])
      counting(data.length)
    }
  } catch (error) {
    into.destroy(error as Error)
    throw error
  }
  into.end()
  await Promise.race([finished, failed])
  const { rows } = read<{ rows: number }>(frame, 'e')
  const taken = (into as { rowCount?: number }).rowCount
  if (taken !== rows) throw new Error(`table ${table.name}: ${taken} rows instead of ${rows}`)
  return rows
}

/** A new server may have a lower transaction counter than the log's rows; new log entries must sort after all of them. */
async function countBeyond(session: DbSession, number: number): Promise<void> {
  const missing = number + 1 - ((await session.first(currentNumber))?.number ?? 0)
  if (missing <= 0) return
  await session.script(`do $$ begin for nth in 1..${Math.ceil(missing)} loop perform pg_current_xact_id(); commit; end loop; end $$`)
}
