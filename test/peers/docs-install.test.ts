/**
 * The commands of the install guide, run as typed on a server: npm fetches the packages, and then the dashboard is built and its build
 * tools are absent.
 */
import { execFile } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { chmod, cp, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join, sep } from 'node:path'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import { startServiceProcess } from '../support/spawned-service.ts'

/** Every line of the guide that runs npm, in order: to install, to upgrade, to go back. */
const lines = [...readFileSync('docs/install.md', 'utf8').matchAll(/^```console\n([^]*?)^```$/gm)].flatMap(([, block = '']) =>
  block.split('\n').filter((line) => /\bnpm (?!caddy)/.test(line) && !line.startsWith('apt-get')),
)

const leftOut = new Set(['node_modules', '.git', 'data', 'artifacts', 'dist'])

/** The environment of a shell outside npm scripts: npm and its settings are the machine's, which npm on another Node would not read. */
const machine = Object.fromEntries(
  Object.entries(process.env)
    .filter(([name]) => !/^(npm_config_(globalconfig|prefix|global_prefix|local_prefix)|NODE_ENV|NODE_OPTIONS)$/i.test(name))
    .map(([name, value = '']) => [
      name,
      name === 'PATH'
        ? value
            .split(delimiter)
            .filter((folder) => !folder.includes(`node_modules${sep}.bin`))
            .join(delimiter)
        : value,
    ]),
)

test('installing by docs/install.md brings a dashboard that is served, and leaves no tools and no changed file', {
  timeout: 400_000,
}, async () => {
  expect(lines.length).toBe(3)
  expect(new Set(lines).size).toBe(1)
  const folder = await mkdtemp(join(tmpdir(), 'postrider-install-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  // The mode of a checkout: the program's database runs as another user.
  await chmod(folder, 0o755)
  await cp('.', folder, { recursive: true, filter: (path) => !path.split(sep).some((name) => leftOut.has(name)) })
  await promisify(execFile)('sh', ['-euc', lines[0] as string], { cwd: folder, env: machine, timeout: 300_000, maxBuffer: 10_000_000 })

  expect(existsSync(join(folder, 'dashboard/dist/index.html'))).toBe(true)
  for (const tool of ['vite', 'react', 'vitest', 'typescript']) expect(existsSync(join(folder, 'node_modules', tool)), tool).toBe(false)
  // Otherwise git would refuse the next checkout of a version.
  for (const name of ['package.json', 'package-lock.json'])
    expect(await readFile(join(folder, name), 'utf8'), name).toBe(await readFile(name, 'utf8'))

  const program = { node: join(folder, 'node_modules/.bin/node'), script: join(folder, 'bin/postrider.js') }
  await using service = await startServiceProcess({}, program)
  const page = await fetch(`${service.url}/sign-in/abc`)
  expect(page.status).toBe(200)
  const [script] = /\/assets\/[\w-]+\.js/.exec(await page.text()) ?? []
  expect((await fetch(`${service.url}${script}`)).status).toBe(200)
  expect(service.output()).not.toContain('not built')

  // Without its tools the build still reports the missing ones, and `npm start` shows the report.
  const build = () => promisify(execFile)(program.node, ['tools/build-dashboard.ts'], { cwd: folder })
  await build()
  await rm(join(folder, 'dashboard/dist'), { recursive: true })
  await expect(build()).rejects.toMatchObject({ code: 1, stderr: expect.stringMatching(/^the dashboard cannot be built, .*npm ci/) })
})
