/** The npm package, as a user installs it: in an empty folder with an empty home, on the Node of the machine. */
import { execFile } from 'node:child_process'
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises'
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

test('installs from its file alone, starts, and delivers a first email', { timeout: 400_000 }, async () => {
  const folder = await mkdtemp(join(tmpdir(), 'postrider-package-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  // Its PostgreSQL runs as another user when root starts it.
  await chmod(folder, 0o755)
  const [packed = '', client = ''] = buildPackages(join(folder, 'packages'))
  const [home, app] = [join(folder, 'home'), join(folder, 'app')]
  for (const one of [home, app]) await mkdir(one)
  const env = { PATH: path, HOME: home }
  await run('npm', ['install', '--no-audit', '--no-fund', packed, client], { cwd: app, env, timeout: 300_000 })
  const program = join(app, 'node_modules/postrider')
  expect((await readdir(program)).sort()).toEqual(
    ['CHANGELOG.md', 'LICENSE', 'README.md', 'SECURITY.md', 'bin', 'dashboard', 'docs', 'lib', 'package.json'].sort(),
  )
  const files = await readdir(program, { recursive: true })
  expect(files.filter((name) => /\.test\.|\.ts$/.test(name))).toEqual([])

  // The first command fetches the right Node if the machine's is too old.
  const { stdout: help } = await run('npx', ['postrider', '--help'], { cwd: app, env, timeout: 200_000 })
  expect(help).toContain('serve')
  expect((await sizeOf(join(app, 'node_modules'))) + (await sizeOf(join(home, '.cache')))).toBeLessThan(maxInstalledMebioctets)

  const settings = { PATH: path, HOME: home }
  await using service = await startServiceProcess(settings, { node: 'node', script: join(program, 'bin/postrider.js') })
  const email = { from: 'hello@simulator.test', to: ['delivered@simulator.test'], subject: 'First', text: 'It works.' }
  const { body } = await service.call('POST', '/emails', email, service.testKey)
  const { id } = body.data as { id: string }
  await expect
    .poll(async () => (await service.call('GET', `/emails/${id}`, undefined, service.testKey)).body.data, { timeout: 30_000 })
    .toMatchObject({ status: 'sent' })
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
