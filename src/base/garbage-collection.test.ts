import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

const run = promisify(execFile)
const program = new URL('../../test/support/fragmented-memory.ts', import.meta.url).pathname
const isGlibc = process.platform === 'linux' && 'glibcVersionRuntime' in (process.report.getReport() as { header: object }).header

test.runIf(isGlibc)('an idle process returns the free pages between blocks in use', async () => {
  const { stdout } = await run(process.execPath, [program])
  const { before, after, kept } = JSON.parse(stdout) as { before: number; after: number; kept: number }
  expect(kept).toBe(200)
  expect(after).toBeLessThan(before / 2)
})
