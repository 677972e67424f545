/** The operator's commands for transports, with a database of the test's own. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { getTransport } from '#delivery'
import { startService } from '../support/in-process-service.ts'
import { onDatabaseOf, runHere } from '../support/run-command.ts'

let service: Awaited<ReturnType<typeof startService>>
let folder: string
beforeAll(async () => {
  service = await startService()
  folder = await mkdtemp(join(tmpdir(), 'postrider-transports-'))
})
afterAll(async () => {
  await service.stop()
  await rm(folder, { recursive: true })
})
afterEach(() => vi.restoreAllMocks())

async function ran(...words: string[]): Promise<{ code: number; text: string }> {
  const printed: string[] = []
  const code = await runHere(['transport', ...words], { ...onDatabaseOf(service), print: (text) => void printed.push(text) })
  return { code, text: printed.join('\n') }
}

const passwordOf = async (name: string) => (await getTransport(service.db, service.secrets, name)).auth?.password
const url = 'smtp://user@smtp.old.example:587'

describe('postrider transport', () => {
  test('takes the password from standard input, which works for a file that only root can read', async () => {
    const stdin = Readable.from([Buffer.from('from the '), Buffer.from('pipe\n')]) as typeof process.stdin
    vi.spyOn(process, 'stdin', 'get').mockReturnValue(stdin)
    const { code, text } = await ran('add', 'piped', url, '--password-file', '-', '--json')
    expect(code).toBe(0)
    expect(JSON.parse(text)).toMatchObject({ name: 'piped', host: 'smtp.old.example', port: 587, tls: 'required', user: 'user' })
    expect(await passwordOf('piped')).toBe('from the pipe')
  })

  test('takes the password from a file, and keeps it when other settings change', async () => {
    const file = join(folder, 'password')
    await writeFile(file, 'from the file\n')
    expect((await ran('add', 'filed', url, '--password-file', file)).code).toBe(0)
    expect((await ran('set', 'filed', '--rate', '5')).text).toContain('5 messages/s')
    expect(await passwordOf('filed')).toBe('from the file')
  })

  test('gives a transport a share, which the list shows, and removes it', async () => {
    expect((await ran('share', 'filed', '95')).code).toBe(0)
    expect((await ran('list')).text).toMatch(/95% filed/)
    expect((await ran('share', 'filed', '0')).code).toBe(0)
    expect((await ran('remove', 'filed')).code).toBe(0)
    expect((await ran('list')).text).not.toContain('filed')
  })

  test.each([
    ['an empty file', ['add', 'empty', url, '--password-file', '/dev/null']],
    ['a login without a password', ['add', 'bare', url]],
    ['a name that exists', ['add', 'piped', url, '--password-file', '/proc/version']],
    ['a transport that does not exist', ['set', 'missing', '--rate', '5']],
  ])('refuses %s', async (_, words) => {
    vi.spyOn(console, 'error').mockReturnValue()
    expect((await ran(...words)).code).toBe(2)
  })
})
