/** Tests the linter's configuration on planted faults: detects a rule that is switched off or has no type information. */
import { spawnSync } from 'node:child_process'
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'

const faults: Record<string, string> = {
  'no-floating-promises': 'export function start() {\n  later()\n}\nasync function later() {}\n',
  'no-misused-promises': 'export const all = [1].filter(async () => true)\n',
  'await-thenable': 'export async function start() {\n  await 1\n}\n',
  'switch-exhaustiveness-check': "export function f(x: 'a' | 'b') {\n  switch (x) {\n    case 'a':\n      return 1\n  }\n  return 2\n}\n",
  'no-explicit-any': 'export const x: any = 1\n',
  'no-non-null-assertion': 'export const f = (x?: string) => x!.length\n',
  'ban-ts-comment': '// @ts-ignore\nexport const x: string = 1\n',
  'no-restricted-imports': "import { x } from '../b/b.ts'\nexport const y = x\n",
  'no-console': "console.log('x')\n",
  eqeqeq: 'export const f = (x: string) => x == "a"\n',
}

const root = mkdtempSync(join(tmpdir(), 'lint-'))
let output = ''

beforeAll(() => {
  mkdirSync(join(root, 'src/a'), { recursive: true })
  mkdirSync(join(root, 'src/b'), { recursive: true })
  copyFileSync('.oxlintrc.json', join(root, '.oxlintrc.json'))
  writeFileSync(
    join(root, 'tsconfig.json'),
    '{ "compilerOptions": { "strict": true, "noEmit": true, "module": "nodenext", "allowImportingTsExtensions": true }, "include": ["src"] }',
  )
  writeFileSync(join(root, 'src/b/b.ts'), 'export const x = 1\n')
  for (const [rule, text] of Object.entries(faults)) writeFileSync(join(root, `src/a/${rule}.ts`), text)
  const run = spawnSync(resolve('node_modules/.bin/oxlint'), ['--format=unix'], { cwd: root, encoding: 'utf8', timeout: 30_000 })
  output = run.stdout + run.stderr
})

afterAll(() => rmSync(root, { recursive: true }))

test.each(Object.keys(faults))('%s is found', (rule) => {
  expect(output.split('\n').filter((line) => line.includes(`src/a/${rule}.ts`) && line.includes(rule))).not.toEqual([])
})

test('a file without a fault has none', () => {
  expect(output).not.toContain('src/b/b.ts')
})
