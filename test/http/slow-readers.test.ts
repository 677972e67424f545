/** A client that takes too long to read a large answer loses its connection, because other requests wait for the memory of the answer. */
import { connect } from 'node:net'
import { beforeAll, beforeEach, expect, test } from 'vitest'
import { systemClock } from '#base'
import { type Service, startService } from '../support/in-process-service.ts'

/** Timers for sending an answer: the other timers of a service are shorter, or take hours. They run only when the test says so. */
const held = new Set<{ delayMs: number; action: () => void }>()
const clock = {
  ...systemClock,
  after(delayMs: number, action: () => void) {
    if (delayMs < 60_000 || delayMs > 300_000) return systemClock.after(delayMs, action)
    const timer = { delayMs, action }
    held.add(timer)
    return () => void held.delete(timer)
  },
}

/** A busy machine reads the message slowly. */
const slowly = { timeout: 40_000 }

let service: Service
let path: string
let authorization: string

beforeAll(async () => {
  service = await startService({ rateLimit: null, sendLimit: null, clock })
  authorization = `Bearer ${service.testKey}`
  // Larger than the buffers of both sockets.
  const attachment = { filename: 'a', contentType: 'application/octet-stream', content: Buffer.alloc(6_000_000, 7).toString('base64') }
  const body = {
    from: 'shop@simulator.test',
    to: ['delivered@simulator.test'],
    subject: 's',
    text: 't',
    attachments: [attachment, attachment],
  }
  const sent = await service.call('POST', '/emails', { key: service.testKey, body })
  path = `/v1/emails/${(sent.body.data as { id: string }).id}?expand=raw`
  return () => service.stop()
})
beforeEach(() => expect.poll(() => held.size).toBe(0))

/** Sends these requests at once, and reads their answers only after `read`. Resolves with the octets read when the connection ends. */
function openClient(...requests: [method: string, path: string, body?: string][]): { read: () => Promise<number> } {
  const client = connect(service.port, '127.0.0.1')
  for (const [method, target, body = ''] of requests)
    client.write(
      `${method} ${target} HTTP/1.1\r\nHost: house.test\r\nAuthorization: ${authorization}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    )
  client.pause()
  client.on('error', () => undefined)
  let octets = 0
  client.on('data', (piece) => (octets += piece.length))
  const closed = new Promise<number>((resolve) => client.once('close', () => resolve(octets)))
  return {
    read: () => {
      client.resume()
      return closed
    },
  }
}

test('it has a minute, and at least a second for each 512,000 octets', async () => {
  const answer = await fetch(`http://127.0.0.1:${service.port}${path}`, { headers: { authorization } })
  const { length } = await answer.text()
  expect(length).toBeGreaterThan(20_000_000)
  await expect.poll(() => held.size).toBe(0)

  const client = openClient(['GET', path])
  await expect.poll(() => held.size, slowly).toBe(1)
  const [timer] = held
  expect(timer?.delayMs).toBeGreaterThan(60_000 + length / 512)
  timer?.action()
  expect(await client.read()).toBeLessThan(length)
  await expect.poll(() => held.size).toBe(0)
}, 60_000)

test('also if the answer waits behind an endless one on the same connection', async () => {
  const client = openClient(['GET', '/v1/events/stream'], ['GET', path], ['GET', path])
  await expect.poll(() => held.size, slowly).toBe(2)
  const [timer] = held
  timer?.action()
  expect(await client.read()).toBeLessThan(100_000)
  // Both answers waited on that connection.
  await expect.poll(() => held.size).toBe(0)
}, 60_000)

test('the memory of a large body whose answer waits so is returned too', async () => {
  const client = openClient(['GET', '/v1/events/stream'], ['POST', '/v1/emails', JSON.stringify({ html: 'a'.repeat(2_000_000) })])
  await expect.poll(() => [...held].map(({ delayMs }) => delayMs)).toEqual([120_000])
  for (const { action } of held) action()
  await client.read()
  await expect.poll(() => held.size).toBe(0)
}, 60_000)
