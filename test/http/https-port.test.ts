/** The HTTPS port with certificates of the test: real sockets, and a store in memory in place of the database. */
import { createServer, type Server } from 'node:http'
import { connect as connectTcp, type Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { type ConnectionOptions, connect, createSecureContext, type TLSSocket } from 'node:tls'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { nextTurn, silentLog, systemClock } from '#base'
import { defaultHttpLimits } from '../../src/http/connection-limits.ts'
import { type OpenPort, openHttpsPort } from '../../src/http/https-port.ts'
import { makeAuthority } from '../support/certificate-authority.ts'

const authority = makeAuthority()
const contexts = new Map(['a.test', 'b.test'].map((name) => [name, createSecureContext(authority.issue({ names: [name] }))]))
const challenge = authority.issue({ names: ['challenge.a.test'] })
const headersMs = 600
const connectionsPerAddress = 20
let lookups = 0
let server: Server
let port: OpenPort

beforeAll(async () => {
  server = createServer((request, response) => response.end(`${request.headers.host} ${'encrypted' in request.socket}`))
  port = await openHttpsPort({
    store: {
      has: (name) => contexts.has(name),
      contextOf: async (name) => {
        lookups++
        return contexts.get(name)
      },
      find: async () => undefined,
      onChange: () => {},
      stop: async () => {},
    },
    challengeContexts: { find: async (name) => (name === 'a.test' ? createSecureContext(challenge) : undefined) },
    accept: (socket) => void server.emit('connection', socket),
    clock: systemClock,
    log: silentLog,
    bounds: { ...defaultHttpLimits, headersMs, connectionsPerAddress },
    config: { httpsHost: '127.0.0.1', httpsPort: 0, trustedProxies: [] },
  })
})
afterAll(() => {
  port.stop()
  server.closeAllConnections()
})

const openTls = (servername: string, options: ConnectionOptions = {}) =>
  new Promise<TLSSocket>((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port: port.port, servername, ca: authority.cert, ...options }, () => resolve(socket))
    socket.once('error', reject)
  })
const textOf = async (socket: Socket): Promise<string> => {
  let text = ''
  for await (const piece of socket) text += String(piece)
  return text
}

test('each name has its own certificate, and requests reach the HTTP server', async () => {
  for (const name of ['a.test', 'B.test']) {
    const socket = await openTls(name)
    expect(socket.getPeerX509Certificate()?.checkHost(name)).toBeDefined()
    socket.write(`GET / HTTP/1.1\r\nHost: ${name}\r\nConnection: close\r\n\r\n`)
    expect(await textOf(socket)).toContain(`${name} true`)
  }
})

/** A connection whose writes the test changes; TLS would otherwise bypass the socket's methods. */
function throughTest(plain: Socket, write: (octets: Buffer) => void): Duplex {
  const duplex = new Duplex({
    read() {},
    write(octets: Buffer, _encoding, done) {
      write(octets)
      done()
    },
  })
  plain.on('data', (octets) => duplex.push(octets)).on('error', () => {})
  return duplex
}

test('a ClientHello in many small pieces is read', async () => {
  const plain = connectTcp({ port: port.port, host: '127.0.0.1', noDelay: true })
  const pieces = (octets: Buffer) => {
    for (let at = 0; at < octets.length; at += 10) plain.write(octets.subarray(at, at + 10))
  }
  const socket = await openTls('a.test', { socket: throughTest(plain, pieces) })
  expect(socket.authorized).toBe(true)
  plain.destroy()
})

test('a ClientHello in thousands of records is not read again for each piece', async () => {
  const records = [1, 0, 0x3f, 0xf0, ...Array<number>(2_640).fill(0)].map((octet) => Buffer.from([22, 3, 1, 0, 1, octet]))
  const concat = vi.spyOn(Buffer, 'concat')
  const plain = connectTcp({ port: port.port, host: '127.0.0.1', noDelay: true }).on('error', () => {})
  plain.resume().write(records.map((one) => one.toString('latin1')).join(''), 'latin1')
  // One octet at a time, until the connection has sent as much as a ClientHello may have.
  for (let at = 0; !plain.closed; at++) {
    if (plain.writable) plain.write(Buffer.from([[22, 3, 1, 0, 1, 0][at % 6] ?? 0]))
    await nextTurn()
  }
  const listed = concat.mock.calls.reduce((sum, [list]) => sum + list.length, 0)
  concat.mockRestore()
  expect(listed).toBeLessThan(1_000)
})

test('a challenge certificate is presented for acme-tls/1 only, and only to names with an order', async () => {
  const acme = { ALPNProtocols: ['acme-tls/1'], rejectUnauthorized: false }
  const socket = await openTls('a.test', acme)
  expect(socket.alpnProtocol).toBe('acme-tls/1')
  expect(socket.getPeerX509Certificate()?.checkHost('challenge.a.test')).toBeDefined()
  expect(await textOf(socket)).toBe('')
  await expect(openTls('b.test', acme)).rejects.toThrow('unrecognized name')
})

test('a connection without a known name is refused before any cryptography', async () => {
  await expect(openTls('unknown.test')).rejects.toThrow('unrecognized name')
  const before = lookups
  await expect(openTls('')).rejects.toThrow('unrecognized name')
  const plain = connectTcp(port.port, '127.0.0.1')
  plain.write('GET / HTTP/1.1\r\n\r\n')
  expect(await textOf(plain)).toBe('')
  expect(lookups).toBe(before)
})

test('silent and slow clients are disconnected, before and during the handshake', async () => {
  const silent = connectTcp(port.port, '127.0.0.1')
  const slow = connectTcp(port.port, '127.0.0.1')
  slow.write(Buffer.from([22, 3, 1, 2, 0]))
  const began = performance.now()
  await Promise.all([textOf(silent), textOf(slow)])
  expect(performance.now() - began).toBeGreaterThan(headersMs - 50)
  // It sends its ClientHello and then no more.
  const halfway = connectTcp(port.port, '127.0.0.1')
  let sent = 0
  const once = (octets: Buffer) => void (sent++ === 0 && halfway.write(octets))
  connect({ socket: throughTest(halfway, once), servername: 'a.test', ca: authority.cert }).on('error', () => {})
  await new Promise((resolve) => halfway.once('close', resolve))
})

test('one address has a limited number of connections', async () => {
  const sockets = Array.from({ length: connectionsPerAddress + 5 }, () => connectTcp(port.port, '127.0.0.1').on('error', () => {}))
  await expect.poll(() => sockets.filter((socket) => socket.destroyed || socket.readableEnded).length).toBeGreaterThanOrEqual(5)
  for (const socket of sockets) socket.resume().destroy()
  await expect.poll(() => openTls('a.test').then((socket) => socket.destroy().authorized, String)).toBe(true)
})
