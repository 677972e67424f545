/** Requests of the pages Overview, Queue, Tenants and of an email beyond /v1, and their permissions. */
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { sql } from '#db'
import { listAudit } from '#members'
import { recordDeliveries } from '#webhooks'
import { type Service, startService } from '../support/in-process-service.ts'
import { halfPastTwelve } from '../support/test-clock.ts'
import { ask, fromOurPages, signedIn } from './signed-in-browser.ts'

let service: Service
let tenantId: string
const cookies: Record<string, string> = {}
beforeAll(async () => {
  service = await startService({
    roles: ['delivery'],
    rateLimit: null,
    sendLimit: null,
    clock: halfPastTwelve,
    settings: {
      POSTRIDER_TRUSTED_PROXIES: '127.0.0.0/8',
      POSTRIDER_RELAY: 'smtp://127.0.0.1:1',
      POSTRIDER_ALLOWED_NETWORKS: '127.0.0.0/8',
    },
  })
  tenantId = await service.makeTenant('Shop')
  await service.addDomain(service.tenantId, 'shop.test')
  for (const [name, role, tenant] of [
    ['owner', 'owner', null],
    ['admin', 'admin', null],
    ['viewer', 'viewer', null],
    ['landlord', 'owner', tenantId],
  ] as const)
    cookies[name] = (await signedIn(service, `${name}@house.test`, role, tenant)).cookie ?? ''
})
afterAll(() => service.stop())

const as = (who: string, method: string, path: string, body?: object) =>
  ask(service, method, `/dashboard/api${path}`, { ...fromOurPages, cookie: cookies[who] ?? '' }, body)

async function send(to: string, key = service.testKey): Promise<string> {
  const from = key === service.testKey ? 'a@simulator.test' : 'a@shop.test'
  const { body } = await service.call('POST', '/emails', { key, body: { from, to: [to], subject: 'A', text: 'B' } })
  return (body.data as { id: string }).id
}
const statusOf = async (id: string) =>
  ((await service.call('GET', `/emails/${id}`, { key: service.testKey })).body.data as { status: string }).status
const until = (id: string, status: string) => vi.waitUntil(async () => (await statusOf(id)) === status, { timeout: 20_000, interval: 50 })

const actions = sql<{ kind: string; data: { action?: string; by?: string } }>`
  select kind, data
  from events
  where kind in ('OperatorAction', 'TenantPaused', 'TenantResumed')
  order by id`

test.each([
  ['/members/reset', { address: 'a\0@b.test' }],
  ['/members/remove', { address: 'a\ud800@b.test' }],
  ['/members/reset-second-factor', { address: 'a\0' }],
  ['/members', { address: 'n@b.test', role: 'viewer', tenantId: 'a\0' }],
  ['/queue/pause', { destination: 'x.test', reason: 'a\0' }],
  ['/queue/pause', { destination: 'x.test', reason: 'a\ud800' }],
  ['/queue/resume', { provider: 'a\0' }],
  ['/tenants/a%00/pause', {}],
  ['/tenants/a%00/limit', { sendPerHour: 5 }],
])('text that nothing can store is refused and changes nothing: %s %j', async (path, body) => {
  const { status, code } = await as('owner', 'POST', path, body)
  expect([status, code]).toEqual(path.includes('%00') ? [404, 'not_found'] : [400, 'validation_error'])
})

