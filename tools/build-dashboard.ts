/**
 * Builds dashboard/ into dashboard/dist if a source is newer than the build: `npm run build`, and the first step of `npm start`. Without
 * the build tools (a production install), or if the build fails, it reports that and exits with 1; `npm start` then serves the previous
 * build. Imports only Node's own modules at first, because a production install has no others.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'

const root = join(import.meta.dirname, '..')
const built = join(root, 'dashboard/dist/index.html')
const vite = join(root, 'node_modules/vite/bin/vite.js')
const buildWithinMs = 120_000

function isUpToDate(): boolean {
  if (!existsSync(built)) return false
  const builtAtMs = statSync(built).mtimeMs
  // Folders included: a folder is newer when a file was removed.
  const folders = ['dashboard/src', 'dashboard/public'].filter((folder) => existsSync(join(root, folder)))
  const sources = folders.flatMap((folder) => [
    folder,
    ...readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map((name) => `${folder}/${name}`),
  ])
  const files = [...sources, 'dashboard/index.html', 'dashboard/package.json', 'dashboard/vite.config.ts', 'package-lock.json']
  return files.every((path) => !existsSync(join(root, path)) || statSync(join(root, path)).mtimeMs <= builtAtMs)
}

function fail(why: string): void {
  console.error(`${why}${existsSync(built) ? '; an older build is served' : ''}`)
  process.exitCode = 1
}

if (!isUpToDate() && !existsSync(vite)) fail('the dashboard cannot be built, for its tools are not installed: npm ci brings them')
else if (!isUpToDate()) {
  console.log('building the dashboard')
  const { status } = spawnSync(process.execPath, [vite, 'build', 'dashboard', '--logLevel', 'warn'], {
    cwd: root,
    // Otherwise the larger and slower development build of React is used.
    env: { ...process.env, NODE_ENV: 'production' },
    stdio: 'inherit',
    timeout: buildWithinMs,
  })
  if (status !== 0) fail('the dashboard could not be built')
}
if (existsSync(vite)) await (await import('./build-reference.ts')).buildReference()
