import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { axios } from 'acme-client'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Clock, systemClock } from '#base'
import { openTransport, TooManyOrders } from './acme-requests.ts'

let answer = (response: ServerResponse) => void response.end('{}')
const server = createServer((_request, response) => answer(response))
let url = ''
beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/dir`
})
afterAll(() => {
  server.closeAllConnections()
  server.close()
})

/** As acme-client calls it. */
function request(clock: Clock = systemClock) {
  axios.defaults.adapter = openTransport(clock, () => undefined)
  return axios.request({ url, method: 'get', validateStatus: null, headers: { 'Content-Type': 'application/jose+json' } })
}
const failed = (status: number, headers: Record<string, string>) => {
  answer = (response) => void response.writeHead(status, headers).end('{"detail":"too many orders"}')
  return request().catch((error: unknown) => error)
}

describe('a request to the CA', () => {
  test('returns status, headers and body, also of a refusal', async () => {
    answer = (response) => void response.writeHead(403, { 'replay-nonce': 'abc' }).end('{"detail":"no"}')
    const { status, headers, data } = await request()
    expect([status, headers['replay-nonce'], data]).toEqual([403, 'abc', { detail: 'no' }])
  })

  test('that the CA wants later is not repeated, and has the wait', async () => {
    for (const [headers, askedMs] of [
      [{ 'retry-after': '120' }, 120_000],
      [{}, 3_600_000],
      [{ 'retry-after': 'soon' }, 3_600_000],
    ] as const) {
      const error = await failed(429, headers)
      expect(error).toBeInstanceOf(TooManyOrders)
      expect(error).toMatchObject({ askedMs, message: 'too many orders' })
    }
    const at = new Date(Date.UTC(2100, 0, 1))
    const asked = (await failed(503, { 'retry-after': at.toUTCString() })) as TooManyOrders
    expect(Math.abs(asked.askedMs - (at.getTime() - systemClock.nowMs()))).toBeLessThan(60_000)
  })

  test('is not sent any more after the CA refused one', async () => {
    const refusals: TooManyOrders[] = []
    let asked = 0
    answer = (response) => {
      asked++
      response.writeHead(429, { 'retry-after': '60' }).end('{"detail":"too many orders"}')
    }
    axios.defaults.adapter = openTransport(systemClock, (error) => void refusals.push(error))
    for (let nth = 0; nth < 3; nth++) await expect(axios.request({ url })).rejects.toBeInstanceOf(TooManyOrders)
    expect(asked).toBe(1)
    expect(refusals).toMatchObject([{ askedMs: 60_000 }])
  })

  test('is limited in octets and time, and names the host and the cause', async () => {
    answer = (response) => void response.end('x'.repeat(300_000))
    await expect(request()).rejects.toThrow(/^127\.0\.0\.1:\d+: the response has more than 262144 octets$/)
    answer = () => {}
    const hurried: Clock = { ...systemClock, after: (_delayMs, action) => systemClock.after(50, action) }
    await expect(request(hurried)).rejects.toThrow(/^127\.0\.0\.1:\d+: no response within 30 s$/)
    answer = (response) => void response.writeHead(302, { location: '/elsewhere' }).end()
    await expect(request()).rejects.toThrow(/redirect/)
    answer = (response) => void response.destroy()
    await expect(request()).rejects.toThrow(/^127\.0\.0\.1:\d+: /)
  })
})
