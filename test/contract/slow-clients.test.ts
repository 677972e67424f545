/**
 * Clients that send slowly, stay silent or send invalid HTTP: each is answered or disconnected in bounded time, and other clients do not
 * notice.
 */
import { connect, type Socket } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Service, startService } from '../support/in-process-service.ts'

const bounds = { headersMs: 400, requestMs: 800, connectionsPerAddress: 20 }
/** The server checks its time limits periodically, not to the millisecond. */
const graceMs = 2000

let service: Service
beforeAll(async () => {
  service = await startService({ rateLimit: null, bounds })
})
afterAll(() => service.stop())

interface Ended {
  text: string
  afterMs: number
}

/** Writes `parts` one by one while the connection lives; resolves when the server has ended it. */
function talk(parts: Iterable<string>, everyMs = 0): Promise<Ended> {
  const startMs = performance.now()
  const socket: Socket = connect(service.port, '127.0.0.1')
  let text = ''
  const iterator = parts[Symbol.iterator]()
  const writeNext = () => {
    const next = iterator.next()
    if (next.done || socket.destroyed) return
    socket.write(next.value)
    if (everyMs > 0) setTimeout(writeNext, everyMs)
    else writeNext()
  }
  return new Promise((resolve) => {
    socket.on('data', (chunk) => {
      text += chunk.toString()
    })
    socket.on('error', () => {})
    socket.on('close', () => resolve({ text, afterMs: performance.now() - startMs }))
    writeNext()
  })
}

function* drops(first: string, drop: string): Generator<string> {
  yield first
  for (;;) yield drop
}

const head = (more: string) =>
  `POST /v1/emails HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${service.testKey}\r\nContent-Type: application/json\r\n${more}\r\n`

describe('a client', () => {
  test('that never ends its headers is cut off', async () => {
    const { text, afterMs } = await talk(drops('GET /v1/limits HTTP/1.1\r\n', 'X-A: b\r\n'), 50)
    expect(afterMs).toBeLessThan(bounds.headersMs + graceMs)
    expect(text).toMatch(/^HTTP\/1\.1 400 /)
    expect(text).toContain('"success":false')
  })

  // Browsers open connections ahead. A response on one would be taken for the response to the request that the browser is just sending.
  test('that sends nothing at all is cut off without a word', async () => {
    const { text, afterMs } = await talk([])
    expect(afterMs).toBeLessThan(bounds.requestMs + graceMs)
    expect(text).toBe('')
  })

  test('that never ends its body is cut off', async () => {
    const { text, afterMs } = await talk(drops(head('Content-Length: 100000\r\n'), 'x'), 50)
    expect(afterMs).toBeLessThan(bounds.requestMs + graceMs)
    expect(text).toMatch(/^HTTP\/1\.1 400 /)
  })

  test('that was answered before its body came gets no second answer when that never comes', async () => {
    const { text, afterMs } = await talk(drops(head('Content-Length: 100000\r\n').replace(service.testKey, 'none'), 'x'), 50)
    expect(afterMs).toBeLessThan(bounds.requestMs + graceMs)
    expect(text.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 401'])
  })

  test('that never ends its chunks is cut off', async () => {
    const { text, afterMs } = await talk(drops(head('Transfer-Encoding: chunked\r\n'), '1\r\nx\r\n'), 50)
    expect(afterMs).toBeLessThan(bounds.requestMs + graceMs)
    expect(text).toMatch(/^HTTP\/1\.1 400 /)
  })

  test('that holds many connections gets no more than its share, and leaves it free again', async () => {
    const idle = Array.from({ length: bounds.connectionsPerAddress * 2 }, () => talk(['GET ']))
    const turnedAway = (await Promise.all(idle)).filter(({ text }) => text === '')
    expect(turnedAway.length).toBeGreaterThanOrEqual(bounds.connectionsPerAddress)
    expect(turnedAway.length).toBeLessThan(idle.length)
    expect(await service.call('GET', '/limits', { key: service.testKey })).toMatchObject({ status: 200 })
  })
})

describe('a request that is no HTTP/1.1', () => {
  test.each([
    ['garbage', 'GARBAGE\r\n\r\n'],
    ['two lengths', 'POST /v1/emails HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx'],
    ['a length and chunks', 'POST /v1/emails HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n'],
    ['a folded header', 'GET /v1/limits HTTP/1.1\r\nHost: x\r\nX-A: b\r\n c\r\nBad Header: d\r\n\r\n'],
    ['a bare line feed in a header', 'GET /v1/limits HTTP/1.1\r\nHost: x\r\nX-A: b\rc\r\n\r\n'],
    ['headers of 20 KiB', `GET /v1/limits HTTP/1.1\r\nHost: x\r\nX-A: ${'a'.repeat(20_000)}\r\n\r\n`],
    ['a chunk of a wrong size', 'POST /v1/emails HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n'],
    ['HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
  ])('%s is answered 400 in the envelope, and the connection ends', async (_, request) => {
    const { text } = await talk([request])
    expect(text).toMatch(/HTTP\/1\.1 400 Bad Request\r\n/)
    const body = JSON.parse(text.slice(text.lastIndexOf('\r\n\r\n') + 4)) as object
    expect(body).toMatchObject({
      success: false,
      error: { suggestion: expect.stringMatching(/./) },
      meta: { requestId: expect.stringMatching(/^req_/) },
    })
    expect(text.toLowerCase()).toContain('\r\nx-ratelimit-limit: ')
  })

  test.each([
    ['without a Host', 'GET /v1/limits HTTP/1.1\r\nConnection: close\r\n\r\n', 400],
    ['with a Host that is none', 'GET /v1/limits HTTP/1.1\r\nHost: a b\r\nConnection: close\r\n\r\n', 400],
    ['with an expectation nobody knows', 'GET /v1/limits HTTP/1.1\r\nHost: x\r\nExpect: magic\r\nConnection: close\r\n\r\n', 401],
    ['of an unusual method', 'PROPFIND /v1/limits HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n', 401],
  ])('a request %s is answered from the closed set of statuses', async (_, request, status) => {
    const { text } = await talk([request])
    expect(text).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `))
  })
})
