/** Builds the dashboard once for all browser tests, before any of them starts. */
import { spawnSync } from 'node:child_process'

export default function setup(): void {
  const { status } = spawnSync(process.execPath, ['tools/build-dashboard.ts'], { stdio: 'inherit' })
  if (status !== 0) throw new Error('the dashboard could not be built')
}
