/** Commands and starts that failed for newcomers: each message names the next step, and no files are left behind. */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { chmod, mkdir, mkdtemp, rm, unlink, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import { freePort, startServiceProcess } from '../support/spawned-service.ts'

const script = join(process.cwd(), 'bin/postrider.js')

interface Ran {
  code: number
  output: string
}

const run = (environment: Record<string, string | undefined>, ...words: string[]) =>
  new Promise<Ran>((resolve) => {
    const env = { ...process.env, POSTRIDER_LOG_LEVEL: 'warn', ...environment } as NodeJS.ProcessEnv
    execFile(process.execPath, [script, ...words], { env, timeout: 60_000 }, (error, out, err) =>
      resolve({ code: typeof error?.code === 'number' ? error.code : error ? 1 : 0, output: out + err }),
    )
  })

async function emptyFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'postrider-odd-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  return join(folder, 'data')
}

test.each([['domain', 'add', 'example.com'], ['queue'], ['backup', '/dev/null'], ['doctor'], ['key', 'create', '--type', 'live']])(
  'a command in a folder without an installation makes none: %s',
  async (...words) => {
    const folder = await emptyFolder()
    const { code, output } = await run({ POSTRIDER_DATA: folder }, ...words)
    expect([code, output]).toEqual([2, expect.stringContaining(`no installation in ${folder}. Set POSTRIDER_DATA`)])
    expect(existsSync(folder)).toBe(false)
  },
)

test('migrate makes the database before the first start, which still prints keys and the sign-in link', async () => {
  const folder = await emptyFolder()
  expect(await run({ POSTRIDER_DATA: folder }, 'migrate')).toMatchObject({ code: 0, output: expect.stringContaining('applied') })
  expect(await run({ POSTRIDER_DATA: folder }, 'queue')).toMatchObject({
    code: 2,
    output: expect.stringContaining('Start the service first'),
  })
  await using service = await startServiceProcess({ POSTRIDER_DATA: folder })
  expect(service.liveKey).toMatch(/^svc_live_/)
  expect(service.output()).toContain('/sign-in/')
}, 60_000)

test('a failed restore leaves no database, which would block the first start', async () => {
  const folder = await emptyFolder()
  const file = `${folder}.backup`
  expect(await run({ POSTRIDER_DATA: folder }, 'restore', file)).toEqual({ code: 1, output: `${file}: no such file or directory\n` })
  expect(existsSync(folder)).toBe(false)
  await writeFile(file, 'not a backup')
  expect(await run({ POSTRIDER_DATA: folder }, 'restore', file)).toEqual({ code: 1, output: expect.stringContaining('not a backup of') })
  expect(existsSync(join(folder, 'postgres'))).toBe(false)
}, 60_000)

test('an installation whose secret is missing makes no other, and names the place where it belongs', async () => {
  await using service = await startServiceProcess()
  await service.stop()
  const secret = join(service.folder, 'secret')
  await unlink(secret)
  const { code, output } = await run(service.environment, 'serve')
  expect([code, output]).toEqual([2, expect.stringMatching(/secret is missing.*POSTRIDER_SECRET_FILE/)])
  expect(existsSync(secret)).toBe(false)
}, 60_000)

test('a data directory that cannot be made is named with its setting', async () => {
  // In /proc, Linux reports that the parent folder does not exist although it does.
  const { code, output } = await run({ POSTRIDER_DATA: '/proc/postrider' }, 'serve')
  expect([code, output]).toEqual([2, expect.stringContaining('POSTRIDER_DATA: cannot create the data directory /proc/postrider (ENOENT')])
})

test('a command of a user who cannot read the data directory names the ways to use the service', async () => {
  const folder = await emptyFolder()
  await chmod(dirname(folder), 0o755)
  await mkdir(folder)
  await chmod(folder, 0o000)
  // Root can read every directory.
  const user = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {}
  const env = { ...process.env, POSTRIDER_DATA: folder } as NodeJS.ProcessEnv
  const { code, stderr } = await promisify(execFile)(process.execPath, [script, 'domain', 'list'], { env, ...user }).catch((error) => error)
  await chmod(folder, 0o700)
  expect([code, stderr]).toEqual([
    2,
    expect.stringMatching(/belongs to another user: run the command as root \(sudo\), or set POSTRIDER_URL/),
  ])
})

test('a port that is taken is named with its setting', async () => {
  const folder = await emptyFolder()
  const taken = createServer()
  const port = await freePort()
  await new Promise<void>((resolve) => taken.listen(port, '127.0.0.1', resolve))
  onTestFinished(() => void taken.close())
  const environment = { POSTRIDER_DATA: folder, PORT: String(port), POSTRIDER_ROLES: 'api' }
  const { code, output } = await run(environment, 'serve')
  expect([code, output]).toEqual([2, expect.stringContaining(`PORT: 127.0.0.1:${port} is in use by another program`)])
  // They are in the database, and the next start does not show them.
  expect(output).toMatch(/set up, but not running[^]*svc_live_[^]*svc_test_[^]*\/sign-in\//)
  expect(output).not.toContain('retrying')
  await using service = await startServiceProcess({ POSTRIDER_SMTP_PORT: String(port) })
  const told = `POSTRIDER_SMTP_PORT: 127.0.0.1:${port} is in use by another program`
  await expect.poll(() => service.output(), { timeout: 20_000 }).toContain(told)

  const ready = async () => {
    const answer = await fetch(`${service.url}/readyz`)
    return { code: answer.status, ...((await answer.json()) as object) }
  }
  expect(await ready()).toEqual({ code: 200, status: 'ready', database: 'reachable', smtp: 'not listening' })
  taken.close()
  await expect.poll(ready, { timeout: 20_000 }).toMatchObject({ smtp: 'listening' })
}, 90_000)

test('a service that waits for its database stops when it is asked to', async () => {
  const database = `postgres://postrider@127.0.0.1:${await freePort()}/postrider`
  const environment = { DATABASE_URL: database, POSTRIDER_SECRET: 's'.repeat(43), POSTRIDER_LOG_LEVEL: 'info' }
  const service = spawn(process.execPath, [script, 'serve'], { env: { ...process.env, ...environment } as NodeJS.ProcessEnv })
  onTestFinished(() => void service.kill('SIGKILL'))
  let output = ''
  for (const stream of [service.stdout, service.stderr]) stream.on('data', (octets) => (output += octets))
  await expect.poll(() => output, { timeout: 20_000 }).toContain('retrying for 60 s')
  service.kill('SIGTERM')
  expect(await once(service, 'exit')).toEqual([0, null])
  expect(output).toContain('stopped while waiting for the database')
}, 30_000)

test('a member whose address the first start made up can be listed and reset', async () => {
  await using service = await startServiceProcess({ POSTRIDER_HOSTNAME: 'vm' })
  const { members } = (await service.command('member', 'list')) as { members: { address: string }[] }
  expect(members.map(({ address }) => address)).toEqual(['owner@vm'])
  expect(await service.command('member', 'reset', 'owner@vm')).toMatchObject({ signInUrl: expect.stringContaining('/sign-in/') })
  const added = await run(service.environment, 'domain', 'add', 'example.com')
  expect(added.output).toContain('First set POSTRIDER_HOSTNAME')
}, 60_000)
