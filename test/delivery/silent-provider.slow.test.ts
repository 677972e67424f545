/** A provider whose servers accept connections and say nothing, with mail of many tenants and recipient domains. */
import { expect, onTestFinished, test } from 'vitest'
import { openIds, systemClock, systemRandom } from '#base'
import { createKey } from '#credentials'
import { sql } from '#db'
import { startFakeMx } from '../support/fake-mx.ts'
import { startService } from '../support/in-process-service.ts'
import { startTestDns } from '../support/test-dns.ts'

const domains = 300
const perDomain = 4
const perRequest = 50

const claimed = sql<{ count: number }>`
  select count(*)::integer as count
  from spool
  where state = 'sending'`

test('it does not hold up mail for other providers', { timeout: 120_000 }, async () => {
  const [fast, silent] = [await startFakeMx(), { script: () => ({ silent: true }), host: '127.0.0.2' }]
  const slow = await startFakeMx({ ...silent, port: fast.port })
  const dns = await startTestDns({
    '*.slow.test': { MX: ['10 mx.slow.example'] },
    'mx.slow.example': { A: ['127.0.0.2'] },
    'quick.test': { MX: ['10 mx.quick.test'] },
    'mx.quick.test': { A: ['127.0.0.1'] },
  })
  const service = await startService({
    rateLimit: null,
    sendLimit: null,
    roles: ['delivery'],
    settings: { POSTRIDER_DNS: dns.address, POSTRIDER_MX_PORT: String(fast.port), POSTRIDER_ALLOWED_NETWORKS: '127.0.0.0/8' },
  })
  onTestFinished(async () => {
    for (const one of [service, fast, slow, dns]) await one[Symbol.asyncDispose]()
  })
  const tenants = [service.tenantId, ...(await Promise.all(['second', 'third', 'fourth'].map((name) => service.makeTenant(name))))]
  const keys: string[] = []
  for (const tenantId of tenants) {
    await service.addDomain(tenantId, `shop${keys.length}.test`)
    const wanted = { mode: 'live' as const, name: 'test', tenantId, permissions: null }
    const facts = { nowMs: systemClock.nowMs(), ids: openIds(systemRandom) }
    keys.push((await service.db.transaction((tx) => createKey(tx, wanted, facts))).key)
  }
  const send = (key: string, to: string[]) =>
    service.call('POST', '/emails', { key, body: { from: `hi@shop${keys.indexOf(key)}.test`, to, subject: 'Hello', text: 'Hello' } })

  for (const key of keys.slice(0, 3)) {
    for (let from = 0; from < domains * perDomain; from += perRequest) {
      const to = Array.from({ length: perRequest }, (_, nth) => `ann${from}@d${(from + nth) % domains}.slow.test`)
      expect((await send(key, to)).status).toBe(200)
    }
  }
  const inFlight = async () => (await service.db.first(claimed))?.count ?? 0
  let before = 0
  const isSteady = async () => before === (before = await inFlight()) && before >= 400
  await expect.poll(isSteady, { timeout: 60_000, interval: 1000 }).toBe(true)

  await send(keys[3] as string, ['bob@quick.test'])
  expect(await fast.waitFor(1, 15_000)).toMatchObject([{ recipients: ['bob@quick.test'] }])
})
