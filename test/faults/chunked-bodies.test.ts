/**
 * Memory of the API process for bodies without an announced length. A separate file, because garbage left by other tests would be counted
 * too.
 */
import { connect } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Service, startService } from '../support/in-process-service.ts'

const connections = 10
const mebibyte = 1_048_576

let service: Service
beforeAll(async () => {
  service = await startService({ sendLimit: null })
})
afterAll(() => service.stop())

const body = { from: 'shop@simulator.test', to: ['ann@simulator.test'], subject: 'x', text: 'x'.repeat(300_000) }

test('bodies of unannounced length that never end take no memory beyond the room for bodies', async () => {
  const key = await service.makeKey({})
  const head = `POST /v1/emails HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\nTransfer-Encoding: chunked\r\n\r\n50000\r\n`
  const before = process.memoryUsage().arrayBuffers
  const sockets = Array.from({ length: connections }, () => connect(service.port, '127.0.0.1').on('error', () => {}))
  try {
    for (const socket of sockets) socket.write(`${head}${' '.repeat(0x50000)}`)
    const peakAt = async () => {
      await service.wait(100)
      return (process.memoryUsage().arrayBuffers - before) / mebibyte
    }
    await expect.poll(peakAt, { timeout: 10_000 }).toBeGreaterThan(100)
    for (let n = 0; n < 10; n++) expect(await peakAt()).toBeLessThan(200)
  } finally {
    for (const socket of sockets) socket.destroy()
  }
  // Afterwards the memory is free again.
  const later = await service.makeKey({})
  expect((await service.call('POST', '/emails', { key: later, body })).status).toBe(200)
})
