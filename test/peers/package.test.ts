/** The npm package, as a user installs and upgrades it: in an empty folder with an empty home, on the Node of the machine. */
import { execFile } from 'node:child_process'
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join, sep } from 'node:path'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import { buildPackages } from '../../tools/package.ts'
import { startServiceProcess } from '../support/spawned-service.ts'

const run = promisify(execFile)
const maxInstalledMebioctets = 250

/** Without the Node of the tests, and without npm settings of this run. */
const path = (process.env['PATH'] ?? '')
  .split(delimiter)
  .filter((folder) => !folder.includes(`node_modules${sep}.bin`))
  .join(delimiter)

async function sizeOf(folder: string): Promise<number> {
  let octets = 0
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true }))
    if (entry.isFile()) octets += (await stat(join(entry.parentPath, entry.name))).size
  return octets / 2 ** 20
}

/** The same package with an older version, and with one file that the newer one does not have. */
async function previousOf(packed: string, folder: string): Promise<string> {
  await mkdir(folder)
  await run('tar', ['--extract', '--file', packed, '--directory', folder])
  const manifest = join(folder, 'package/package.json')
  await writeFile(manifest, JSON.stringify({ ...JSON.parse(await readFile(manifest, 'utf8')), version: '0.0.9' }))
  await writeFile(join(folder, 'package/lib/left-over.js'), '')
  const previous = join(folder, 'postrider-0.0.9.tgz')
  await run('tar', ['--create', '--gzip', '--file', previous, '--directory', folder, 'package'])
  return previous
}

test('installs from its file alone, starts, delivers a first email, and another after an upgrade', { timeout: 600_000 }, async () => {
  const folder = await mkdtemp(join(tmpdir(), 'postrider-package-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  // Its PostgreSQL runs as another user when root starts it.
  await chmod(folder, 0o755)
  const [packed = '', client = ''] = buildPackages(join(folder, 'packages'))
  const [home, app] = [join(folder, 'home'), join(folder, 'app')]
  for (const one of [home, app]) await mkdir(one)
  const env = { PATH: path, HOME: home }
  const install = (...files: string[]) => run('npm', ['install', '--no-audit', '--no-fund', ...files], { cwd: app, env, timeout: 300_000 })
  await install(await previousOf(packed, join(folder, 'previous')), client)
  const program = join(app, 'node_modules/postrider')
  expect(await readdir(join(program, 'lib'))).toContain('left-over.js')
  // The first command fetches the right Node if the machine's is too old.
  const { stdout: help } = await run('npx', ['postrider', '--help'], { cwd: app, env, timeout: 200_000 })
  expect(help).toContain('serve')
  expect((await sizeOf(join(app, 'node_modules'))) + (await sizeOf(join(home, '.cache')))).toBeLessThan(maxInstalledMebioctets)

  const settings = { PATH: path, HOME: home }
  await using service = await startServiceProcess(settings, { node: 'node', script: join(program, 'bin/postrider.js') })
  const accept = async (subject: string) => {
    const email = { from: 'hello@simulator.test', to: ['delivered@simulator.test'], subject, text: 'It works.' }
    return ((await service.call('POST', '/emails', email, service.testKey)).body.data as { id: string }).id
  }
  const get = async (id: string) => (await service.call('GET', `/emails/${id}`, undefined, service.testKey)).body.data
  const isSent = (id: string) => expect.poll(() => get(id), { timeout: 30_000 }).toMatchObject({ status: 'sent' })
  expect(await service.command('version')).toMatchObject({ version: '0.0.9' })
  const bench = run('npx', ['postrider', 'bench', 'accept'], { cwd: app, env })
  await expect(bench).rejects.toMatchObject({ code: 2, stderr: expect.stringContaining('bench works only in a checkout') })
  const first = await accept('First')
  await isSent(first)
  const last = await accept('Perhaps still queued')

  expect(await service.stop()).toBe(0)
  await install(packed)
  expect((await readdir(program)).sort()).toEqual(
    ['CHANGELOG.md', 'LICENSE', 'README.md', 'SECURITY.md', 'bin', 'dashboard', 'docs', 'lib', 'package.json'].sort(),
  )
  const files = await readdir(program, { recursive: true })
  expect(files.filter((name) => /\.test\.|\.ts$|left-over/.test(name))).toEqual([])
  await service.start()
  expect(await service.command('version')).not.toMatchObject({ version: '0.0.9' })
  for (const id of [first, last, await accept('After the upgrade')]) await isSent(id)
  for (const page of ['/', '/docs/', '/docs/guide']) expect((await fetch(`${service.url}${page}`)).status, page).toBe(200)

  const { stdout } = await run('node', ['--input-type=module', '-e', "console.log(typeof (await import('@postrider/client')).Postrider)"], {
    cwd: app,
    env,
  })
  expect(stdout.trim()).toBe('function')
  const maps = await Promise.all(
    files
      .filter((name) => name.startsWith('lib/') && name.endsWith('.js.map'))
      .map(async (name) => JSON.parse(await readFile(join(program, name), 'utf8')) as { sources: string[]; sourcesContent: string[] }),
  )
  const [clock, ...others] = maps.flatMap(({ sources, sourcesContent }) =>
    sources.flatMap((source, nth) => (source.endsWith('src/base/clock.ts') ? [sourcesContent[nth]] : [])),
  )
  expect([others, clock?.includes('export const systemClock')]).toEqual([[], true])
})
