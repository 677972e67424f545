import { type AddressInfo, createServer } from 'node:net'
import { type ConnectionOptions, connect } from 'node:tls'
import fc from 'fast-check'
import { describe, expect, test, vi } from 'vitest'
import { ClientHelloReader, maxHelloOctets } from './client-hello.ts'

/** The first octets that Node's TLS client sends. */
async function helloOf(options: ConnectionOptions): Promise<Buffer> {
  const { promise, resolve } = Promise.withResolvers<Buffer>()
  const server = createServer((socket) => {
    let octets = Buffer.alloc(0)
    socket
      .on('error', () => {})
      .on('data', (piece: Buffer) => {
        octets = Buffer.concat([octets, piece])
        if (octets.length < 5 + octets.readUInt16BE(3)) return
        socket.destroy()
        resolve(octets)
      })
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const client = connect({ host: '127.0.0.1', port: (server.address() as AddressInfo).port, ...options }).on('error', () => {})
  const octets = await promise
  client.destroy()
  server.close()
  return octets
}

const readClientHello = (octets: Buffer) => new ClientHelloReader().read(octets)

/** The same handshake in records of `size` octets (RFC 8446 section 5.1). */
function inRecords(octets: Buffer, size: number): Buffer {
  const handshake = octets.subarray(5)
  const records: Buffer[] = []
  for (let at = 0; at < handshake.length; at += size) {
    const piece = handshake.subarray(at, at + size)
    records.push(Buffer.from([22, 3, 1, piece.length >> 8, piece.length & 0xff]), piece)
  }
  return Buffer.concat(records)
}

describe('a ClientHello', () => {
  test('of a real client has its server name in lower case and its protocols', async () => {
    expect(readClientHello(await helloOf({ servername: 'App.Example.TEST', ALPNProtocols: ['h2', 'http/1.1'] }))).toEqual({
      kind: 'hello',
      serverName: 'app.example.test',
      protocols: ['h2', 'http/1.1'],
    })
    for (const maxVersion of ['TLSv1.2', 'TLSv1.3'] as const) {
      const read = readClientHello(await helloOf({ servername: 'a.test', maxVersion }))
      expect(read).toEqual({ kind: 'hello', serverName: 'a.test', protocols: [] })
    }
    expect(readClientHello(await helloOf({ servername: '' }))).toMatchObject({ kind: 'hello', serverName: undefined })
  })

  test('is incomplete at every length before its end, and in any records', async () => {
    const octets = await helloOf({ servername: 'app.example.test', ALPNProtocols: ['acme-tls/1'] })
    const whole = readClientHello(octets)
    for (let length = 0; length < octets.length; length++)
      expect(readClientHello(octets.subarray(0, length))).toEqual({ kind: 'incomplete' })
    for (const size of [1, 3, 7, 100, octets.length]) {
      const records = inRecords(octets, size)
      expect(readClientHello(records)).toEqual(whole)
      expect(readClientHello(records.subarray(0, -1))).toEqual({ kind: 'incomplete' })
    }
  })

  test('gives the same result in any pieces and any records', async () => {
    const octets = await helloOf({ servername: 'app.example.test', ALPNProtocols: ['http/1.1'] })
    const whole = readClientHello(octets)
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 600 }), fc.array(fc.integer({ min: 1, max: 300 }), { minLength: 1 }), (size, lengths) => {
        const records = inRecords(octets, size)
        const reader = new ClientHelloReader()
        for (let at = 0, nth = 0; at < records.length; nth++) {
          const piece = records.subarray(at, at + (lengths[nth % lengths.length] ?? 1))
          at += piece.length
          expect(reader.read(piece)).toEqual(at < records.length ? { kind: 'incomplete' } : whole)
        }
        expect(reader.octets.equals(records)).toBe(true)
      }),
    )
  })

  test('that never ends costs work in proportion to its octets, in any pieces and records', () => {
    const endless = inRecords(Buffer.concat([Buffer.alloc(5), Buffer.from([1, 0, 0x3f, 0xf0]), Buffer.alloc(2_640)]), 1)
    const copy = vi.spyOn(Buffer.prototype, 'copy')
    const subarray = vi.spyOn(Buffer.prototype, 'subarray')
    const concat = vi.spyOn(Buffer, 'concat')
    const reader = new ClientHelloReader()
    for (let at = 0; at < endless.length; at++) reader.read(endless.subarray(at, at + 1))
    const copied = copy.mock.calls.length + copy.mock.results.reduce((sum, { value }) => sum + Number(value), 0)
    const listed = concat.mock.calls.reduce((sum, [list]) => sum + list.length, 0)
    const work = copied + listed + subarray.mock.calls.length
    vi.restoreAllMocks()
    expect(reader.octets.equals(endless)).toBe(true)
    expect(work).toBeLessThan(10 * endless.length)
  })

  test('that is damaged anywhere throws nothing and names a host only', async () => {
    const octets = await helloOf({ servername: 'app.example.test', ALPNProtocols: ['http/1.1'] })
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.nat(octets.length - 1), fc.nat(255)), { minLength: 1, maxLength: 5 }), (changes) => {
        const damaged = Buffer.from(octets)
        for (const [at, value] of changes) damaged[at] = value
        const read = readClientHello(damaged)
        if (read.kind === 'hello' && read.serverName !== undefined) expect(read.serverName).toMatch(/^[a-z0-9._-]{1,253}$/)
      }),
      { numRuns: 2000 },
    )
  })

  test('is invalid when it is not TLS, or announces more than 16 KiB', () => {
    expect(readClientHello(Buffer.from('GET / HTTP/1.1\r\n'))).toEqual({ kind: 'invalid' })
    expect(readClientHello(Buffer.from([22, 3, 1, 0xff, 0xff]))).toEqual({ kind: 'invalid' })
    expect(readClientHello(Buffer.from([22, 3, 1, 0, 4, 1, 0xff, 0xff, 0xff]))).toEqual({ kind: 'invalid' })
    expect(readClientHello(Buffer.from([22, 3, 1, 0, 4, 2, 0, 0, 9]))).toEqual({ kind: 'invalid' })
    fc.assert(fc.property(fc.uint8Array({ maxLength: 200 }), (octets) => readClientHello(Buffer.from(octets)).kind !== 'hello'))
    expect(maxHelloOctets).toBe(16_384)
  })
})
