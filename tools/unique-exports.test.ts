/** The check of exported names: a repeated name is found in every form of export, and re-exports of one declaration pass. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { readSource } from './source-files.ts'
import { checkUniqueExports } from './unique-exports.ts'

const roots: string[] = []
afterAll(() => {
  for (const root of roots) rmSync(root, { recursive: true })
})

function problemsOf(files: Record<string, string>): string[] {
  const root = mkdtempSync(join(tmpdir(), 'exports-'))
  roots.push(root)
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), text)
  }
  return checkUniqueExports(readSource(root)).map(({ rule, at, says }) => `${rule}: ${at} ${says}`)
}

test.each([
  ['function', 'export function open() {}\n', 'export async function open() {}\n'],
  ['constant', 'export const open = 1\n', 'const other = 2\nexport const more = other,\n  open = 3\n'],
  ['type', 'export type open = string\n', 'export interface open {}\n'],
  ['class', 'export class open {}\n', 'export function open() {}\n'],
  ['object pattern', 'export const open = 1\n', 'export const { a: open } = { a: 2 }\n'],
  ['short object pattern', 'export const open = 1\n', 'export const { a, open = 3 } = { a: 2 }\n'],
  ['array pattern', 'export const open = 1\n', 'export const [, open] = [1, 2]\n'],
  ['rest', 'export const open = 1\n', 'export const [a, ...open] = [1, 2]\n'],
  ['list of exports', 'export const open = 1\n', 'const open = 2\nexport { open }\n'],
  ['export under another name', 'export const open = 1\n', 'const shut = 2\nexport { shut as open }\n'],
  ['type-only list', 'export const open = 1\n', 'type open = 2\nexport type { open }\n'],
])('a name declared twice is refused: %s', (_, one, other) => {
  const [problem, ...more] = problemsOf({ 'src/a/a.ts': one, 'src/b/b.ts': other })
  expect(problem).toMatch(/^unique-exports: src\/b\/b\.ts:\d exports open, and so does src\/a\/a\.ts:1: give one of them another name$/)
  expect(more).toEqual([])
})

test('every further declaration of a name is named', () => {
  const one = 'export const open = 1\n'
  expect(problemsOf({ 'src/a/a.ts': one, 'src/a/b.ts': one, 'src/c/c.ts': one })).toHaveLength(2)
})

test('a name has one declaration when others only export it again', () => {
  const files = {
    'src/a/open.ts': 'export const open = 1\nexport type Open = typeof open\n',
    'src/a/a.ts': "export { open, type Open } from './open.ts'\n",
    'src/b/b.ts': "import { open } from '#a'\nexport { open }\nexport type { Open } from '#a'\nexport * from '#a'\n",
  }
  expect(problemsOf(files)).toEqual([])
})

test('a type and a value of one file may share their name, and an unexported name may repeat any', () => {
  const files = {
    'src/a/a.ts': 'export const Open = 1\nexport type Open = number\n',
    'src/b/b.ts': 'const Open = 2\nfunction inner() {\n  const Open = 3\n  return Open\n}\nexport const sum = Open + inner()\n',
    'src/b/b.test.ts': 'export const Open = 4\n',
  }
  expect(problemsOf(files)).toEqual([])
})