describe('the numbers', () => {
  test('show how long delivery took, where it fails and why, and complaints over time', async () => {
    await until(await send('delivered@simulator.test'), 'sent')
    await until(await send('hardfail@simulator.test'), 'hardfail')
    await send('complaint@simulator.test')
    const point = async () =>
      ((await as('viewer', 'GET', '/over-time?period=today&granularity=day')).data as { points: Record<string, number>[] }).points[0]
    await vi.waitUntil(async () => (await point())?.complained === 1, { timeout: 20_000, interval: 50 })
    expect(await point()).toMatchObject({ sent: 3, delivered: 2, hard_failed: 1, test: 3 })
    const recent = await vi.waitUntil(
      async () => {
        const { data } = await as('viewer', 'GET', '/recent')
        const read = data as { delivered: { emails: number; p99Ms: number }; failing: object[] }
        return read.delivered.emails === 2 && read
      },
      { timeout: 20_000, interval: 50 },
    )
    expect(recent).toMatchObject({ failing: [{ recipientDomain: 'simulator.test', failed: 1, deferred: 0 }] })
    expect(recent.delivered.p99Ms).toBeGreaterThan(0)
    expect((await as('viewer', 'GET', '/recent?test=false')).data).toMatchObject({ delivered: { emails: 0 }, failing: [] })
    expect((await as('landlord', 'GET', '/recent')).data).toMatchObject({ delivered: { emails: 0 }, failing: [] })
    expect(await as('landlord', 'GET', `/over-time?tenantId=${service.tenantId}`)).toMatchObject({ status: 403 })
    expect((await as('viewer', 'GET', '/health')).data).toMatchObject({ shardsUnowned: 0, restoreWaiting: false })
    expect((await as('landlord', 'GET', '/health')).status).toBe(403)
  }, 60_000)
})

test('a late bounce of test mail is none of live mail', async () => {
  await until(await send('bounce@simulator.test'), 'bounced')
  const failing = async (query: string) =>
    ((await as('viewer', 'GET', `/recent?${query}`)).data as { failing: Record<string, unknown>[] }).failing
  const wanted = expect.objectContaining({ recipientDomain: 'simulator.test', bounced: 1 })
  await vi.waitFor(async () => expect(await failing('test=true')).toContainEqual(wanted), { timeout: 10_000, interval: 100 })
  expect((await failing('test=false')).map(({ recipientDomain }) => recipientDomain)).not.toContain('simulator.test')
}, 60_000)

describe('an email', () => {
  test('shows its conversation, the request that sent it, and the bodies of its webhooks, to every member who may read it', async () => {
    const id = await send('ann@away.test', service.liveKey)
    await until(id, 'softfail')
    const more = async (who: string) =>
      (await as(who, 'GET', `/emails/${id}/more`)).data as {
        attempts: { conversation: string }[]
        request: { path: string } | null
        webhooks: object[]
      }
    await vi.waitUntil(async () => (await more('viewer')).request !== null, { timeout: 20_000, interval: 50 })
    const told = await more('viewer')
    expect(told.attempts[0]?.conversation).toContain('ECONNREFUSED')
    expect(told.request).toMatchObject({ method: 'POST', path: '/v1/emails', email: { id } })
    expect(told.webhooks).toEqual([])
    const webhook = await service.call('POST', '/webhooks', {
      key: service.liveKey,
      body: { name: 'hook', url: 'http://127.0.0.1:9/', allEvents: true },
    })
    const { id: webhookId } = webhook.body.data as { id: string }
    const about = (token: string, subject: string) => JSON.stringify({ payload: { message: { id: 1, token, subject } } })
    const delivery = {
      webhookId: Number(webhookId),
      tenantId: service.tenantId,
      event: 'MessageDelayed',
      url: 'http://127.0.0.1:9/',
      attempt: 1,
    }
    const answered = {
      success: false,
      statusCode: 500,
      willRetry: true,
      requestHeaders: {},
      responseBody: null,
      durationMs: 1,
      error: null,
    }
    const made = (payload: string) => ({
      ...delivery,
      ...answered,
      id: randomUUID(),
      eventUuid: randomUUID(),
      at: new Date(halfPastTwelve.nowMs()),
      payload,
    })
    const elsewhere = '0'.repeat(22)
    await recordDeliveries(service.db, [made(about(id, 'A')), made(about(elsewhere, `"token":"${id}"`))])
    expect((await more('viewer')).webhooks).toEqual([
      expect.objectContaining({ webhookId, webhookName: 'hook', event: 'MessageDelayed', statusCode: 500 }),
    ])
    expect((await as('landlord', 'GET', `/emails/${id}/more`)).status).toBe(404)
    await as('admin', 'POST', `/emails/${id}/cancel`, {})
  }, 60_000)
})

