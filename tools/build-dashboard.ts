/**
 * `npm start` runs this first: builds dashboard/ into dashboard/dist when a source is newer than the build. Never keeps the service from
 * starting: without the build tools (a production install), or when the build fails, it says so, and what was built before is served.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { filesBelow } from './source.ts'

const root = join(import.meta.dirname, '..')
const built = join(root, 'dashboard/dist/index.html')
const vite = join(root, 'node_modules/vite/bin/vite.js')
const buildWithinMs = 120_000

function isUpToDate(): boolean {
  if (!existsSync(built)) return false
  const builtAtMs = statSync(built).mtimeMs
  const sources = ['dashboard/src', 'dashboard/public'].flatMap((folder) => filesBelow(root, folder, ''))
  const files = [...sources, 'dashboard/index.html', 'dashboard/package.json', 'dashboard/vite.config.ts', 'package-lock.json']
  return files.every((path) => !existsSync(join(root, path)) || statSync(join(root, path)).mtimeMs <= builtAtMs)
}

if (existsSync(vite) && !isUpToDate()) {
  console.log('building the dashboard')
  const { status } = spawnSync(process.execPath, [vite, 'build', 'dashboard', '--logLevel', 'warn'], {
    cwd: root,
    // Else React would come in its larger and slower form for development.
    env: { ...process.env, NODE_ENV: 'production' },
    stdio: 'inherit',
    timeout: buildWithinMs,
  })
  if (status !== 0) console.error(`the dashboard could not be built${existsSync(built) ? '; an older build is served' : ''}`)
}
