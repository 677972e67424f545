/** The guarded HTTP client against real servers, correct and faulty, and DNS that lies. */

import { createServer as createTlsServer } from 'node:https'
import { createServer as createRawServer, type Server, type Socket } from 'node:net'
import ipaddr from 'ipaddr.js'
import { describe, expect, onTestFinished, test } from 'vitest'
import { type Network, systemClock } from '#base'
import { openGuard, openPost, openResolver, type Post } from '#net'
import { testCertificate } from '../support/certificate.ts'
import { makeLongChain } from '../support/long-chain.ts'
import { startTestDns, type TestDns } from '../support/test-dns.ts'
import { type Receiver, startReceiver } from '../support/webhook-receiver.ts'

const loopback: Network[] = [ipaddr.parseCIDR('127.0.0.0/8')]

function posting(openedNetworks: Network[] = loopback, dns?: TestDns, trusted?: string): Post {
  const resolver = openResolver({ servers: dns ? [dns.address] : ['127.0.0.1:9'], clock: systemClock, ids: { random: Math.random } })
  return openPost({ resolver, guard: openGuard(openedNetworks), openedNetworks, clock: systemClock, ...(trusted ? { trusted } : {}) })
}

/** Keeps connections and caches no DNS responses. */
function keeping(dns?: TestDns, trusted?: string): Post {
  const servers = dns ? [dns.address] : ['127.0.0.1:9']
  const askAnew = () => openResolver({ servers, clock: systemClock, ids: { random: Math.random } })
  const resolver = { ...askAnew(), addresses: (name: string) => askAnew().addresses(name) }
  const deps = { resolver, guard: openGuard(loopback), openedNetworks: loopback, clock: systemClock, keepIdleMs: 2000 }
  const post = openPost({ ...deps, ...(trusted ? { trusted } : {}) })
  onTestFinished(() => post.close())
  return post
}

const sent = (url: string, withinMs = 5000) => ({ url, headers: { 'x-a': 'b' }, body: Buffer.from('{"a":1}'), withinMs })

async function receiver(scheme: 'http' | 'https' = 'http'): Promise<Receiver> {
  const started = await startReceiver(scheme)
  onTestFinished(() => started[Symbol.asyncDispose]())
  return started
}

async function dnsWith(zones: Parameters<typeof startTestDns>[0]): Promise<TestDns> {
  const dns = await startTestDns(zones)
  onTestFinished(() => dns.close())
  return dns
}

/** A server that sends exactly these bytes, however invalid they are. */
async function rawServer(speak: (socket: Socket) => void): Promise<string> {
  const sockets = new Set<Socket>()
  const server: Server = createRawServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => socket.destroy())
    speak(socket)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(async () => {
    for (const socket of sockets) socket.destroy()
    await new Promise((resolve) => server.close(resolve))
  })
  const address = server.address()
  return `http://127.0.0.1:${typeof address === 'object' && address ? address.port : 0}/`
}

/** Writes until the other side closes. */
function writeForEver(socket: Socket, piece: string): void {
  const write = () => {
    while (!socket.destroyed && socket.write(piece)) {}
  }
  socket.on('drain', write)
  write()
}

