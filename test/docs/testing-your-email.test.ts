/** The newcomers' page is true: its programs are extracted from it and run against the service as `npm start` starts it. */
import { execFile, execFileSync } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type ServiceProcess, startServiceProcess } from '../support/spawned-service.ts'

const page = await readFile(new URL('../../docs/testing-your-email.md', import.meta.url), 'utf8')

function blockOf(language: string): string {
  const blocks = [...page.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)].filter(([, name]) => name === language)
  expect(blocks).toHaveLength(1)
  return blocks[0]?.[2] as string
}

const isThere = (program: string): boolean => {
  try {
    execFileSync(program, ['--version'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

let service: ServiceProcess
let folder: string
beforeAll(async () => {
  const settings = [...page.matchAll(/\b(POSTRIDER_\w+_LIMIT)=(\w+)/g)].map(([, name, value]) => [name, value])
  service = await startServiceProcess(Object.fromEntries(settings))
  folder = await mkdtemp(join(tmpdir(), 'postrider-page-'))
})
afterAll(async () => {
  await service[Symbol.asyncDispose]()
  await rm(folder, { recursive: true })
})

const programs = [
  {
    language: 'ts',
    name: 'email.test.ts',
    program: process.execPath,
    words: ['--test', 'email.test.ts'],
    says: /pass 5\b[\s\S]*fail 0\b/,
    needs: 'node',
  },
  {
    language: 'python',
    name: 'test_email.py',
    program: 'python3',
    words: ['-m', 'unittest', 'test_email.py'],
    says: /Ran 5 tests[\s\S]*OK/,
    needs: 'python3',
  },
  { language: 'sh', name: 'email.sh', program: 'sh', words: ['email.sh'], says: /"deleted":[1-9]/, needs: 'curl' },
]

test.for(programs)('the program in $language works as the page promises', { timeout: 90_000 }, async (one, { skip }) => {
  const { language, name, program, words, says, needs } = one
  if (!isThere(needs)) skip(`${needs} is not on this machine`)
  await writeFile(join(folder, name), blockOf(language))
  const { PATH, HOME } = process.env
  const env = { PATH, HOME, POSTRIDER_URL: service.url, POSTRIDER_TEST_KEY: service.testKey }
  const { stdout, stderr } = await promisify(execFile)(program, words, { cwd: folder, env })
  expect(stdout + stderr).toMatch(says)
})

test('the page names every address that decides something', () => {
  for (const name of 'delivered softfail hardfail mailbox-full spam-block bounce complaint suppressed opened clicked timeout'.split(' '))
    expect(page).toContain(`\`${name}\``)
})