test('an email says whether delivery holds mail for exactly its address, by either list', async () => {
  const suppress = (address: string, tenant: string | null) =>
    service.call('POST', '/suppressions', { key: service.liveKey, body: { address, tenantId: tenant } })
  const isSuppressed = async (id: string) =>
    ((await as('viewer', 'GET', `/emails/${id}/more`)).data as { isSuppressed: boolean }).isSuppressed
  const [ann, bob, carol] = [await send('ann@here.test'), await send('bob@here.test'), await send('Carol@here.test')]
  expect((await suppress('ann@here.test', null)).body.data).toMatchObject({ tenantId: null })
  expect((await suppress('carol@here.test', service.tenantId)).status).toBe(201)
  expect((await suppress('x-bob@here.test', service.tenantId)).status).toBe(201)
  expect((await suppress('bob@here.test', tenantId)).status).toBe(201)
  expect([await isSuppressed(ann), await isSuppressed(bob), await isSuppressed(carol)]).toEqual([true, false, true])
})

describe('the queue', () => {
  test('is only for owners of the organisation, and so are their actions on tenants', async () => {
    for (const who of ['admin', 'viewer', 'landlord']) {
      expect((await as(who, 'GET', '/queue')).status).toBe(403)
      expect((await as(who, 'GET', '/tenants')).status).toBe(403)
      for (const path of ['/queue/pause', '/queue/resume', '/queue/flush', `/tenants/${tenantId}/pause`, `/tenants/${tenantId}/limit`])
        expect(await as(who, 'POST', path, { destination: 'a.test', sendPerHour: 1 })).toMatchObject({
          status: 403,
          code: 'permission_denied',
        })
    }
    expect(await as('owner', 'POST', '/queue/pause', { destination: 'a b' })).toMatchObject({ status: 400 })
    expect(await as('owner', 'POST', '/queue/pause', { provider: 'nobody' })).toMatchObject({ status: 400 })
    expect(await as('owner', 'POST', '/tenants/none/pause', {})).toMatchObject({ status: 404 })
    expect(await ask(service, 'POST', '/dashboard/api/queue/flush', { cookie: cookies.owner ?? '' }, {})).toMatchObject({ status: 403 })
  })

  test('shows the waiting mail with its reason, is paused, resumed and flushed, and one email is cancelled; the log names the actor', async () => {
    const id = await send('ann@far.test', service.liveKey)
    await until(id, 'softfail')
    const line = async () =>
      ((await as('owner', 'GET', '/queue')).data as { recipientDomains: { recipientDomain: string; pauseReason: string | null }[] })
        .recipientDomains[0]
    expect(await line()).toMatchObject({ recipientDomain: 'far.test', deferred: 1, perMinute: 0, pauseReason: null })
    const domain = { domain: 'shop.test', tenantId: service.tenantId }
    expect((await as('owner', 'POST', '/queue/resume', domain)).data).toEqual({ resumed: false })
    await as('owner', 'POST', '/queue/pause', { destination: 'far.test', reason: 'their servers move' })
    expect((await line())?.pauseReason).toBe('their servers move')
    expect((await as('owner', 'POST', '/queue/resume', { destination: 'far.test' })).data).toEqual({ resumed: true })
    expect((await as('owner', 'POST', '/queue/flush', { destination: 'far.test' })).data).toEqual({ emails: 1 })
    expect((await as('viewer', 'POST', `/emails/${id}/cancel`, {})).status).toBe(403)
    expect((await as('landlord', 'POST', `/emails/${id}/cancel`, {})).status).toBe(404)
    await vi.waitUntil(async () => (await as('admin', 'POST', `/emails/${id}/cancel`, {})).data?.['emails'] === 1, {
      timeout: 20_000,
      interval: 250,
    })
    expect(await statusOf(id)).toBe('hardfail')
    await as('owner', 'POST', `/tenants/${tenantId}/pause`, { reason: 'they spam' })
    await as('owner', 'POST', `/tenants/${tenantId}/limit`, { sendPerHour: 5 })
    const listed = async () => (await as('owner', 'GET', '/tenants')).data as { ceilings: object }
    await vi.waitUntil(async () => Object.keys((await listed()).ceilings).length === 1, { timeout: 20_000, interval: 250 })
    expect(await listed()).toEqual({ sendPerHour: null, ceilings: { [tenantId]: 5 }, paused: { [tenantId]: 'they spam' } })
    await as('owner', 'POST', `/tenants/${tenantId}/limit`, { sendPerHour: null })
    expect((await as('owner', 'POST', `/tenants/${tenantId}/resume`, {})).data).toEqual({ resumed: true })
    await vi.waitUntil(async () => Object.keys((await listed()).ceilings).length === 0, { timeout: 20_000, interval: 250 })
    expect(await listed()).toMatchObject({ ceilings: {}, paused: {} })
    const told = (await service.db.rows(actions)).map(({ kind, data }) => [kind, data.action, data.by?.split('@')[0]])
    expect(told.slice(1, 4)).toEqual(['pause', 'resume', 'flush'].map((action) => ['OperatorAction', action, 'owner']))
    expect(told.slice(-3)).toEqual([
      ['OperatorAction', 'cancel', 'admin'],
      ['TenantPaused', undefined, 'owner'],
      ['TenantResumed', undefined, 'owner'],
    ])
    const audit = (await as('owner', 'GET', '/audit?perPage=100')).data as unknown as { action: string; data: object }[]
    const acts = audit.map(({ action }) => action)
    for (const action of [
      'queue.pause',
      'queue.resume',
      'queue.flush',
      'emails.cancel',
      'tenants.pause',
      'tenants.limit',
      'tenants.resume',
    ])
      expect(acts).toContain(action)
    expect(audit.find(({ action }) => action === 'queue.pause')?.data).toMatchObject({ destination: 'far.test' })
  }, 60_000)
})

