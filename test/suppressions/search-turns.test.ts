/** Searches of one tenant take turns, so that they leave connections to the database for its other requests. */
import { expect, test, vi } from 'vitest'
import { sql } from '#db'
import { startService } from '../support/in-process-service.ts'

const waiting = sql<{ searches: number }>`
  select count(*) as searches
  from pg_stat_activity
  where datname = current_database() and wait_event_type = 'Lock'`

test.each([
  ['suppressions', '/suppressions?address=ann', undefined, {}, 3],
  ['suppressions', undefined, 'list_suppressions', { address: 'ann' }, 3],
  ['webhook_deliveries', '/platform/webhooks/deliveries', undefined, {}, 3],
  ['spool', undefined, 'queue', {}, 4],
  ['test_inbox_clearings', '/test/inbox', undefined, {}, 2],
])('of %s (path %s, tool %s)', async (table, path, tool, given, atOnceOfTenant) => {
  const service = await startService({ rateLimit: null })
  await using _ = { [Symbol.asyncDispose]: () => service.stop() }
  const search = () => (path ? service.call('GET', path, { key: service.testKey }) : ask())
  const ask = () =>
    fetch(`http://127.0.0.1:${service.port}/mcp`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${service.testKey}`,
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        'mcp-protocol-version': '2025-06-18',
      },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: tool, arguments: given } }),
    })
  const session = await service.db.session()
  await session.script(`begin; lock table ${table} in access exclusive mode`)
  const searches = Array.from({ length: atOnceOfTenant + 3 }, () => search())
  const count = async () => (await service.db.first(waiting))?.searches ?? 0
  await vi.waitUntil(async () => (await count()) >= atOnceOfTenant, { timeout: 10_000, interval: 10 })
  expect(await service.call('GET', '/tenants', { key: service.liveKey })).toMatchObject({ status: 200 })
  expect(await count()).toBe(atOnceOfTenant)
  await session.script('rollback')
  for (const answer of await Promise.all(searches)) expect(answer.status).toBe(200)
  await session.close()
})
