import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
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

test('V8 knows the flags that are set', async () => {
  const source = await readFile(new URL('garbage-collection.ts', import.meta.url), 'utf8')
  const used = [...source.matchAll(/setFlagsFromString\([`'](--[a-z-]+)/g)].map(([, flag]) => flag)
  const { stdout } = await run(process.execPath, ['--v8-options'])
  const known = new Set([...stdout.matchAll(/^ {2}(--[a-z0-9-]+)/gm)].map(([, flag]) => flag))
  expect(used).toContain('--heap-growing-percent')
  expect(used.filter((flag) => !known.has(flag))).toEqual([])
})
