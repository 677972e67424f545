/** Output of `postrider bounce parse` for a person and for a program. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { runHere } from '../support/run-command.ts'

const corpus = join(process.cwd(), 'test/corpus/reports')
let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'reports-'))
})
afterAll(() => rm(folder, { recursive: true }))

/** The command gets only output functions: a command that asked for the database would fail. */
async function run(...words: string[]) {
  const printed: string[] = []
  const errors: string[] = []
  const told = vi.spyOn(console, 'error').mockImplementation((text: string) => void errors.push(text))
  try {
    const code = await runHere(['bounce', 'parse', ...words], { print: (text) => void printed.push(text) })
    return { code, lines: printed.join('\n').split('\n'), errors: errors.join('\n') }
  } finally {
    told.mockRestore()
  }
}

describe('postrider bounce parse', () => {
  test('prints a line of JSON for each file, with the documented keys', async () => {
    const { code, lines } = await run(join(corpus, 'postfix-unknown-user.eml'), join(corpus, 'jmrp.eml'), '--json')
    expect(code).toBe(0)
    const [bounce, complaint] = lines.map((line) => JSON.parse(line))
    expect(bounce).toEqual({
      file: join(corpus, 'postfix-unknown-user.eml'),
      kind: 'bounce',
      recipient: 'ann@example.org',
      status: '5.1.1',
      classification: 'invalid_recipient',
      fault: 'recipient',
      permanent: true,
      originalMessageId: expect.stringMatching(/@mail\.shop\.example$/),
      reason: '550 5.1.1 <ann@example.org>: Recipient address rejected: User unknown in virtual mailbox table',
    })
    expect(complaint).toMatchObject({ kind: 'complaint', recipient: 'jm@hotmail.example', classification: null, permanent: false })
  })

  test('reads all files of a folder, and lists at the end with exit code 1 those that could not be read', async () => {
    await writeFile(join(folder, 'a.eml'), 'From: ann@example.org\nSubject: hello\n\nhi\n')
    await writeFile(join(folder, 'b.eml'), '')
    const { code, lines, errors } = await run(folder, join(folder, 'missing.eml'), '--json')
    expect(code).toBe(1)
    expect(lines.map((line) => JSON.parse(line).kind)).toEqual(['other', 'other'])
    expect(errors).toMatch(/cannot read .*missing\.eml/)
  })

  test('prints a table for people, with no control character from the report', async () => {
    await writeFile(
      join(folder, 'c.eml'),
      'From: mailer-daemon@x.example\nSubject: failure notice\n\n<ann@example.org>:\n550 5.1.1 \u001b[31munknown user\n',
    )
    const { code, lines } = await run(join(folder, 'c.eml'))
    expect(code).toBe(0)
    expect(lines.join('\n')).not.toContain('\u001b')
    expect(lines[1]).toMatch(/^bounce +ann@example\.org +5\.1\.1 +invalid_recipient, permanent/)
  })

  test('needs a file, and explains itself', async () => {
    expect((await run()).code).toBe(2)
    const { code, lines } = await run('--help')
    expect(code).toBe(0)
    expect(lines.join('\n')).toContain('postrider bounce parse FILE... [--json]')
  })
})
