/** A client that takes too long to read a large answer loses its connection: other requests wait for the memory of the answer. */
import { once } from 'node:events'
import { connect } from 'node:net'
import { expect, test } from 'vitest'
import { systemClock } from '#base'
import { startService } from '../support/in-process-service.ts'

/** The longest delays of a service without traffic are shorter, or hours. */
const isAnswerTimer = (delayMs: number) => delayMs > 60_000 && delayMs < 300_000

/** A clock whose timers for reading an answer run only when the test says so. */
function heldTimers() {
  const held = new Set<{ delayMs: number; action: () => void }>()
  const clock = {
    ...systemClock,
    after(delayMs: number, action: () => void) {
      if (!isAnswerTimer(delayMs)) return systemClock.after(delayMs, action)
      const timer = { delayMs, action }
      held.add(timer)
      return () => void held.delete(timer)
    },
  }
  return { clock, held }
}

test('it has a minute, and a second for each 512,000 octets', async () => {
  const { clock, held } = heldTimers()
  await using service = await startService({ rateLimit: null, sendLimit: null, clock })
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
  const path = `/v1/emails/${(sent.body.data as { id: string }).id}?expand=raw`
  const authorization = `Bearer ${service.testKey}`

  const text = await (await fetch(`http://127.0.0.1:${service.port}${path}`, { headers: { authorization } })).text()
  expect(text.length).toBeGreaterThan(20_000_000)
  await expect.poll(() => held.size).toBe(0)

  await using client = connect(service.port, '127.0.0.1')
  client.write(`GET ${path} HTTP/1.1\r\nHost: house.test\r\nAuthorization: ${authorization}\r\n\r\n`)
  client.pause()
  await expect.poll(() => [...held].map(({ delayMs }) => Math.round(delayMs))).toEqual([Math.round(60_000 + text.length / 512)])
  for (const { action } of held) action()
  let octets = 0
  client.on('error', () => undefined)
  client.on('data', (piece) => (octets += piece.length))
  client.resume()
  await once(client, 'close')
  expect(octets).toBeLessThan(text.length)
  expect(held.size).toBe(0)
}, 60_000)
