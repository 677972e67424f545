/**
 * A MariaDB that exists for one import from a dump: its own data directory in the folder for temporary files, a socket without a port, and
 * Debian's programs. The dump is SQL from outside: the client runs no commands of its own, and the server reads and writes no other files.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { constants, createReadStream, rmSync } from 'node:fs'
import { access, chown, mkdtemp, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import type { Writable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { promisify } from 'node:util'
import { createGunzip } from 'node:zlib'
import { type Clock, pause } from '#base'

export interface ScratchMariaDb extends AsyncDisposable {
  /** Of one of its databases. */
  url(database: string): string
}

const startWithinMs = 60_000
const stopWithinMs = 30_000
const lookEveryMs = 100
const keptOutput = 4000
const endSignals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
const run = promisify(execFile)

export interface DumpDeps {
  clock: Clock
  /** The folders of programs, as in the variable PATH. */
  path: string
  progress(part: number): void
}

/** Loads the dump, which may be compressed with gzip; `progress` gets the part that was read, from 0 to 1. */
export async function loadDump(file: string, deps: DumpDeps): Promise<ScratchMariaDb> {
  const { size } = await stat(file)
  const [server, install, client] = await Promise.all(
    ['mariadbd', 'mariadb-install-db', 'mariadb'].map((name) => programNamed(name, deps.path)),
  )
  const folder = await mkdtemp(join(tmpdir(), 'postrider-dump-'))
  const scratch = new Scratch(folder, deps.clock)
  try {
    await scratch.start(server as string, install as string)
    await scratch.load(client as string, file, (octets) => deps.progress(size === 0 ? 1 : octets / size))
    return scratch
  } catch (error) {
    await scratch[Symbol.asyncDispose]()
    throw error
  }
}

async function programNamed(name: string, path: string): Promise<string> {
  const folders = [...path.split(delimiter).filter((folder) => folder !== ''), '/usr/sbin', '/usr/bin']
  for (const folder of folders) {
    const file = join(folder, name)
    if (
      await access(file, constants.X_OK).then(
        () => true,
        () => false,
      )
    )
      return file
  }
  throw new Error(`a dump needs the program ${name}. Install MariaDB (apt-get install mariadb-server), or give the URL of a running one`)
}

class Scratch implements ScratchMariaDb {
  readonly #folder: string
  readonly #clock: Clock
  #server: ChildProcess | undefined
  #output = ''

  constructor(folder: string, clock: Clock) {
    this.#folder = folder
    this.#clock = clock
  }

  get #socket(): string {
    return join(this.#folder, 'socket')
  }

  url(database: string): string {
    return `mysql://root@localhost/${encodeURIComponent(database)}?socketPath=${encodeURIComponent(this.#socket)}`
  }

  async start(server: string, install: string): Promise<void> {
    const user = await this.#unprivileged()
    const place = ['--no-defaults', `--datadir=${join(this.#folder, 'data')}`, ...user]
    await run(install, [...place, '--auth-root-authentication-method=normal', '--skip-test-db'])
    const safe = ['--skip-networking', '--local-infile=0', `--secure-file-priv=${this.#folder}`, '--skip-log-bin']
    const fast = [
      '--innodb-flush-log-at-trx-commit=0',
      '--innodb-doublewrite=0',
      '--innodb-buffer-pool-size=256M',
      '--max-allowed-packet=1G',
    ]
    const files = [`--socket=${this.#socket}`, `--pid-file=${join(this.#folder, 'pid')}`]
    const child = spawn(server, [...place, ...files, ...safe, ...fast], { stdio: ['ignore', 'ignore', 'pipe'] })
    this.#server = child
    for (const signal of endSignals) process.once(signal, this.#atSignal)
    child.on('error', (error) => (this.#output += error.message))
    child.stderr?.on('data', (piece: Buffer) => (this.#output = (this.#output + piece.toString()).slice(-keptOutput)))
    const untilMs = this.#clock.monotonicMs() + startWithinMs
    while (!(await this.#answers())) {
      if (child.exitCode !== null || child.signalCode !== null || this.#clock.monotonicMs() > untilMs)
        throw new Error(`MariaDB for the dump did not start:\n${this.#output}`)
      await pause(this.#clock, lookEveryMs)
    }
  }

  /** MariaDB refuses to run as root without the option; Debian's package has a user for it. */
  async #unprivileged(): Promise<string[]> {
    if (process.getuid?.() !== 0) return []
    const { stdout } = await run('id', ['-u', 'mysql']).catch(() => ({ stdout: '' }))
    if (stdout === '') return ['--user=root']
    await chown(this.#folder, Number(stdout), -1)
    return ['--user=mysql']
  }

  async #answers(): Promise<boolean> {
    const { createConnection } = await import('mysql2/promise')
    const connection = await createConnection({ socketPath: this.#socket, user: 'root' }).catch(() => undefined)
    await connection?.end()
    return connection !== undefined
  }

  async load(client: string, file: string, progress: (octets: number) => void): Promise<void> {
    // In binary mode the client does not run its own commands, such as a shell, from the file.
    const words = ['--no-defaults', `--socket=${this.#socket}`, '--user=root', '--batch', '--binary-mode', '--local-infile=0']
    const child: ChildProcess = spawn(client, [...words, '--max-allowed-packet=1G'], { stdio: ['pipe', 'ignore', 'pipe'] })
    let problem = ''
    const ended = new Promise<number | null>((resolve) => {
      child.once('close', resolve)
      // Without a free file descriptor the child has no streams, only this event.
      child.once('error', (error) => {
        problem = error.message
        resolve(null)
      })
    })
    child.stderr?.on('data', (piece: Buffer) => (problem = (problem + piece.toString()).slice(0, keptOutput)))
    const { stdin } = child
    const failure = stdin ? await fed(stdin, file, progress) : undefined
    const code = await ended
    if (code !== 0) throw new Error(`cannot load ${file}: ${problem.trim() || `the client ended with ${code}`}`)
    // The client may end before it has read all, for example after an error that it reports; without one the file is unreadable.
    if (failure) throw new Error(`cannot read ${file}: ${failure.message}`)
  }

  /** An interrupted command must not leave a server and the content of the dump behind. */
  readonly #atSignal = (signal: NodeJS.Signals): void => {
    this.#server?.kill('SIGKILL')
    rmSync(this.#folder, { recursive: true, force: true })
    process.kill(process.pid, signal)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const child = this.#server
    for (const signal of endSignals) process.off(signal, this.#atSignal)
    if (child && child.exitCode === null && child.signalCode === null) {
      const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()))
      child.kill('SIGTERM')
      const cancel = this.#clock.after(stopWithinMs, () => child.kill('SIGKILL'))
      await ended
      cancel()
    }
    await rm(this.#folder, { recursive: true, force: true })
  }
}

/** Writes the file to the client; resolves to the error if that fails. */
async function fed(stdin: Writable, file: string, progress: (octets: number) => void): Promise<Error | undefined> {
  const input = createReadStream(file)
  input.on('data', () => progress(input.bytesRead))
  try {
    await (file.endsWith('.gz') ? pipeline(input, createGunzip(), stdin) : pipeline(input, stdin))
    return undefined
  } catch (error) {
    stdin.destroy()
    return error as Error
  }
}
