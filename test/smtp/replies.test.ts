/** The result of each reply for each recipient, over real sockets. */
import fc from 'fast-check'
import { afterEach, describe, expect, test } from 'vitest'
import { parseAddress } from '#mail'
import { isFitForCommand } from '../../src/smtp/mail-command.ts'
import { type FakeMx, type FakeMxOptions, startFakeMx } from '../support/fake-mx.ts'
import { message, open, outcomes } from './send-message.ts'

const running: FakeMx[] = []
afterEach(async () => {
  for (const mx of running.splice(0)) await mx.close()
})

async function peer(options: FakeMxOptions = {}): Promise<FakeMx> {
  const mx = await startFakeMx(options)
  running.push(mx)
  return mx
}

describe.each([
  ['with PIPELINING', {}],
  ['without PIPELINING', { extensions: ['8BITMIME', 'SIZE'] }],
])('%s', (_, base: FakeMxOptions) => {
  test('a message arrives as it was given, and the transcript has the conversation', async () => {
    const mx = await peer(base)
    const connection = await open(mx)
    const result = await connection.transact(message({ data: Buffer.from('Subject: x\r\n\r\n..dot\r\n') }))
    expect(result.recipients).toEqual([{ state: 'accepted', reply: { code: 250, enhanced: '2.0.0', text: '250 2.0.0 queued' } }])
    expect(mx.messages[0]?.octets.toString()).toBe('Subject: x\r\n\r\n.dot\r\n')
    expect(connection.secure).toBe(false)
    for (const line of [
      'S: 220 fake.test ESMTP',
      'C: EHLO us.test',
      'C: RCPT TO:<a@x.test>',
      'C: <21 octets of message>',
      'S: 250 2.0.0 queued',
    ]) {
      expect(result.transcript.split('\n')).toContain(line)
    }
    const second = await connection.transact(message())
    expect(second.transcript).not.toContain('EHLO')
    expect(result.transcript).toMatch(/\(greeted after \d+ ms, ready after \d+ ms\)/)
    expect(second.transcript).toMatch(/\(replies: mail after \d+ ms, rcpt after \d+ ms, data after \d+ ms, final after \d+ ms\)$/)
  })

  test('a recipient with a quoted local part is written as it is', async () => {
    const mx = await peer(base)
    const result = await (await open(mx)).transact(message({ recipients: ['"a b"@x.test', '"a@\\"<b"@x.test'] }))
    expect(outcomes(result)).toEqual(['accepted 250', 'accepted 250'])
    expect(result.transcript).toContain('C: RCPT TO:<"a b"@x.test>\n')
    expect(result.transcript).toContain('C: RCPT TO:<"a@\\"<b"@x.test>\n')
  })

  test('each recipient has its own outcome, and those accepted get the message', async () => {
    const replies: Record<string, string> = { 'b@x.test': '550 5.1.1 no', 'c@x.test': '452 4.5.3 too many' }
    const mx = await peer({ ...base, script: ({ stage, argument }) => (stage === 'rcpt' ? replies[argument] : undefined) })
    const result = await (await open(mx)).transact(message({ recipients: ['a@x.test', 'b@x.test', 'c@x.test', 'd@x.test'] }))
    expect(outcomes(result)).toEqual(['accepted 250', 'refused rcpt 550', 'refused rcpt 452', 'accepted 250'])
    expect(mx.messages.map((one) => one.recipients)).toEqual([['a@x.test', 'd@x.test']])
  })

  test.each([
    ['mail', '451 4.7.1 later', 'refused mail 451'],
    ['rcpt', '550 5.1.1 no such user', 'refused rcpt 550'],
    ['data', '554 5.5.1 no', 'refused data 554'],
    ['content', '552 5.3.4 too big', 'refused final 552'],
  ] as const)('a refusal at %s (%s) is of that message only', async (stage, reply, outcome) => {
    let isFirst = true
    const mx = await peer({
      ...base,
      script(event) {
        if (event.stage !== stage || !isFirst) return undefined
        isFirst = false
        return reply
      },
    })
    const connection = await open(mx)
    const both = await Promise.all([connection.transact(message()), connection.transact(message({ recipients: ['next@x.test'] }))])
    expect(both.map(outcomes)).toEqual([[outcome], ['accepted 250']])
    expect(mx.messages.at(-1)?.recipients).toEqual(['next@x.test'])
    expect(connection.usable).toBe(true)
  })

  test('the code of a reply, not its words, decides that the message was taken', async () => {
    const mx = await peer({ ...base, script: ({ stage }) => (stage === 'content' ? '250 5.7.1 rejected' : undefined) })
    expect(outcomes(await (await open(mx)).transact(message()))).toEqual(['accepted 250'])
  })

  test('421 at any stage is the answer to all that is unanswered, and the end of the connection', async () => {
    for (const [stage, told] of [
      ['mail', 'mail'],
      ['rcpt', 'rcpt'],
      ['data', 'data'],
      ['content', 'final'],
    ] as const) {
      const mx = await peer({
        ...base,
        script: (event) => (event.stage === stage ? { reply: '421 4.3.2 closing', close: true } : undefined),
      })
      const connection = await open(mx)
      const both = await Promise.all([
        connection.transact(message({ recipients: ['a@x.test', 'b@x.test'] })),
        connection.transact(message()),
      ])
      expect(both.map(outcomes)).toEqual([[`refused ${told} 421`, `refused ${told} 421`], ['failed mail dropped']])
      expect(connection.usable).toBe(false)
      await connection.closed
    }
  })

  test('a connection dropped before the final dot sent nothing; dropped after it, the outcome is unknown', async () => {
    for (const [stage, outcome] of [
      ['mail', 'failed mail dropped'],
      ['rcpt', 'failed rcpt dropped'],
      ['data', 'failed data dropped'],
      ['content', 'unknown final dropped'],
    ] as const) {
      const mx = await peer({ ...base, script: (event) => (event.stage === stage ? { close: true } : undefined) })
      expect(outcomes(await (await open(mx)).transact(message()))).toEqual([outcome])
    }
  })

  test('silence ends with the time limit of its stage', async () => {
    for (const [stage, outcome] of [
      ['mail', 'failed mail timeout'],
      ['rcpt', 'failed rcpt timeout'],
      ['data', 'failed data timeout'],
      ['content', 'unknown final timeout'],
    ] as const) {
      const mx = await peer({ ...base, script: (event) => (event.stage === stage ? { silent: true } : undefined) })
      const connection = await open(mx, { limits: { commandMs: 40, dataMs: 40, finalReplyMs: 60 } })
      expect(outcomes(await connection.transact(message()))).toEqual([outcome])
    }
  })

  test('a peer that takes no more content is given up before the dot', async () => {
    const mx = await peer({
      extensions: base.extensions ?? ['PIPELINING'],
      script: ({ stage }) => (stage === 'data' ? { reply: '354 go', silent: true } : undefined),
    })
    const connection = await open(mx, { limits: { blockMs: 60 } })
    expect(outcomes(await connection.transact(message({ data: bytes(30_000_000) })))).toEqual(['failed content timeout'])
  })

  test.each([
    ['mail', '354 what', 'failed mail protocol'],
    ['data', '250 what', 'failed data protocol'],
    ['data', '250-what\n354 go', 'failed data protocol'],
    ['content', '354 again', 'unknown final protocol'],
    ['content', 'HTTP/1.1 200 OK', 'unknown final protocol'],
  ] as const)('out of step at %s (%s) closes, and nothing is sent', async (stage, reply, outcome) => {
    const mx = await peer({ ...base, script: (event) => (event.stage === stage ? reply : undefined) })
    const connection = await open(mx)
    expect(outcomes(await connection.transact(message()))).toEqual([outcome])
    expect(connection.usable).toBe(false)
    expect(mx.messages).toEqual([])
  })

  test('a message that must not be finished is not: no final dot, the connection given up', async () => {
    for (const octets of [100, 600_000]) {
      const mx = await peer(base)
      const connection = await open(mx)
      const held = connection.transact(message({ data: bytes(octets), mayCommitTransaction: () => false }))
      const behind = connection.transact(message())
      expect(outcomes(await held)).toEqual(['failed content aborted'])
      expect(outcomes(await behind)).toEqual(['failed mail dropped'])
      await connection.closed
      expect(mx.messages).toEqual([])
    }
  })
})

