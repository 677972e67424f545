/**
 * Python reads From fields as Postrider does: its old and new readers of addresses, strict and not, and its readers of messages. Needs
 * python3.
 */
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { buildMessage, type Mailbox, parseSender } from '#mail'
import { heldFrom } from '../mail/from-field.ts'
import { fromFields, isSame, readers } from '../mail/generate-from-fields.ts'

const fieldCount = 100_000
const script = fileURLToPath(new URL('./read-from.py', import.meta.url))

test('of a hundred thousand From fields, and those of the corpus, no accepted one names another address to another reader', {
  timeout: 600_000,
}, () => {
  const accepted = new Map<string, string>()
  for (const field of fromFields(2, fieldCount)) {
    const held = heldFrom(field)
    if (held) accepted.set(held.sent, held.address)
  }
  expect(accepted.size).toBeGreaterThan(2000)
  for (const line of readFileSync('test/corpus/from/fields.jsonl', 'utf8').trim().split('\n')) {
    const { field, address } = JSON.parse(line) as { field: string; address: string }
    accepted.set(field, address)
  }
  const input = [...accepted.keys()].map((field) => JSON.stringify(field)).join('\n')
  const { stdout, stderr } = spawnSync('python3', [script], { input, encoding: 'utf8', maxBuffer: 256 * 1_048_576, timeout: 500_000 })
  expect(stderr).toBe('')
  const answers = stdout.trim().split('\n')
  expect(answers.length).toBe(accepted.size)
  const differing: string[] = []
  let agreed = 0
  for (const [index, [field, address]] of [...accepted].entries()) {
    const here = Object.entries(readers).map(([reader, read]) => [reader, read(field)] as const)
    for (const [reader, found] of [...here, ...Object.entries(JSON.parse(answers[index] as string) as Record<string, string[]>)])
      for (const other of found) {
        if (isSame(other, address)) agreed++
        else differing.push(`${reader} reads ${other} and we ${address} in ${JSON.stringify(field)}`)
      }
  }
  expect(differing.slice(0, 40)).toEqual([])
  // Readers that find no address would agree with any result.
  expect(agreed).toBeGreaterThan(accepted.size * 8)
})

test('Python shows a file name that looks like an encoded word as it was given', () => {
  const filename = '=?utf-8?B?w7w=?=.pdf'
  const { octets } = buildMessage({
    from: parseSender('hello@own.example') as Mailbox,
    to: ['ann@example.org'],
    cc: [],
    subject: 'Hello',
    dateMs: 0,
    messageId: '<a@own.example>',
    headers: [],
    attachments: [{ filename, contentType: 'application/pdf', content: Buffer.from('x') }],
    boundarySeed: 'seed',
  })
  const program =
    'import sys, email, email.policy\nm = email.message_from_binary_file(sys.stdin.buffer, policy=email.policy.default)\nprint([p.get_filename() for p in m.iter_attachments()])'
  expect(spawnSync('python3', ['-c', program], { input: octets, encoding: 'utf8' }).stdout.trim()).toBe(`['${filename}']`)
})
