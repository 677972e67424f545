/**
 * Migrations: plain SQL files in order, one transaction each, run once under a lock even if several processes start together. Refuses a
 * database that is newer than this program, and a file changed after it ran. Programs of the version before go on meanwhile, so a migration
 * only adds (tools/migrations.ts checks it), and it never waits long for a lock: behind it, all other statements would wait.
 */
import { hash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { type Clock, type Log, pause, silentLog, systemClock } from '#base'
import { sqlState } from './errors.ts'
import { LockWaitReport } from './lock-wait-report.ts'
import type { Db, Queryable } from './queryable.ts'
import { sql } from './sql-tag.ts'

const minMajorVersion = 15
/** An advisory lock of Postrider; the number is arbitrary. */
const migrationLock = 7_305_001
/** Permission denied; no schema to create in. */
const missingRights = new Set(['42501', '3F000'])
/** After this time without a lock that a migration needs, it lets the others go on, and is tried again. */
const lockWithinMs = 2000
const tryAgainMs = 1000
const maxTries = 300
const lockNotAvailable = '55P03'
const ownFolder = new URL('./migrations/', import.meta.url)
const fileForm = /^(\d{4})-([a-z0-9-]+)\.sql$/
const tableMade = /^create (?:unlogged )?table (?:if not exists )?(\w+)/gm
/** The first of the migrations that were replaced by one initial schema before the first release. */
const preReleaseName = 'the-first-house'

const serverVersion = sql<{ name: string; number: number }>`
  select current_setting('server_version') as name, current_setting('server_version_num')::integer as number`

const waitForLock = sql`
  select pg_advisory_lock($1::bigint)`

const appliedMigrations = sql<MigrationMark>`
  select number, name, sha256
  from migrations
  order by number`

const recordMigration = sql`
  insert into migrations (number, name, sha256, applied_at)
  values ($1, $2, $3, $4)`

const makeTable = `create table if not exists migrations (
  number integer primary key,
  name text not null,
  sha256 text not null,
  applied_at timestamptz not null
)`

export interface MigrationMark {
  number: number
  name: string
  sha256: string
}

interface Migration extends MigrationMark {
  text: string
}

/** Returns the migrations that have run on a database. */
export const listApplied = (on: Queryable): Promise<MigrationMark[]> => on.rows(appliedMigrations)

/** Throws a message for the operator unless this version can create the schema of these migrations. */
export async function refuseUnknown(applied: readonly MigrationMark[], what: string): Promise<void> {
  refuseStrangers(applied, await readMigrations(ownFolder), what)
}

/**
 * Returns the names of the tables that these migrations make; undefined if one of them is unknown to this version, whose tables it therefore
 * does not know.
 */
export async function tablesMadeBy(applied: readonly MigrationMark[]): Promise<Set<string> | undefined> {
  const known = await readMigrations(ownFolder)
  if (applied.some(({ number, sha256 }) => known[number - 1]?.sha256 !== sha256)) return undefined
  return new Set(known.flatMap(({ text }) => [...text.matchAll(tableMade)].map(([, name]) => name as string)))
}

async function readMigrations(folder: URL): Promise<Migration[]> {
  const migrations: Migration[] = []
  for (const file of (await readdir(folder)).sort()) {
    const form = fileForm.exec(file)
    if (!form) continue
    const text = await readFile(new URL(file, folder), 'utf8')
    migrations.push({ number: Number(form[1]), name: form[2] as string, text, sha256: hash('sha256', text) })
  }
  migrations.forEach((migration, index) => {
    if (migration.number !== index + 1) throw new Error(`found migration ${migration.number}, expected ${index + 1}`)
  })
  return migrations
}

export interface MigrateOptions {
  folder?: URL
  /** The number of the last migration to run. Default: the latest. */
  last?: number
  log?: Log
}

/**
 * Migrates the schema and returns the names of the migrations that ran. Logs once if it waits for other sessions. Throws a message for the
 * operator if it must not or cannot.
 */
export async function migrate(
  db: Db,
  clock: Clock,
  { folder = ownFolder, last = Number.POSITIVE_INFINITY, log = silentLog }: MigrateOptions = {},
): Promise<string[]> {
  const version = await db.first(serverVersion)
  if (!version || version.number < minMajorVersion * 10_000) {
    throw new Error(`PostgreSQL ${minMajorVersion} or later is required: this server is ${version?.name}`)
  }
  const known = await readMigrations(folder)
  // A session lock, because each migration commits separately. The server releases it when the session ends.
  const session = await db.session()
  const report = new LockWaitReport(db, log)
  try {
    await report.during(session, () => session.run(waitForLock, [migrationLock]))
    await session.script(makeTable).catch(explainMissingRights)
    const applied = await session.rows(appliedMigrations)
    refuseStrangers(applied, known)
    const missing = known.slice(applied.length).filter(({ number }) => number <= last)
    for (const migration of missing) await apply(db, migration, clock, report)
    return missing.map(({ name }) => name)
  } finally {
    await session.close()
  }
}

/** The default search path begins with a schema of the role's name. */
function explainMissingRights(error: unknown): never {
  if (!missingRights.has(sqlState(error) ?? '')) throw error
  throw new Error(
    `the role of DATABASE_URL cannot create tables: ${(error as Error).message}. Create a schema for it (create schema authorization <role>), or make it the owner of the database`,
    { cause: error },
  )
}

async function apply(db: Db, { number, name, text, sha256 }: Migration, clock: Clock, report: LockWaitReport): Promise<void> {
  for (let times = 1; ; times++) {
    try {
      return await db.transaction(async (tx) => {
        await tx.script(`set local lock_timeout = ${lockWithinMs}`)
        await report.during(tx, () => tx.script(text))
        await tx.run(recordMigration, [number, name, sha256, new Date(clock.nowMs())])
      })
    } catch (cause) {
      if (sqlState(cause) !== lockNotAvailable || times === maxTries)
        throw new Error(`migration ${number} (${name}) failed and changed nothing: ${(cause as Error).message}`, { cause })
      await pause(systemClock, tryAgainMs)
    }
  }
}

function refuseStrangers(applied: readonly MigrationMark[], known: readonly Migration[], what = 'the database'): void {
  if (applied[0]?.name === preReleaseName && known[0]?.name !== preReleaseName) {
    const nextStep =
      what === 'the database'
        ? 'set POSTRIDER_DATA to an empty data directory, or DATABASE_URL to an empty database'
        : 'restore it with the version that made it'
    throw new Error(`${what} was made by a pre-release version, whose schema cannot be upgraded: ${nextStep}`)
  }
  applied.forEach((done, index) => {
    const migration = known[index]
    if (!migration) {
      throw new Error(`${what} has migration ${done.number} (${done.name}), unknown to this version. Use a newer version`)
    }
    if (migration.number !== done.number || migration.sha256 !== done.sha256) {
      throw new Error(`migration ${done.number} (${done.name}) was changed after it ran on ${what}. Restore the file`)
    }
  })
}
