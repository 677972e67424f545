/**
 * Lines that begin with dots, in any division into chunks: SMTP's doubled dots arrive single (RFC 5321 section 4.5.2) and cost no more than
 * other content.
 */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { openMemoryBudget } from '../../src/inbound/memory-budget.ts'
import { collect } from '../../src/inbound/message-buffer.ts'
import { StrictStream } from '../../src/inbound/strict-stream.ts'

const largest = 4_194_304

/** The stored content of a message that arrives in these chunks, and the commands after it. */
async function received(chunks: readonly Buffer[]): Promise<{ content: Buffer; commands: string[]; writes: number; faults: string[] }> {
  const commands: string[] = []
  const faults: string[] = []
  const stream = new StrictStream(16_384, (fault) => faults.push(fault))
  stream.oncommand = (command, next) => {
    commands.push(command.toString())
    next?.()
  }
  const content = stream.startDataMode()
  let writes = 0
  content.on('data', () => writes++)
  const room = { largest, budget: openMemoryBudget(), address: '192.0.2.1' }
  const all = collect(content, room, (octets) => Promise.resolve(Buffer.from(octets))).finally(() => stream.continue())
  for (const chunk of chunks) await new Promise<void>((resolve) => stream.write(Buffer.from(chunk), () => resolve()))
  return { content: await all, commands, writes, faults }
}

/** Doubles leading dots, as clients do. */
const doubled = (text: string) => text.replace(/^\./gm, '..')
const lines = fc.array(fc.constantFrom('', '.', '..', '...', '.x', 'x', 'x.', 'x.y', 'a longer line of text'), { maxLength: 12 })

function cut(text: string, cuts: readonly number[]): Buffer[] {
  const at = [0, ...cuts.map((one) => one % (text.length + 1)), text.length].sort((a, b) => a - b)
  return at.slice(1).map((end, index) => Buffer.from(text.slice(at[index], end)))
}

describe('dots at the beginning of lines', () => {
  test('come back as they were, in pieces of any size, and the command behind them is read', async () => {
    await fc.assert(
      fc.asyncProperty(lines, fc.array(fc.nat(), { maxLength: 40 }), async (some, cuts) => {
        const text = some.map((line) => `${line}\r\n`).join('')
        const chunks = cut(`${doubled(text)}.\r\nNOOP\r\n`, cuts).filter((chunk) => chunk.length > 0)
        const found = await received(chunks)
        expect({ ...found, content: found.content.toString(), writes: 0 }).toEqual({
          content: text,
          commands: ['NOOP'],
          writes: 0,
          faults: [],
        })
      }),
      { numRuns: 1500 },
    )
  })

  test('octet by octet, a message comes back whole and two commands behind it are read', async () => {
    const text = '.\r\n..\r\n\r\n.x\r\nx\r\n...\r\n'
    const found = await received([...Buffer.from(`${doubled(text)}.\r\nNOOP\r\nRSET\r\n`)].map((octet) => Buffer.from([octet])))
    expect([found.content.toString(), found.commands]).toEqual([text, ['NOOP', 'RSET']])
  })

  test('cost as many pieces as chunks arrive, not one for each dot', async () => {
    const text = '..\r\n'.repeat(250_000)
    const chunks = Array.from({ length: 16 }, (_, nth) => Buffer.from(text.slice(nth * 62_500, (nth + 1) * 62_500)))
    const { content, writes } = await received([...chunks, Buffer.from('.\r\n')])
    expect(content.length).toBe(750_000)
    expect(writes).toBeLessThanOrEqual(chunks.length + 1)
  })

  test('a message of single octets comes back whole, however often the room for it has to grow', async () => {
    const octets = Buffer.from(`${'x'.repeat(98)}\r\n`.repeat(500))
    const { content } = await received([...octets].map((octet) => Buffer.from([octet])).concat(Buffer.from('.\r\n')))
    expect(content.equals(octets)).toBe(true)
  })
})