describe('a request', () => {
  test('arrives as it was given, on a connection of its own', async () => {
    const to = await receiver()
    const outcome = await posting().post(sent(`${to.url}/a/b?c=d#e`))
    const durationMs = expect.any(Number)
    expect(outcome).toEqual({ statusCode: 200, body: 'thanks', durationMs, error: null, mayHaveArrived: false, retryAfter: null })
    expect(to.received).toMatchObject([
      {
        method: 'POST',
        path: '/a/b?c=d',
        headers: { 'x-a': 'b', connection: 'close', host: `127.0.0.1:${to.port}`, 'content-length': '7' },
      },
    ])
    expect(to.received[0]?.body.toString()).toBe('{"a":1}')
  })

  test('over TLS needs a certificate that is trusted and names the host', async () => {
    const to = await receiver('https')
    const dns = await dnsWith({ 'mx.example.test': { A: ['127.0.0.1'] }, 'other.example.test': { A: ['127.0.0.1'] } })
    const trusting = posting(loopback, dns, testCertificate.cert)
    expect(await trusting.post(sent(`https://mx.example.test:${to.port}/`))).toMatchObject({ statusCode: 200 })
    expect(await trusting.post(sent(`https://127.0.0.1:${to.port}/`))).toMatchObject({ statusCode: 200 })
    expect(await trusting.post(sent(`https://localhost:${to.port}/`))).toMatchObject({ statusCode: 200 })
    expect(await trusting.post(sent(`https://other.example.test:${to.port}/`))).toMatchObject({
      statusCode: null,
      error: expect.stringContaining('ERR_TLS_CERT_ALTNAME_INVALID'),
      mayHaveArrived: false,
    })
    expect(await posting(loopback, dns).post(sent(`https://mx.example.test:${to.port}/`))).toMatchObject({
      statusCode: null,
      error: expect.stringMatching(/self-signed certificate/),
    })
    expect(to.received).toHaveLength(3)
  })

  test('begins no further handshake with an address that sent a chain of 91 certificates', async () => {
    const { cert, key, root } = makeLongChain(['mx.example.test'], 90)
    const server = createTlsServer({ cert, key }, (_, response) => response.end())
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => void server.close())
    const address = server.address()
    const url = `https://mx.example.test:${typeof address === 'object' && address ? address.port : 0}/`
    const dns = await dnsWith({ 'mx.example.test': { A: ['127.0.0.1'] } })
    const post = posting(loopback, dns, root)
    expect(await post.post(sent(url))).toMatchObject({ statusCode: 200 })
    const error = 'no TLS handshake with mx.example.test at 127.0.0.1: an earlier one cost too much processor time'
    expect(await post.post(sent(url))).toMatchObject({ statusCode: null, error: expect.stringContaining(error), mayHaveArrived: false })
    const untrusting = posting(loopback, dns)
    expect(await untrusting.post(sent(url))).toMatchObject({ statusCode: null, error: expect.stringContaining('certificate') })
    expect(await untrusting.post(sent(url))).toMatchObject({ statusCode: null, error: expect.stringContaining(error) })
  })

  test('goes to the next address when the first does not take it', async () => {
    const to = await receiver()
    const dns = await dnsWith({ 'two.example.test': { AAAA: ['::1'], A: ['127.0.0.1'] } })
    const both: Network[] = [...loopback, ipaddr.parseCIDR('::1/128')]
    expect(await posting(both, dns).post(sent(`http://two.example.test:${to.port}/`))).toMatchObject({ statusCode: 200 })
  })
})

describe('a kept connection', () => {
  /** Answers every request with the number of its connection. */
  const numbering = async (scheme: 'http' | 'https' = 'http') => {
    const to = await receiver(scheme)
    to.answer = (response) => response.end(String(to.connections()))
    return to
  }

  test('carries the next request to the same URL, and no two at once', async () => {
    const to = await numbering()
    const post = keeping()
    const one = async () => (await post.post(sent(to.url))).body
    expect([await one(), await one(), await one()]).toEqual(['1', '1', '1'])
    expect(await Promise.all([one(), one()])).toEqual(['2', '2'])
    expect(to.connections()).toBe(2)
    expect((await post.post(sent(`${to.url}/other`))).body).toBe('3')
  })

  test('keeps the address that was checked, and a new one is checked again', async () => {
    const to = await numbering('https')
    const dns = await dnsWith({ 'mx.example.test': { A: ['127.0.0.1'] } })
    const post = keeping(dns, testCertificate.cert)
    const url = `https://mx.example.test:${to.port}/`
    expect((await post.post(sent(url))).body).toBe('1')
    dns.set('mx.example.test', 'A', ['10.0.0.1'])
    expect((await post.post(sent(url))).body).toBe('1')
    to.answer = (response) => response.writeHead(200, { connection: 'close' }).end()
    await post.post(sent(url))
    expect(await post.post(sent(url))).toMatchObject({ statusCode: null, error: expect.stringContaining('network') })
    expect(to.connections()).toBe(1)
  })

  test('that the other side has closed costs no answer', async () => {
    const asked: Socket[] = []
    const url = await rawServer((socket) => {
      socket.on('data', () => {
        // The second request on a connection finds it closed, as if request and close had crossed.
        if (asked.includes(socket)) return socket.destroy()
        asked.push(socket)
        socket.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok')
      })
    })
    const post = keeping()
    for (const connections of [1, 2, 3]) {
      expect(await post.post(sent(url))).toMatchObject({ statusCode: 200, body: 'ok' })
      expect(asked).toHaveLength(connections)
    }
  })

  test('is left when an answer was not read to its end', async () => {
    const to = await numbering()
    const post = keeping()
    await post.post(sent(to.url))
    to.answer = (response) => response.end('x'.repeat(1_000_000))
    expect((await post.post(sent(to.url))).body).toHaveLength(10_000)
    to.answer = (response) => response.end('next')
    expect((await post.post(sent(to.url))).body).toBe('next')
    expect(to.connections()).toBe(2)
  })
})

