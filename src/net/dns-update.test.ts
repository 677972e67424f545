import { createServer } from 'node:net'
import fc from 'fast-check'
import { afterEach, describe, expect, test } from 'vitest'
import { systemClock } from '#base'
import { openUpdateServer } from './dns-update.ts'
import { decodeMessage, textOfData, type UpdateType, updateTypes, wireData, wireMessage, wireRecord } from './dns-wire.ts'
import { readSignedAnswer, signMessage, type TsigKey } from './tsig.ts'

const key: TsigKey = { name: 'postrider', algorithm: 'hmac-sha256', secret: Buffer.alloc(32, 7) }
const nowMs = Date.UTC(2027, 0, 1)

const label = fc.stringMatching(/^[a-z0-9_]([a-z0-9-]{0,10}[a-z0-9])?$/)
const name = fc.array(label, { minLength: 1, maxLength: 6 }).map((labels) => labels.join('.'))
const texts: Record<UpdateType, fc.Arbitrary<string>> = {
  A: fc.ipV4(),
  AAAA: fc.tuple(fc.nat(65_535), fc.nat(65_535)).map(([one, other]) => `2001:db8::${one.toString(16)}:${(other || 1).toString(16)}`),
  MX: fc.tuple(fc.nat(65_535), name).map(([preference, exchange]) => `${preference} ${exchange}`),
  CNAME: name,
  TXT: fc.string({ maxLength: 700, unit: fc.integer({ min: 0, max: 255 }).map((code) => String.fromCharCode(code)) }),
}
const record = fc
  .constantFrom(...(Object.keys(updateTypes) as UpdateType[]))
  .chain((type) => fc.tuple(fc.constant(type), name, texts[type], fc.nat(2 ** 31)))

describe('a DNS message', () => {
  test('has its records as they were written', () => {
    fc.assert(
      fc.property(fc.array(record, { maxLength: 20 }), fc.nat(65_535), (records, id) => {
        const wire = records.map(([type, owner, text, ttlS]) => wireRecord(owner, updateTypes[type], 'IN', ttlS, wireData(type, text)))
        const message = decodeMessage(wireMessage(id, 0, { name: 'zone.example', type: 6 }, [wire]))
        expect(message).toMatchObject({ id, rcode: 0, isResponse: false })
        const read = message.answers.map((one) => [one.name, one.type, textOfData(one.type, one.data), one.ttlS])
        const plain = (type: UpdateType, text: string) => textOfData(updateTypes[type], wireData(type, text))
        expect(read).toEqual(records.map(([type, owner, text, ttlS]) => [owner, updateTypes[type], plain(type, text), ttlS]))
        for (const [type, , text] of records) if (type === 'TXT' || type === 'CNAME' || type === 'MX') expect(plain(type, text)).toBe(text)
      }),
    )
  })

  test('of any octets is read without an endless name, or refused', () => {
    const head = Buffer.from([0, 1, 0x80, 0, 0, 1, 0, 2, 0, 0, 0, 0])
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (given) => {
        try {
          decodeMessage(Buffer.concat([head, given]))
        } catch (error) {
          expect(error).toBeInstanceOf(RangeError)
        }
      }),
    )
    expect(() => decodeMessage(Buffer.concat([head, Buffer.from([0xc0, 12, 0, 0, 0, 0]), Buffer.alloc(60)]))).toThrow('does not end')
  })
})

/** The answer of a server that has the key. */
function answerTo(query: Buffer, mac: Buffer, at = nowMs): Buffer {
  const answer = Buffer.from(wireMessage(query.readUInt16BE(0), 5, { name: 'zone.example', type: 6 }))
  answer[2] = (answer[2] as number) | 0x80
  const length = Buffer.from([mac.length >> 8, mac.length & 0xff])
  // A signature over the request's code and the answer: the same function, with both as the message.
  const { mac: own } = signMessage(Buffer.concat([length, mac, answer]), key, at)
  const signed = signMessage(answer, key, at).octets
  own.copy(signed, signed.length - 6 - own.length)
  return signed
}

describe('a signed answer', () => {
  const query = wireMessage(77, 5, { name: 'zone.example', type: 6 })
  const asked = () => ({ id: 77, key, mac: signMessage(query, key, nowMs).mac, nowMs })

  test('counts with the right signature, and with no octet changed', () => {
    const right = answerTo(query, asked().mac)
    expect(readSignedAnswer(right, asked())).toMatchObject({ kind: 'answer', message: { rcode: 0 } })
    for (let at = 0; at < right.length; at++) {
      const changed = Buffer.from(right)
      changed[at] = (changed[at] as number) ^ 1
      const read = readSignedAnswer(changed, asked())
      expect(read.kind, `octet ${at}`).toBe('error')
    }
  })

  test('to another request, by another key, of another time or without a signature does not count', () => {
    const right = answerTo(query, asked().mac)
    expect(readSignedAnswer(right, { ...asked(), mac: Buffer.alloc(32) })).toMatchObject({ error: expect.stringContaining('wrong') })
    expect(readSignedAnswer(right, { ...asked(), id: 78 })).toMatchObject({ error: expect.stringContaining('another question') })
    expect(readSignedAnswer(right, { ...asked(), key: { ...key, secret: Buffer.alloc(32) } })).toMatchObject({ kind: 'error' })
    expect(readSignedAnswer(answerTo(query, asked().mac, nowMs - 400_000), asked())).toMatchObject({
      error: expect.stringContaining('clocks'),
    })
    const bare = Buffer.from(query)
    bare[2] = 0xa8
    bare[3] = 5
    expect(readSignedAnswer(bare, asked())).toEqual({ kind: 'error', error: 'the answer is not signed (REFUSED)' })
  })
})

const servers: { close(): void }[] = []
afterEach(() => {
  for (const server of servers.splice(0)) server.close()
})

/** A server that answers each connection with these octets. */
async function serverWith(answer: Buffer | 'silence' | 'hang up'): Promise<number> {
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.on('data', () => {
      if (answer === 'hang up') socket.destroy()
      else if (answer !== 'silence') socket.write(answer)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  servers.push(server)
  return (server.address() as { port: number }).port
}

test.each([
  ['silence' as const, 'no answer'],
  ['hang up' as const, 'closed the connection'],
  [Buffer.from([0, 3, 1, 2, 3]), 'malformed'],
  [Buffer.from([0, 1, 1, 2, 3]), 'more than one answer'],
])('a server that answers with %s is trouble in bounded time', async (answer, problem) => {
  const port = await serverWith(answer)
  const server = openUpdateServer({
    host: '127.0.0.1',
    port,
    zone: 'zone.example',
    key,
    clock: systemClock,
    newId: () => 1,
    timeoutMs: 300,
  })
  expect(await server.update({ prerequisites: [], changes: [] })).toMatchObject({
    kind: 'trouble',
    error: expect.stringContaining(problem),
  })
  expect(await server.read('a.zone.example', 'TXT')).toMatchObject({ kind: 'trouble' })
  server.close()
})
