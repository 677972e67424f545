/** Cleanup of `npm run misbehaviours`: it leaves no process running, however it ends. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'

test('a reader that stops reading it ends the service that it started', { timeout: 90_000 }, async () => {
  const folder = await mkdtemp(join(tmpdir(), 'postrider-left-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  // The database runs under its own account.
  await chmod(folder, 0o755)
  const running = spawn(process.execPath, [new URL('cli.ts', import.meta.url).pathname, '--rows', 'pipelined'], {
    env: { ...process.env, TMPDIR: folder },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  onTestFinished(() => void running.kill('SIGKILL'))
  running.stdout.destroy()
  running.stderr.destroy()
  expect(await once(running, 'exit')).toEqual([1, null])
  expect(await readdir(folder)).toEqual([])
})