describe('a long queue', () => {
  test('has totals beyond the listed recipient domains, and a retry of one tenant leaves the mail of others', async () => {
    await service.addDomain(tenantId, 'landlord.test')
    const to = Array.from({ length: 102 }, (_, index) => `ann@many${index}.test`)
    for (const part of [to.slice(0, 34), to.slice(34, 68), to.slice(68)]) {
      const body = { from: 'a@shop.test', to: part, subject: 'A', text: 'B' }
      expect((await service.call('POST', '/emails', { key: service.liveKey, body })).status).toBe(200)
    }
    const body = { from: 'a@landlord.test', to: ['ann@many0.test'], subject: 'A', text: 'B', tenantId }
    expect((await service.call('POST', '/emails', { key: service.liveKey, body })).status).toBe(200)
    interface Shown {
      totals: Record<string, number> & { oldestAt: string | null; nextDueAt: string | null }
      recipientDomains: Record<string, number>[]
    }
    const queue = async (of = '') => (await as('owner', 'GET', `/queue${of}`)).data as unknown as Shown
    await vi.waitUntil(async () => (await queue()).totals['deferred'] === to.length + 1, { timeout: 20_000, interval: 100 })
    const { totals, recipientDomains } = await queue()
    expect(recipientDomains).toHaveLength(100)
    expect(totals).toEqual({
      recipientDomains: to.length,
      ready: 0,
      sending: 0,
      deferred: to.length + 1,
      overLimit: 0,
      held: 0,
      oldestAt: expect.stringMatching(/Z$/),
      nextDueAt: expect.stringMatching(/Z$/),
    })
    expect((await queue(`?tenantId=${tenantId}`)).totals).toMatchObject({ recipientDomains: 1, deferred: 1 })
    expect((await queue('?tenantId=none')).totals).toMatchObject({ recipientDomains: 0, deferred: 0, oldestAt: null, nextDueAt: null })
    expect((await as('owner', 'POST', '/queue/flush', { tenantId: 'none' })).status).toBe(404)
    expect((await as('owner', 'POST', '/queue/flush', { tenantId, destination: 'many1.test' })).data).toEqual({ emails: 0 })
    expect((await as('owner', 'POST', '/queue/flush', { tenantId })).data).toEqual({ emails: 1 })
  }, 60_000)
})

test('a release or a cancellation that changes nothing is refused and is not an audit entry', async () => {
  const id = await send('delivered@simulator.test')
  await until(id, 'sent')
  for (const path of ['release', 'cancel']) {
    const { status, code } = await as('owner', 'POST', `/emails/${id}/${path}`)
    expect([status, code]).toEqual([400, 'email_not_retryable'])
    const { entries } = await listAudit(service.db, { tenantId: null, action: `emails.${path}` }, { number: 1, size: 10 })
    expect(entries.filter(({ data }) => data.emailId === id)).toEqual([])
  }
}, 60_000)
