/** Memory of the API process, in a file of its own: what other tests leave to the garbage collector would be counted too. */
import { connect } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type House, startHouse } from '../support/house.ts'

const connections = 10
const mebibyte = 1_048_576

let house: House
beforeAll(async () => {
  house = await startHouse({ sendLimit: null })
})
afterAll(() => house.stop())

const body = { from: 'shop@simulator.test', to: ['ann@simulator.test'], subject: 'x', text: 'x'.repeat(300_000) }

test('bodies of unannounced length that never end take no memory beyond the room for bodies', async () => {
  const key = await house.makeKey({})
  const head = `POST /v1/emails HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\nTransfer-Encoding: chunked\r\n\r\n50000\r\n`
  const before = process.memoryUsage().arrayBuffers
  const sockets = Array.from({ length: connections }, () => connect(house.port, '127.0.0.1').on('error', () => {}))
  try {
    for (const socket of sockets) socket.write(`${head}${' '.repeat(0x50000)}`)
    const mostAt = async () => {
      await house.wait(100)
      return (process.memoryUsage().arrayBuffers - before) / mebibyte
    }
    await expect.poll(mostAt, { timeout: 10_000 }).toBeGreaterThan(100)
    for (let n = 0; n < 10; n++) expect(await mostAt()).toBeLessThan(200)
  } finally {
    for (const socket of sockets) socket.destroy()
  }
  // Afterwards there is room again.
  const later = await house.makeKey({})
  expect((await house.call('POST', '/emails', { key: later, body })).status).toBe(200)
})
