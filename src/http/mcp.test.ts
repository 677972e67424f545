import fastify from 'fastify'
import { expect, onTestFinished, test } from 'vitest'
import { systemClock } from '#base'
import { type McpDeps, serveMcp } from './mcp.ts'

const verdict = { allowed: true, limit: 10, remaining: 9, resetSeconds: 1, retryAfterSeconds: 0 }
const key = { id: 1, tenantId: null, name: 'k', mode: 'live', hold: false, permissions: null }
const list = { jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} }

test('tools that could not be loaded are loaded again at the next request', async () => {
  let loads = 0
  const deps = {
    clock: systemClock,
    config: { publicUrl: 'http://localhost' },
    credentials: { authenticate: async () => key },
    limitSettings: { rateOf: async () => 10 },
    keyRates: { take: async () => verdict },
    get installation() {
      if (loads++ === 0) throw new Error('no file descriptor is free')
      return { version: 'test' }
    },
  } as unknown as McpDeps
  const app = fastify()
  for (const name of ['credential', 'admission', 'rate', 'acceptedEmailIds']) app.decorateRequest(name, null)
  onTestFinished(() => app.close())
  serveMcp(app, deps)
  const call = () =>
    app.inject({
      method: 'POST',
      url: '/mcp',
      headers: { authorization: 'Bearer key', accept: 'application/json, text/event-stream' },
      payload: list,
    })
  expect((await call()).statusCode).toBe(500)
  const { statusCode, body } = await call()
  expect([statusCode, body]).toEqual([200, expect.stringContaining('explain_email')])
})