const bytes = (octets: number) => Buffer.from('0123456789abc\r\n'.repeat(Math.ceil(octets / 15)))

describe('a conversation', () => {
  test('content of any size around the write limits arrives whole, in order, each once', async () => {
    const mx = await peer()
    const connection = await open(mx)
    const sizes = [0, 15, 65_520, 262_140, 262_155, 327_675, 3_000_000, 15]
    const results = await Promise.all(sizes.map((size) => connection.transact(message({ data: bytes(size) }))))
    expect(results.flatMap(outcomes)).toEqual(sizes.map(() => 'accepted 250'))
    expect(mx.messages.map((one) => one.wire.equals(bytes(one.wire.length)) && one.wire.length)).toEqual(
      sizes.map((size) => bytes(size).length),
    )
    expect(mx.connections).toBe(1)
  })

  test('fields of its own go out in front of the content, and count as its octets', async () => {
    const mx = await peer({ extensions: ['PIPELINING', 'SIZE 400000'] })
    const connection = await open(mx)
    const fieldsOnTop = Buffer.from('X-Mark: one\r\n\tand more\r\n')
    const sizes = [15, 262_140, 262_155, 327_675]
    const results = await Promise.all(sizes.map((size) => connection.transact(message({ fieldsOnTop, data: bytes(size) }))))
    const wires = sizes.map((size) => Buffer.concat([fieldsOnTop, bytes(size)]))
    expect(mx.messages.map((one, index) => one.wire.equals(wires[index] as Buffer))).toEqual(sizes.map(() => true))
    for (const [index, { transcript }] of results.entries()) {
      const octets = wires[index]?.length
      expect(transcript).toContain(` SIZE=${octets}`)
      expect(transcript).toContain(`<${octets} octets of message>`)
    }
    const size = Math.floor(400_000 / 15) * 15
    expect(outcomes(await connection.transact(message({ data: bytes(size) })))).toEqual(['accepted 250'])
    expect(outcomes(await connection.transact(message({ fieldsOnTop, data: bytes(size) })))).toEqual(['failed mail size'])
  })

  test('354 although every recipient was refused gets only the dot, and the refusals stand (RFC 2920)', async () => {
    const mx = await peer({ script: ({ stage }) => (stage === 'rcpt' ? '550 5.1.1 no' : stage === 'data' ? '354 go' : undefined) })
    const connection = await open(mx)
    const result = await connection.transact(message())
    expect(outcomes(result)).toEqual(['refused rcpt 550'])
    expect(mx.messages.map((one) => one.wire.length)).toEqual([0])
    expect(connection.usable).toBe(true)
  })

  test('a reply while content is being sent ends it before the dot', async () => {
    const mx = await peer({ script: ({ stage }) => (stage === 'data' ? '354 go\n552 5.3.4 enough' : undefined) })
    // The second line is a reply of its own; it arrives before the connection can take a block of content.
    const connection = await open(mx)
    const [outcome] = outcomes(await connection.transact(message({ data: bytes(8_000_000) })))
    expect(outcome).toBe('refused content 552')
    expect(mx.messages).toEqual([])
  })

  test('a connection dropped in the middle of the content sent nothing', async () => {
    const mx = await peer({
      extensions: ['PIPELINING'],
      script: ({ stage }) => (stage === 'data' ? { reply: '354 go', close: true } : undefined),
    })
    const connection = await open(mx)
    expect(outcomes(await connection.transact(message({ data: bytes(30_000_000) })))).toEqual(['failed content dropped'])
  })

  test('a reply too many, taken for an answer to the next message, refuses no recipient: out of step is found at DATA', async () => {
    const mx = await peer({ script: ({ stage }) => (stage === 'content' ? '250 ok\n552 5.3.4 and one too many' : undefined) })
    const connection = await open(mx, { limits: { commandMs: 500 } })
    const both = await Promise.all([connection.transact(message()), connection.transact(message())])
    expect(both.map(outcomes)).toEqual([['accepted 250'], ['failed data protocol']])
    expect(connection.usable).toBe(false)
  })

  test('a message that the peer cannot take is not begun', async () => {
    const mx = await peer({ extensions: ['PIPELINING', 'SIZE 100'] })
    const connection = await open(mx)
    const large = await connection.transact(message({ data: bytes(150) }))
    expect(outcomes(large)).toEqual(['failed mail size'])
    expect(large.recipients[0]?.state === 'failed' && large.recipients[0].failure.message).toMatch(/size/)
    expect(outcomes(await connection.transact(message({ needs8bit: true })))).toEqual(['failed mail eightbitmime'])
    expect(outcomes(await connection.transact(message({ recipients: ['ä@x.test'] })))).toEqual(['failed mail smtputf8'])
    expect(outcomes(await connection.transact(message()))).toEqual(['accepted 250'])
  })

  test.each(['a@x.test>\r\nRCPT TO:<evil@x.test', 'a b@x.test', 'a@x.test\n', 'a\0@x.test', '', '<a@x.test>'])(
    '%j never reaches the wire',
    async (bad) => {
      const said: string[] = []
      const mx = await peer({
        script: ({ argument }) => {
          said.push(argument)
          return undefined
        },
      })
      const connection = await open(mx)
      expect(outcomes(await connection.transact(message({ recipients: [bad, 'good@x.test'] })))).toEqual([
        'failed rcpt protocol',
        'accepted 250',
      ])
      expect(mx.messages.map((one) => one.recipients)).toEqual([['good@x.test']])
      const before = said.length
      expect(outcomes(await connection.transact(message({ recipients: [bad] })))).toEqual(['failed rcpt protocol'])
      if (bad !== '') expect(outcomes(await connection.transact(message({ returnPath: bad })))).toEqual(['failed mail protocol'])
      expect(said).toHaveLength(before)
    },
  )

  test('an idle connection that the peer ends is only unusable', async () => {
    const mx = await peer()
    const connection = await open(mx)
    await connection.transact(message())
    await mx.close()
    await connection.closed
    expect(connection.usable).toBe(false)
    expect(outcomes(await connection.transact(message()))).toEqual(['failed mail dropped'])
  })

  test('an idle connection on which the peer greets again is only unusable', async () => {
    const mx = await peer({ script: ({ stage }) => (stage === 'content' ? '250 ok\n220 hello again' : undefined) })
    const connection = await open(mx)
    expect(outcomes(await connection.transact(message()))).toEqual(['accepted 250'])
    await connection.closed
    expect(connection.usable).toBe(false)
  })

  test('QUIT waits for pending replies, delays nothing, and needs no answer', async () => {
    const mx = await peer({ script: ({ stage }) => (stage === 'quit' ? '221 bye' : undefined) })
    const connection = await open(mx)
    const pending = [connection.transact(message()), connection.transact(message())]
    connection.quit()
    expect(connection.usable).toBe(false)
    expect((await Promise.all(pending)).flatMap(outcomes)).toEqual(['accepted 250', 'accepted 250'])
    await connection.closed
  })

  test('giving up answers everything at once', async () => {
    const mx = await peer({
      script({ stage }) {
        if (stage === 'content') connection.destroy()
        return undefined
      },
    })
    const connection = await open(mx)
    const all = await Promise.all([connection.transact(message()), connection.transact(message())])
    expect(all.flatMap(outcomes)).toEqual(['unknown final aborted', 'failed mail aborted'])
    await connection.closed
  })

  test('a transcript stays within 8 KB and has no content of the message', async () => {
    const mx = await peer({ script: ({ stage }) => (stage === 'rcpt' ? `550 5.1.1 ${'x'.repeat(1500)}` : undefined) })
    const recipients = Array.from({ length: 50 }, (_, index) => `r${index}@x.test`)
    const result = await (await open(mx)).transact(message({ recipients }))
    expect(result.transcript.length).toBeLessThanOrEqual(8192)
    expect(result.recipients).toHaveLength(50)
    const taken = await (await open(await peer())).transact(
      message({ data: Buffer.from('Subject: between us\r\n\r\nand nobody else\r\n') }),
    )
    expect(taken.transcript).toContain('octets of message>')
    expect(taken.transcript).not.toMatch(/between us|nobody else/)
  })
})

test('every address that is accepted is fit for a command', () => {
  const quoted = fc
    .string({ unit: fc.constantFrom('a', 'b', '.', '@', '<', '>', ',', ';', ' ', '\\', '"', 'ü'), minLength: 1, maxLength: 12 })
    .map((text) => `"${text}"@x.test`)
  fc.assert(
    fc.property(fc.oneof(quoted, fc.emailAddress(), fc.string({ unit: 'binary', maxLength: 80 })), (text) => {
      const address = parseAddress(text)
      if (address) expect(isFitForCommand(address.text)).toBe(true)
    }),
    { numRuns: 2000 },
  )
})
