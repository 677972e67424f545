/** Completion in real shells: the script of the command, and the words that a Tab would offer. */
import { execFile, spawnSync } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { runHere } from '../support/run-command.ts'

const run = promisify(execFile)
const exists = (shell: string) => spawnSync(shell, ['--version']).status === 0

async function scriptFor(shell: string): Promise<string> {
  let script = ''
  expect(await runHere(['completion', shell], { print: (text) => (script += `${text}\n`) })).toBe(0)
  return script
}

/** The words that bash offers for the last word of the line. */
async function offered(...words: string[]): Promise<string[]> {
  const script = `${await scriptFor('bash')}
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _postrider; printf '%s\\n' "\${COMPREPLY[@]}"`
  const { stdout } = await run('bash', ['--norc', '-c', script, 'bash', 'postrider', ...words])
  return stdout.split('\n').filter((word) => word !== '')
}

test.skipIf(!exists('bash'))('bash offers the commands, their second words, and the options and values of a command', async () => {
  expect(await offered('')).toEqual(expect.arrayContaining(['serve', 'domain', 'completion', 'queue']))
  expect(await offered('do')).toEqual(['doctor', 'domain'])
  expect(await offered('domain', '')).toEqual(['add', 'list', 'show', 'verify', 'trust', 'remove'])
  expect(await offered('domain', 'r')).toEqual(['remove'])
  expect(await offered('tenant', 'delete', '--')).toEqual(['--yes', '--url', '--key', '--json', '--help'])
  expect(await offered('tenant', 'delete', 'abc', '--y')).toEqual(['--yes'])
  expect(await offered('key', 'create', '--type', '')).toEqual(['live', 'test', 'smtp'])
  expect(await offered('key', 'create', '--name', 'x', '--type', 'l')).toEqual(['live'])
  expect(await offered('backup', '')).toEqual([])
})

test.skipIf(!exists('bash'))('bash distinguishes `queue` from the commands that begin with it', async () => {
  expect(await offered('queue', '')).toEqual(expect.arrayContaining(['pause', 'flush', 'cancel']))
  expect(await offered('queue', '--')).toEqual(expect.arrayContaining(['--json', '--help']))
  expect(await offered('queue', 'pause', '--')).toEqual(expect.arrayContaining(['--destination', '--reason']))
})

test.each(['bash', 'zsh', 'fish'])('%s accepts the syntax of its script', async (shell) => {
  const script = await scriptFor(shell)
  expect(script).toMatch(/tenant delete/)
  expect(script).not.toMatch(/delivery-process/)
  if (!exists(shell)) return
  const { stderr } = spawnSync(shell, ['-n'], { input: script, encoding: 'utf8' })
  expect(stderr).toBe('')
})

test('an unknown shell is a usage error', async () => {
  expect(await runHere(['completion', 'tcsh'], {})).toBe(2)
})
