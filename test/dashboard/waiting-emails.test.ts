/** The emails that wait for a recipient domain or a provider, with their last reply and next attempt, for owners of the organisation. */
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { type FakeMx, startFakeMx } from '../support/fake-mx.ts'
import { type Service, startService } from '../support/in-process-service.ts'
import { startTestDns, type TestDns } from '../support/test-dns.ts'
import { ask, fromOurPages, signedIn } from './signed-in-browser.ts'

let service: Service
let dns: TestDns
let mx: FakeMx
let tenantId = ''
const cookies: Record<string, string> = {}
const reply = '451 4.7.1 Greylisted, try again'

beforeAll(async () => {
  mx = await startFakeMx({ script: ({ stage }) => (stage === 'rcpt' ? reply : undefined) })
  dns = await startTestDns({
    'one.test': { MX: ['10 aspmx.l.google.com'] },
    'two.test': { MX: ['10 alt1.aspmx.l.google.com'] },
    'own.test': { MX: ['10 mail.own.test'] },
    'aspmx.l.google.com': { A: ['127.0.0.1'] },
    'alt1.aspmx.l.google.com': { A: ['127.0.0.1'] },
    'mail.own.test': { A: ['127.0.0.1'] },
  })
  service = await startService({
    roles: ['delivery'],
    rateLimit: null,
    sendLimit: null,
    settings: {
      POSTRIDER_DNS: dns.address,
      POSTRIDER_MX_PORT: String(mx.port),
      POSTRIDER_ALLOWED_NETWORKS: '127.0.0.0/8',
      POSTRIDER_TRUSTED_PROXIES: '127.0.0.0/8',
    },
  })
  tenantId = await service.makeTenant('Shop')
  await service.addDomain(service.tenantId, 'house.test')
  await service.addDomain(tenantId, 'shop.test')
  for (const [name, role, tenant] of [
    ['owner', 'owner', null],
    ['admin', 'admin', null],
    ['landlord', 'owner', tenantId],
  ] as const)
    cookies[name] = (await signedIn(service, `${name}@house.test`, role, tenant)).cookie ?? ''
  for (const [to, from, tenant] of [
    ['ann@one.test', 'a@house.test', service.tenantId],
    ['bob@two.test', 'a@shop.test', tenantId],
    ['cid@own.test', 'a@house.test', service.tenantId],
    ['dee@one.test', 'a@shop.test', tenantId],
  ])
    expect(
      (
        await service.call('POST', '/emails', {
          key: service.liveKey,
          body: { from, to: [to], subject: 'Waits', text: 'T', tenantId: tenant },
        })
      ).status,
    ).toBe(200)
  await vi.waitUntil(async () => ((await service.call('GET', '/emails?status=softfail', { key: service.liveKey })).body.total ?? 0) === 4, {
    timeout: 30_000,
    interval: 100,
  })
})
afterAll(async () => {
  await service.stop()
  await mx.close()
  await dns.close()
})

const waiting = (who: string, query: string) =>
  ask(service, 'GET', `/dashboard/api/queue/emails?${query}`, { ...fromOurPages, cookie: cookies[who] ?? '' })
const recipients = async (query: string) => ((await waiting('owner', query)).data as { to: string }[]).map(({ to }) => to)

test('the emails of a recipient domain are listed, the oldest first, with reply and next attempt', async () => {
  const { data, text } = await waiting('owner', 'destination=ONE.test')
  expect((data as { to: string }[]).map(({ to }) => to)).toEqual(['ann@one.test', 'dee@one.test'])
  expect(JSON.parse(text)).toMatchObject({ total: 2, page: 1 })
  const [first] = data as Record<string, unknown>[]
  expect(first).toMatchObject({
    id: expect.stringMatching(/^\w{22}$/),
    tenantId: service.tenantId,
    state: 'deferred',
    attempts: 1,
    reason: null,
    lastReply: { output: expect.stringContaining(reply), remoteHost: 'aspmx.l.google.com' },
  })
  expect(Date.parse(String(first?.nextAttemptAt))).toBeGreaterThan(Date.now())
  // 30 attempts take about four days.
  const lastsMs = Date.parse(String(first?.lastAttemptAt)) - Date.now()
  expect(lastsMs / 3_600_000).toBeGreaterThan(85)
  expect(lastsMs / 3_600_000).toBeLessThan(115)
})

test('a provider has the mail of all its domains, and not the mail of others', async () => {
  expect(await recipients('provider=gmail')).toEqual(['ann@one.test', 'bob@two.test', 'dee@one.test'])
  expect(await recipients('provider=own.test')).toEqual(['cid@own.test'])
  expect(await recipients('provider=microsoft')).toEqual([])
})

test('a tenant and a page narrow the list', async () => {
  expect(await recipients(`provider=gmail&tenantId=${tenantId}`)).toEqual(['bob@two.test', 'dee@one.test'])
  expect(await recipients('provider=gmail&perPage=1&page=2')).toEqual(['bob@two.test'])
})

test('only owners of the organisation see it, and a place is needed', async () => {
  for (const who of ['admin', 'landlord']) expect((await waiting(who, 'destination=one.test')).code).toBe('permission_denied')
  for (const query of ['', 'destination=one.test&provider=gmail', 'destination=a%20b', 'destination=', 'provider=a%00'])
    expect((await waiting('owner', query)).code, query).toBe('validation_error')
})