describe('an address that is not allowed', () => {
  const forms = `127.0.0.1 127.1 2130706433 0x7f000001 0177.0.0.1 0.0.0.0 localhost localhost. LOCALHOST a.localhost [::1] [::]
    [::ffff:127.0.0.1] [::ffff:7f00:1] [64:ff9b::7f00:1] [2002:7f00:1::] 10.0.0.1 192.168.1.1 169.254.169.254 100.64.0.1 [fd00:ec2::254]
    [fe80::1] 224.0.0.1 168.63.129.16 127.0.0.1. １２７.0.0.1 ⑫7.0.0.1`.split(/\s+/)

  test.each(forms)('is refused in the form %s, before and at connecting', async (host) => {
    const to = await receiver('https')
    const url = `https://${host}:${to.port}/`
    const post = posting([])
    expect((await post.look(url)).kind).toBe('refused')
    expect(await post.post(sent(url))).toMatchObject({ statusCode: null, mayHaveArrived: false })
    expect(to.connections()).toBe(0)
  })

  test('is refused when a name that was public leads there afterwards', async () => {
    const to = await receiver('https')
    const dns = await dnsWith({ 'rebinding.example.test': { A: ['8.8.8.8'] } })
    const url = `https://rebinding.example.test:${to.port}/`
    expect(await posting([], dns).look(url)).toMatchObject({ kind: 'addresses', addresses: ['8.8.8.8'] })
    dns.set('rebinding.example.test', 'A', ['127.0.0.1'])
    expect(await posting([], dns).post(sent(url))).toMatchObject({ statusCode: null, error: expect.stringContaining('network') })
    expect(to.connections()).toBe(0)
  })

  test('spoils the good ones beside it', async () => {
    const dns = await dnsWith({ 'mixed.example.test': { A: ['8.8.8.8', '10.0.0.1'] } })
    expect(await posting([], dns).look('https://mixed.example.test/')).toMatchObject({ kind: 'refused' })
  })

  test('is not reached by a redirect', async () => {
    const [to, inner] = [await receiver(), await receiver()]
    for (const status of [301, 302, 307, 308]) {
      to.answer = (response) => response.writeHead(status, { location: inner.url }).end()
      expect(await posting().post(sent(to.url))).toMatchObject({ statusCode: status, error: null })
    }
    expect(inner.connections()).toBe(0)
  })
})

describe('a URL', () => {
  test.each([
    ['http://example.com/', 'refused'],
    ['ftp://example.com/', 'refused'],
    ['file:///etc/passwd', 'refused'],
    ['https://user:pw@8.8.8.8/', 'refused'],
    ['https://user@8.8.8.8/', 'refused'],
    ['https://8.8.8.8:22/', 'addresses'],
    ['https:8.8.8.8', 'malformed'],
    ['//8.8.8.8/', 'malformed'],
    ['8.8.8.8', 'malformed'],
    ['https://', 'malformed'],
    ['https://8.8.8.8/a b', 'malformed'],
    ['https://8.8.8.8\\@127.0.0.1/', 'malformed'],
    ['https://[::1', 'malformed'],
    ['https://a..b/', 'unknown'],
  ])('%s is %s', async (url, kind) => expect((await posting([], await dnsWith({})).look(url)).kind).toBe(kind))

  test('may be plain http only where every address lies in an opened network', async () => {
    const dns = await dnsWith({
      'inside.test': { A: ['127.0.0.1'] },
      'half.test': { A: ['127.0.0.1', '8.8.8.8'] },
      'out.test': { A: ['8.8.8.8'] },
    })
    const post = posting(loopback, dns)
    const kinds = ['inside', 'half', 'out', 'absent'].map(async (name) => (await post.look(`http://${name}.test/`)).kind)
    expect(await Promise.all(kinds)).toEqual(['addresses', 'refused', 'refused', 'unknown'])
  })
})

