/** The modules that `postrider serve` loads before it starts PostgreSQL: those of every command, without the other commands. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { commandsHelp } from '#cli'

const run = promisify(execFile)
const hook = new URL('../support/print-loaded-modules.ts', import.meta.url).href
const program = new URL('../../bin/postrider.js', import.meta.url).pathname

test('a start loads few modules before PostgreSQL', async () => {
  const { stderr } = await run(process.execPath, ['--import', hook, program, 'version'])
  const paths = (JSON.parse(stderr) as string[]).map((url) => /\/src\/(.*)$/.exec(url)?.[1] ?? '')
  const modules = paths.filter((path) => path.includes('/')).map((path) => path.split('/')[0])
  expect(new Set(modules)).toEqual(new Set(['base', 'cli', 'db', 'installation', 'main', 'simulator', 'tenants']))
  expect(paths).toContain('cli/early-commands.ts')
  expect(paths).not.toContain('cli/commands.ts')
})

test('no other command begins with the name of one that is found before the others', async () => {
  const names = (await commandsHelp()).map(({ name }) => name)
  expect(names).toEqual(expect.arrayContaining(['serve', 'version']))
  expect(names.filter((name) => /^(serve|version) /.test(name))).toEqual([])
})
