import { EventEmitter } from 'node:events'
import { connect, Socket } from 'node:net'
import fastify, { type FastifyReply } from 'fastify'
import { expect, onTestFinished, test, vi } from 'vitest'
import { Refusal, systemClock } from '#base'
import { openStreams } from './streaming-responses.ts'

const piece = 'x'.repeat(16_384)

/** A server with one endless stream, and a client that requests it but does not read. */
async function unread() {
  const streams = openStreams(systemClock)
  let made = 0
  let finished = false
  let allowed: () => Promise<void> = () => Promise.resolve()
  const app = fastify()
  app.get('/', (_, reply) =>
    streams.send(reply, {
      credentialId: 1,
      tenantId: null,
      checkAllowed: () => allowed(),
      async *pieces(signal) {
        try {
          while (!signal.aborted) {
            made++
            yield piece
          }
        } finally {
          finished = true
        }
      },
    }),
  )
  await app.listen({ port: 0, host: '127.0.0.1' })
  onTestFinished(() => app.close())
  const address = app.server.address()
  const socket = connect({ port: typeof address === 'object' && address ? address.port : 0, host: '127.0.0.1' })
  onTestFinished(() => void socket.destroy())
  socket.on('error', () => undefined)
  socket.pause()
  socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
  /** Resolves when no further piece is produced, that is, when every buffer is full. */
  const full = async () => {
    let before = -1
    await vi.waitFor(
      () => {
        const now = made
        const isFull = now > 0 && now === before
        before = now
        expect(isFull).toBe(true)
      },
      { timeout: 10_000, interval: 200 },
    )
  }
  return {
    streams,
    socket,
    full,
    made: () => made,
    finished: () => finished,
    refuse: (error: Error) => (allowed = () => Promise.reject(error)),
  }
}

test('nothing more is made for a reader that does not read, and it goes on when it does', async () => {
  const { socket, full, made } = await unread()
  await full()
  const atFirst = made()
  // The system's buffers between two sockets of one machine are a few MiB.
  expect(atFirst * piece.length).toBeLessThan(32 * 1_048_576)
  socket.resume()
  await vi.waitFor(() => expect(made()).toBeGreaterThan(atFirst * 2), { timeout: 10_000 })
})

test('a reader that reads nothing is cut off at its time limit, and its memory is released', async () => {
  const { socket, full, finished, refuse } = await unread()
  await full()
  const cut = new Promise((resolve) => socket.once('close', resolve))
  refuse(new Refusal('expired_api_key'))
  await vi.waitFor(() => expect(finished()).toBe(true), { timeout: 10_000 })
  socket.resume()
  await cut
})

test('trouble in asking whether it may be read ends no stream', async () => {
  const { socket, full, finished, made, refuse } = await unread()
  await full()
  refuse(new Error('the database is away'))
  const before = made()
  socket.resume()
  await vi.waitFor(() => expect(made()).toBeGreaterThan(before + 1000), { timeout: 10_000 })
  expect(finished()).toBe(false)
})

test('a reader that goes away is let go', async () => {
  const { socket, full, finished } = await unread()
  await full()
  socket.destroy()
  await vi.waitFor(() => expect(finished()).toBe(true), { timeout: 10_000 })
})

test('a tenant has 50 streams with all its keys, which leaves streams for other tenants and the organisation', () => {
  const streams = openStreams(systemClock)
  const responses: EventEmitter[] = []
  onTestFinished(() => responses.forEach((raw) => void raw.emit('close')))
  const open = (tenantId: string | null, credentialId: number) => {
    const raw = Object.assign(new EventEmitter(), { req: { socket: new Socket() } })
    const reply = { raw, type: () => reply, headers: () => reply, send: () => reply } as unknown as FastifyReply
    streams.send(reply, { credentialId, tenantId, checkAllowed: () => Promise.resolve(), async *pieces() {} })
    responses.push(raw)
  }
  const keys = (count: number) => Array.from({ length: count }, (_, at) => Math.floor(at / 10))
  for (const key of keys(50)) open('greedy', key)
  const refused = (message: string) =>
    expect.objectContaining({ code: 'rate_limit_exceeded', message: expect.stringContaining(message), retryAfterSeconds: 1 })
  expect(() => open('greedy', 5)).toThrow(refused('the tenant has 50'))
  expect(() => open('greedy', 0)).toThrow(refused('the key has 10'))
  for (const key of keys(50)) open('other', 100 + key)
  for (const key of keys(100)) open(null, 200 + key)
  expect(() => open('third', 300)).toThrow(refused('the server has 200'))
  responses[0]?.emit('close')
  open('greedy', 5)
})

test('a reader that leaves ends its streams, also those that wait for an earlier one', async () => {
  const streams = openStreams(systemClock)
  const signals: AbortSignal[] = []
  const app = fastify()
  app.get('/', (_, reply) =>
    streams.send(reply, {
      credentialId: 1,
      tenantId: null,
      checkAllowed: () => Promise.resolve(),
      async *pieces(signal) {
        signals.push(signal)
        yield piece
        if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve))
      },
    }),
  )
  await app.listen({ port: 0, host: '127.0.0.1' })
  onTestFinished(() => app.close())
  const address = app.server.address()
  const socket = connect({ port: typeof address === 'object' && address ? address.port : 0, host: '127.0.0.1' })
  socket.on('error', () => undefined)
  socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(10))
  await vi.waitFor(() => expect(signals.length).toBe(10), { timeout: 10_000 })
  expect(signals.some(({ aborted }) => aborted)).toBe(false)
  socket.destroy()
  await vi.waitFor(() => expect(signals.every(({ aborted }) => aborted)).toBe(true), { timeout: 10_000 })
})
