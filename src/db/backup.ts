/**
 * Writes a backup while the service runs: all tables at one moment, with the facts needed to recreate them. Memory use does not grow with
 * the database, and writers are not blocked. Dropping old partitions waits until the backup ends.
 */
import { promisify } from 'node:util'
import { zstdCompress } from 'node:zlib'
import { copyText, findMarks, highestNumber, readCatalogue, readSequences, type StoredPartition } from './backup-catalog.ts'
import { type FrameWriter, openFrameWriter } from './backup-frames.ts'
import { listApplied, type MigrationMark, tablesMadeBy } from './migrate.ts'
import { droppingLock } from './partitions.ts'
import type { Db, DbSession } from './queryable.ts'
import { sql } from './sql-tag.ts'

/** The first frame of a backup. */
export interface BackupHeader {
  /** The program's version. */
  version: string
  madeAt: string
  migrations: MigrationMark[]
  partitions: StoredPartition[]
  /** A new server must have counted transactions beyond this number before it writes to the log. */
  highestNumber: number
  /** Identifies the secret that opens the sealed values. */
  secretFingerprint: string
  secret?: string
}

export interface BackupProgress {
  table: string
  rows: number
  octets: number
}

export interface BackupOptions {
  version: string
  nowMs: number
  secretFingerprint: string
  /** Only if the file shall contain the secret. */
  secret?: string | undefined
  write: (octets: Buffer) => Promise<void>
  progress?: ((now: BackupProgress) => void) | undefined
}

const waitForDropping = sql`
  select pg_advisory_lock_shared($1::bigint)`

const compress = promisify(zstdCompress)
/** Disables the timeouts that would end the transaction when the file is read or written slowly. */
export const unhurried = 'set local idle_in_transaction_session_timeout = 0; set local statement_timeout = 0'
/** Bytes of a table's data before compression. */
const frameOctets = 1024 * 1024

export interface WrittenBackup {
  /** The number of rows of each table. */
  tables: Record<string, number>
  /** Names of tables and sequences that no migration made. */
  leftOut: string[]
  /** The size of the file in bytes. */
  octets: number
}

export async function writeBackup(db: Db, options: BackupOptions): Promise<WrittenBackup> {
  const session = await db.session()
  try {
    await session.rows(waitForDropping, [droppingLock])
    await session.script(`begin isolation level repeatable read read only; ${unhurried}`)
    const migrations = await listApplied(session)
    const catalogue = await readCatalogue(session, await tablesMadeBy(migrations))
    const marks = await findMarks(session, catalogue)
    const frames = openFrameWriter(options.write)
    const { version, nowMs, secretFingerprint, secret } = options
    const header: BackupHeader = {
      version,
      madeAt: new Date(nowMs).toISOString(),
      migrations,
      partitions: catalogue.partitions,
      highestNumber: highestNumber(marks.length),
      secretFingerprint,
      ...(secret === undefined ? {} : { secret }),
    }
    await frames.begin()
    await frames.json('h', header)
    const tables: Record<string, number> = {}
    for (const table of catalogue.tables) {
      await frames.json('t', table)
      const progress = (rows: number) => options.progress?.({ table: table.name, rows, octets: frames.octetsWritten })
      const rows = await writeData(session, copyText(table, catalogue, marks), frames, progress)
      await frames.json('e', { rows })
      tables[table.name] = rows
    }
    // Read last, so that the sequences are at or beyond every number in the tables above.
    const { sequences, leftOut } = await readSequences(session, catalogue)
    await frames.json('a', { sequences })
    await frames.end()
    await session.script('commit')
    return { tables, leftOut: [...catalogue.leftOut, ...leftOut], octets: frames.octetsWritten }
  } finally {
    await session.close()
  }
}

async function writeData(session: DbSession, text: string, frames: FrameWriter, progress: (rows: number) => void): Promise<number> {
  const newline = 0x0a
  let rows = 0
  let pieces: Buffer[] = []
  let octets = 0
  const flush = async () => {
    if (octets === 0) return
    await frames.frame('d', await compress(Buffer.concat(pieces)))
    pieces = []
    octets = 0
    progress(rows)
  }
  for await (const piece of session.copyOut(text) as AsyncIterable<Buffer>) {
    // In COPY's text format a line break inside a value is escaped.
    for (let at = piece.indexOf(newline); at >= 0; at = piece.indexOf(newline, at + 1)) rows++
    pieces.push(piece)
    octets += piece.length
    if (octets >= frameOctets) await flush()
  }
  await flush()
  progress(rows)
  return rows
}
