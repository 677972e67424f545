/** A PgBouncer for one test (Debian package pgbouncer), on a loopback port, before one database of the test server. */
import { spawn } from 'node:child_process'
import { chmodSync, existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'

const program = '/usr/sbin/pgbouncer'
const startWithinMs = 10_000

/** The reason why it cannot run here, or undefined. */
export function missingPgBouncer(): string | undefined {
  return existsSync(program) ? undefined : 'PgBouncer is not installed (Debian package pgbouncer)'
}

export interface PgBouncer extends AsyncDisposable {
  /** For DATABASE_URL. */
  readonly url: string
}

/** `serverUrl`: of the server, by unix socket or TCP; `mode`: its pool_mode. */
export async function startPgBouncer(
  serverUrl: string,
  database: string,
  port: number,
  mode: 'session' | 'transaction' | 'statement',
): Promise<PgBouncer> {
  const folder = mkdtempSync(join(tmpdir(), 'postrider-pgbouncer-'))
  chmodSync(folder, 0o755)
  const socket = /[?&]host=([^&]+)/.exec(serverUrl)?.[1]
  const { username, password, hostname, port: serverPort } = new URL(serverUrl.replace('@/', '@localhost/'))
  const host = socket ? decodeURIComponent(socket) : hostname
  const user = decodeURIComponent(username)
  const users = join(folder, 'users.txt')
  writeFileSync(users, `"${user}" "${decodeURIComponent(password)}"\n`)
  const config = join(folder, 'pgbouncer.ini')
  writeFileSync(
    config,
    `[databases]
${database} = host=${host} port=${serverPort || 5432} dbname=${database} password=${decodeURIComponent(password)}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = plain
auth_file = ${users}
pool_mode = ${mode}
default_pool_size = 80
max_client_conn = 200
`,
  )
  // It refuses to run as root; the owner of the server's socket may connect.
  const { uid, gid } = statSync(socket ? decodeURIComponent(socket) : tmpdir())
  const owner = process.getuid?.() === 0 && uid !== 0 ? { uid, gid } : {}
  const child = spawn(program, [config], { stdio: ['ignore', 'ignore', 'pipe'], ...owner })
  let output = ''
  child.stderr.on('data', (piece: Buffer) => (output += piece.toString()))
  const untilMs = performance.now() + startWithinMs
  while (!(await answers(port))) {
    if (child.exitCode !== null || performance.now() > untilMs) throw new Error(`PgBouncer did not start:\n${output}`)
    await wait(50)
  }
  return {
    url: `postgres://${username}:${password}@127.0.0.1:${port}/${database}`,
    async [Symbol.asyncDispose]() {
      const ended = new Promise((resolve) => child.once('exit', resolve))
      child.kill('SIGKILL')
      await ended
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', () => resolve(false))
  })
}
