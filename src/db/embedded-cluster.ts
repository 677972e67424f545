/**
 * Files of the embedded server in the data directory: its cluster directory, created once, and the password for every connection. The
 * cluster is complete or absent, and one of another major version is never opened.
 */
import { execFile } from 'node:child_process'
import { chmod, chown, mkdir, mkdtemp, open, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { machineMemory, openIds, systemRandom } from '#base'
import { type Account, runAs } from './embedded-account.ts'
import type { Binaries } from './embedded-binaries.ts'
import { dataArgument } from './embedded-process.ts'

const run = promisify(execFile)
const initWithinMs = 120_000
/** The cluster's superuser. The service connects as `databaseName`, which may not read the server's files. */
export const superuser = 'postgres'
/** Name of the database and of the role that owns it. */
export const databaseName = 'postrider'

export const passwordFile = (folder: string) => join(folder, 'postgres-password')

/** Undefined if no password was created yet. */
export async function readPassword(folder: string): Promise<string | undefined> {
  const text = (await readFile(passwordFile(folder), 'utf8').catch(() => '')).trim()
  if (text === '') return undefined
  // The password is inserted into URLs and SQL text.
  if (!/^[A-Za-z0-9]{16,128}$/.test(text))
    throw new Error(`${passwordFile(folder)} does not contain a password that Postrider made. Restore that file`)
  return text
}

export async function makePassword(folder: string): Promise<string> {
  const password = openIds(systemRandom).token(32)
  await writeFile(passwordFile(folder), `${password}\n`, { mode: 0o600, flush: true })
  return password
}

/** Undefined if there is no cluster; throws if it has another major version. */
export async function findCluster(dataFolder: string, majorVersion: number): Promise<number | undefined> {
  const version = Number.parseInt(await readFile(join(dataFolder, 'PG_VERSION'), 'utf8').catch(() => ''), 10)
  if (Number.isNaN(version)) return undefined
  if (version !== majorVersion) {
    throw new Error(
      `the database in ${dataFolder} is from PostgreSQL ${version}; this Postrider has PostgreSQL ${majorVersion}, which cannot open it. ` +
        `Use the Postrider that made it, convert the directory with pg_upgrade, or set POSTRIDER_DATA to another directory to start empty`,
    )
  }
  return version
}

/** Runs initdb in a temporary folder, which is renamed when complete; removes the leftovers of a killed initdb. */
export async function makeCluster(
  dataFolder: string,
  password: string,
  binaries: Binaries,
  account: Account,
  scratchFolder: string,
): Promise<void> {
  const fresh = `${dataFolder}.new`
  await rm(fresh, { recursive: true, force: true })
  await mkdir(fresh, { mode: 0o700 })
  // The account may be unable to read the original password file.
  const folder = await mkdtemp(join(scratchFolder, 'init-'))
  const file = join(folder, 'password')
  try {
    await writeFile(file, password, { mode: 0o600 })
    await chmod(folder, 0o700)
    if (account.other) for (const path of [fresh, folder, file]) await chown(path, account.other.uid, account.other.gid)
    const options = [
      `--username=${superuser}`,
      `--pwfile=${file}`,
      '--auth-local=scram-sha-256',
      '--auth-host=scram-sha-256',
      '--encoding=UTF8',
      // PostgreSQL's own collation: a system collation changes with system updates and silently corrupts indexes.
      '--locale-provider=builtin',
      '--builtin-locale=C.UTF-8',
      '--locale=C',
      '--data-checksums',
    ]
    await run(binaries.initdb, ['-D', dataArgument(fresh, account), ...options], { ...runAs(account), cwd: fresh, timeout: initWithinMs })
  } catch (cause) {
    const reason = (cause as { stderr?: string }).stderr?.trim() || (cause as Error).message
    throw new Error(`the embedded PostgreSQL failed to create its data directory ${dataFolder}: ${reason}`, { cause })
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
  await rename(fresh, dataFolder)
  await syncFolder(dirname(dataFolder))
}

async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

const mebioctet = 1_048_576

/** For commands beside the service, sessions with a lock, the supervisor, and those reserved for the superuser. */
const otherConnections = 30
const minConnections = 100

/**
 * Settings that override those in the cluster's own files. Settings for a single table are set on that table. `connections`: those that the
 * service opens at most.
 */
export function serverSettings(connections: number): string[] {
  const memory = machineMemory()
  const buffers = Math.max(16, Math.min(512, Math.floor(memory / 4 / mebioctet)))
  return [
    'listen_addresses=',
    'unix_socket_permissions=0700',
    'port=5432',
    'cluster_name=postrider',
    `max_connections=${Math.max(minConnections, connections + otherConnections)}`,
    `shared_buffers=${buffers}MB`,
    // A statement over all days locks each partition and its indexes. 512 cost 11 MB more than PostgreSQL's 64, and 256 cost 5 MB.
    `max_locks_per_transaction=${memory < 1024 * mebioctet ? 256 : 512}`,
    // Required for durability.
    'fsync=on',
    'full_page_writes=on',
    'synchronous_commit=on',
    // Fewer checkpoints mean fewer full pages in the WAL. pglz, because these binaries are built without lz4 and zstd.
    'wal_compression=pglz',
    'checkpoint_timeout=15min',
    'max_wal_size=2GB',
    // Statements are short and prepared: compiling them costs more than it saves.
    'jit=off',
    'log_destination=stderr',
    'logging_collector=off',
    'log_checkpoints=off',
    'log_timezone=UTC',
    'log_line_prefix=%m [%p] ',
    'password_encryption=scram-sha-256',
  ]
}
