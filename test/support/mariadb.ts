/** A MariaDB for one test (Debian package mariadb-server): a data directory of its own, and a socket without a port. */
import { execFile, spawn } from 'node:child_process'
import { createWriteStream, existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { setTimeout as wait } from 'node:timers/promises'
import { promisify } from 'node:util'
import { createGzip } from 'node:zlib'
import { type Connection, createConnection } from 'mysql2/promise'

const program = '/usr/sbin/mariadbd'
const startWithinMs = 60_000

/** The reason why it cannot run here, or undefined. */
export const missingMariaDb = (): string | undefined =>
  existsSync(program) ? undefined : 'MariaDB is not installed (Debian package mariadb-server)'

export interface MariaDbServer extends AsyncDisposable {
  /** The URL of one of its databases. */
  url(database: string): string
  connection: Connection
  /** Dumps databases to a file, compressed. */
  dump(databases: readonly string[], file: string): Promise<void>
}

export async function startMariaDb(): Promise<MariaDbServer> {
  const folder = mkdtempSync(join(tmpdir(), 'postrider-mariadb-'))
  const socket = join(folder, 'mariadb.sock')
  const user = process.getuid?.() === 0 ? ['--user=root'] : []
  const place = ['--no-defaults', `--datadir=${join(folder, 'data')}`, ...user]
  await promisify(execFile)('mariadb-install-db', [...place, '--auth-root-authentication-method=normal', '--skip-test-db'])
  const settings = ['--skip-networking', '--innodb-flush-log-at-trx-commit=0', '--innodb-buffer-pool-size=128M', '--skip-log-bin']
  const child = spawn(program, [...place, `--socket=${socket}`, `--pid-file=${join(folder, 'pid')}`, ...settings], {
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  let output = ''
  child.stderr.on('data', (piece: Buffer) => (output += piece.toString()))
  const untilMs = performance.now() + startWithinMs
  let connection: Connection | undefined
  while (!connection) {
    connection = await createConnection({ socketPath: socket, user: 'root', multipleStatements: true }).catch(() => undefined)
    if (connection) break
    if (child.exitCode !== null || performance.now() > untilMs) throw new Error(`MariaDB did not start:\n${output}`)
    await wait(100)
  }
  return {
    url: (database) => `mysql://root@localhost/${database}?socketPath=${encodeURIComponent(socket)}`,
    connection,
    async dump(databases, file) {
      const words = ['--no-defaults', `--socket=${socket}`, '--user=root', '--single-transaction', '--databases', ...databases]
      const dumping = spawn('mariadb-dump', words, { stdio: ['ignore', 'pipe', 'inherit'] })
      await pipeline(dumping.stdout, createGzip({ level: 1 }), createWriteStream(file))
    },
    async [Symbol.asyncDispose]() {
      await connection.end()
      child.kill('SIGTERM')
      await new Promise((resolve) => child.once('exit', resolve))
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
