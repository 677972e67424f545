import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { v8Flags } from './garbage-collection.ts'

const run = promisify(execFile)
const program = new URL('../../test/support/fragmented-memory.ts', import.meta.url).pathname
const isGlibc = process.platform === 'linux' && 'glibcVersionRuntime' in (process.report.getReport() as { header: object }).header

test.runIf(isGlibc)('an idle process returns the free pages between blocks in use', async () => {
  const { stdout } = await run(process.execPath, [program])
  const { before, after, kept } = JSON.parse(stdout) as { before: number; after: number; kept: number }
  expect(kept).toBe(200)
  expect(after).toBeLessThan(before / 2)
})

const gibibytes = (count: number) => count * 2 ** 30
const namesOf = (flags: readonly string[]) => flags.map((flag) => flag.split('=')[0] as string)

test('the heap may grow further only on a machine with more than 4 GiB', () => {
  expect(namesOf(v8Flags(gibibytes(4)))).not.toContain('--heap-growing-percent')
  expect(v8Flags(gibibytes(4) + 1)).toContain('--heap-growing-percent=200')
})

test('V8 knows the flags that are set', async () => {
  const source = await readFile(new URL('garbage-collection.ts', import.meta.url), 'utf8')
  const literal = [...source.matchAll(/setFlagsFromString\('([^']+)'/g)].map(([, flag]) => flag as string)
  const { stdout } = await run(process.execPath, ['--v8-options'])
  const known = new Set([...stdout.matchAll(/^ {2}(--[a-z0-9-]+)/gm)].map(([, flag]) => flag))
  expect(literal).toEqual(['--expose-gc'])
  expect(namesOf([...v8Flags(gibibytes(24)), ...literal]).filter((flag) => !known.has(flag))).toEqual([])
})
