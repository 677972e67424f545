import { type AddressInfo, createServer } from 'node:net'
import { type ConnectionOptions, connect } from 'node:tls'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { maxHelloOctets, readClientHello } from './client-hello.ts'

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