describe('any behaviour of the other side', () => {
  const limitMs = 400
  const bounded = async (url: string) => {
    const startedMs = performance.now()
    const outcome = await posting().post(sent(url, limitMs))
    expect(performance.now() - startedMs).toBeLessThan(limitMs + 1500)
    return outcome
  }

  test('silence ends in time, and the request may have arrived', async () => {
    expect(await bounded(await rawServer(() => undefined))).toMatchObject({
      statusCode: null,
      mayHaveArrived: true,
      error: 'no response within 0.4 s; the request may have arrived',
    })
  })

  test('silence in the TLS handshake ends in time', async () => {
    const url = await rawServer(() => undefined)
    expect(await bounded(url.replace('http:', 'https:'))).toMatchObject({ statusCode: null, mayHaveArrived: false })
  })

  test('a DNS server that is silent ends in time', async () => {
    const dns = await dnsWith({})
    dns.fail('silent.test', 'silence')
    const startedMs = performance.now()
    expect(await posting(loopback, dns).post(sent('https://silent.test/', limitMs))).toMatchObject({
      statusCode: null,
      mayHaveArrived: false,
    })
    expect(performance.now() - startedMs).toBeLessThan(limitMs + 1500)
  })

  test('a status counts, although the body never ends', async () => {
    const endless = await rawServer((socket) =>
      socket.once('data', () => {
        socket.write('HTTP/1.1 200 OK\r\n\r\n')
        writeForEver(socket, 'x'.repeat(65_536))
      }),
    )
    const outcome = await bounded(endless)
    expect(outcome).toMatchObject({ statusCode: 200, error: null })
    expect(outcome.body).toHaveLength(10_000)
    expect(outcome.durationMs).toBeLessThan(limitMs)
    const slow = await rawServer((socket) =>
      socket.once('data', () => socket.write('HTTP/1.1 202 OK\r\ncontent-length: 1000\r\n\r\nbeginning')),
    )
    expect(await bounded(slow)).toMatchObject({ statusCode: 202, body: 'beginning', error: null })
  })

  test('interim answers, headers or a first line without end are no answer', async () => {
    for (const piece of ['HTTP/1.1 102 Processing\r\n\r\n', `x-header: ${'y'.repeat(1000)}\r\n`, 'z'.repeat(1000)]) {
      const url = await rawServer((socket) => {
        if (piece.startsWith('x-header')) socket.write('HTTP/1.1 200 OK\r\n')
        socket.once('data', () => writeForEver(socket, piece))
      })
      expect(await bounded(url), piece.slice(0, 20)).toMatchObject({ statusCode: null, error: expect.any(String) })
    }
  })

  test.each([
    ['a change of protocol', 'HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n'],
    ['nonsense', 'SSH-2.0-OpenSSH_9.9\r\n'],
    ['nothing', ''],
  ])('%s is no answer', async (_, text) => {
    const url = await rawServer((socket) => socket.once('data', () => socket.end(text)))
    expect(await bounded(url)).toMatchObject({ statusCode: null, error: expect.any(String) })
  })

  test('a compressed body is not unpacked, and no octets but text are kept', async () => {
    const to = await receiver()
    to.answer = (response) => response.writeHead(200, { 'content-encoding': 'gzip' }).end(Buffer.from([0x1f, 0x8b, 0, 0xff, 0x41]))
    expect((await posting().post(sent(to.url))).body).toBe('\u001f\ufffd\ufffd\ufffdA')
  })

  test('a port where no server listens is explained in words', async () => {
    const to = await receiver()
    await to[Symbol.asyncDispose]()
    expect(await bounded(to.url)).toMatchObject({ statusCode: null, error: expect.stringContaining('ECONNREFUSED'), mayHaveArrived: false })
  })
})
