/** `postrider classify` with text and JSON output: replies in, classifications out, line by line. */
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { Readable } from 'node:stream'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import { classifyLines } from './classify.ts'

const run = promisify(execFile)

async function printed(input: string | Buffer | readonly Buffer[], json = true): Promise<{ lines: string[]; bad: number }> {
  const lines: string[] = []
  const chunks = typeof input === 'string' ? [Buffer.from(input)] : Buffer.isBuffer(input) ? [input] : input
  const bad = await classifyLines(Readable.from(chunks), json, (line) => lines.push(line))
  return { lines, bad }
}

const one = (reply: unknown) => `${JSON.stringify(reply)}\n`
const full = '{"classification":"mailbox_full","classificationCode":20,"fault":"recipient","permanent":true}'
const unknown = '{"classification":"invalid_recipient","classificationCode":10,"fault":"recipient","permanent":false}'

/** Runs the command as a process, without a database or any setting. */
async function command(input: string, ...words: string[]) {
  const running = run(process.execPath, ['bin/postrider.js', 'classify', ...words], { env: {} })
  running.child.stdin?.end(input)
  try {
    return { code: 0, ...(await running) }
  } catch (error) {
    const { code, stdout, stderr } = error as { code: number; stdout: string; stderr: string }
    return { code, stdout, stderr }
  }
}

describe('classify', () => {
  test('each reply gives a line with these four members, in the same order', async () => {
    const input =
      one({ code: 552, enhanced: '5.2.2', text: '552 5.2.2 mailbox full' }) + one({ code: 450, enhanced: '4.1.1', text: 'no such user' })
    expect(await printed(input)).toEqual({ lines: [full, unknown], bad: 0 })
  })

  test('codes may be null or missing and stand in the text only', async () => {
    const input = one({ code: null, enhanced: null, text: '550 5.7.1 mailbox full' }) + one({ text: '450 4.1.1 no such user' })
    expect((await printed(input)).lines).toEqual([full, unknown])
  })

  test('the last line needs no end, ends may be CRLF, and empty lines are passed over', async () => {
    const input = `${one({ text: '552 mailbox full' }).trim()}\r\n\n  \n${one({ text: '450 no such user' }).trim()}`
    expect((await printed(input)).lines).toEqual([full, unknown])
  })

  test('it makes no difference where the input is cut, even within a letter', async () => {
    const whole = Buffer.from(one({ text: '552 Boîte pleine' }) + one({ text: '450 Пользователь не найден' }))
    const pieces = Array.from(whole, (octet) => Buffer.from([octet]))
    expect((await printed(pieces)).lines).toEqual([full, unknown])
  })

  test.each([
    ['not JSON', 'the line is not a JSON object'],
    ['[1]', 'the line is not a JSON object'],
    ['{"code":550}', 'text is missing or not a string'],
    ['{"code":"550","text":"x"}', 'code is not null or a number from 200 to 599'],
    ['{"code":5500,"text":"x"}', 'code is not null or a number from 200 to 599'],
    ['{"enhanced":5,"text":"x"}', 'enhanced is not null or a string'],
  ])('a line that is no reply gives an error with its number, and the others are classified: %s', async (line, error) => {
    const reply = one({ text: '552 mailbox full' })
    expect(await printed(`${reply}\n${line}\n${reply}`)).toEqual({ lines: [full, JSON.stringify({ error, line: 3 }), full], bad: 1 })
  })

  test('a line that is too long is not kept, and the next one is read', async () => {
    const long = `${JSON.stringify({ text: 'a'.repeat(400_000) })}\n`
    const { lines, bad } = await printed(long + one({ text: '552 mailbox full' }))
    expect(lines).toEqual([JSON.stringify({ error: 'the line is longer than 400000 bytes', line: 1 }), full])
    expect(bad).toBe(1)
  })

  test('people get a table, without the control characters of strangers', async () => {
    const { lines } = await printed(`${one({ text: '552 \u001b[31mmailbox\nfull' })}x\n`, false)
    expect(lines).toEqual([
      'classification          code  fault                  reply',
      'mailbox_full            20    recipient   permanent  552  [31mmailbox full',
      'line 2: the line is not a JSON object',
    ])
  })
})

describe('the process', () => {
  test('reads standard input without a database; a bad line makes it exit with 1', async () => {
    const good = one({ text: '552 mailbox full' })
    expect(await command(good, '--json')).toMatchObject({ code: 0, stdout: `${full}\n` })
    const mixed = await command(`${good}x\n`, '--json')
    expect(mixed).toMatchObject({ code: 1, stdout: `${full}\n{"error":"the line is not a JSON object","line":2}\n` })
    expect(mixed.stderr).toContain('1 line is not a reply')
  })

  test('prints the output that docs/delivery.md promises, and the example there works', async () => {
    const [, reply = ''] = /echo '(.*)' \| postrider classify --json/.exec(readFileSync('docs/delivery.md', 'utf8')) ?? []
    expect(await command(reply, '--json')).toMatchObject({ stdout: `${full}\n` })
  })

  test('a whole corpus goes through in one call, a line for each', async () => {
    const corpus = readFileSync('test/corpus/replies/servers.jsonl', 'utf8')
    const { code, stdout } = await command(corpus, '--json')
    expect(code).toBe(0)
    expect(stdout.trim().split('\n')).toHaveLength(corpus.trim().split('\n').length)
  })
})
