/** The bounded figures of the tracking and webhooks pages, the period before, and the preview of a template that is not stored. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Clock } from '#base'
import { recordDeliveries } from '#webhooks'
import { type Service, startService } from '../support/in-process-service.ts'
import { halfPastTwelve } from '../support/test-clock.ts'
import { ask, fromOurPages, signedIn } from './signed-in-browser.ts'

const dayMs = 86_400_000
/** Moved by the last test. */
let movedMs = 0
const clock: Clock = { ...halfPastTwelve, nowMs: () => halfPastTwelve.nowMs() + movedMs }

let service: Service
let otherTenantId = ''
const cookies: Record<string, string> = {}
beforeAll(async () => {
  service = await startService({
    roles: ['delivery'],
    rateLimit: null,
    clock,
    settings: { POSTRIDER_TRUSTED_PROXIES: '127.0.0.0/8', POSTRIDER_ALLOWED_NETWORKS: '127.0.0.0/8' },
  })
  otherTenantId = await service.makeTenant('Shop')
  for (const [name, role, tenant] of [
    ['viewer', 'viewer', null],
    ['landlord', 'owner', otherTenantId],
  ] as const)
    cookies[name] = (await signedIn(service, `${name}@house.test`, role, tenant)).cookie ?? ''
})
afterAll(() => service.stop())

const as = (who: string, method: string, path: string, body?: object) =>
  ask(service, method, `/dashboard/api${path}`, { ...fromOurPages, cookie: cookies[who] ?? '' }, body)

async function send(to: string): Promise<void> {
  const body = { from: 'a@simulator.test', to: [`${to}@simulator.test`], subject: 'A', html: '<a href="https://shop.example/">Shop</a>' }
  expect((await service.call('POST', '/emails', { key: service.testKey, body })).status).toBe(200)
}

test('the emails that people opened or clicked are counted, each once, of the tenants that the member sees', async () => {
  for (const to of ['clicked', 'clicked', 'opened', 'delivered']) await send(to)
  const counts = async (who: string, query = '') => (await as(who, 'GET', `/use/tracking${query}`)).data
  const sums = async () =>
    ((await as('viewer', 'GET', '/over-time?period=today&granularity=day')).data as unknown as { points: object[] }).points
  await expect.poll(sums, { timeout: 20_000 }).toMatchObject([{ sent: 4, delivered: 4 }])
  await service.call('POST', '/test/advance', { key: service.testKey, body: { seconds: 3600 } })
  await expect.poll(() => counts('viewer'), { timeout: 20_000 }).toMatchObject({ clicked: 2, isComplete: true })
  await expect.poll(async () => ((await counts('viewer')) as unknown as { opened: number }).opened, { timeout: 20_000 }).toBeGreaterThan(0)
  expect(await counts('viewer', `?tenantId=${otherTenantId}`)).toEqual({ opened: 0, clicked: 0, isComplete: true })
  expect(await counts('landlord')).toEqual({ opened: 0, clicked: 0, isComplete: true })
  expect((await as('landlord', 'GET', `/use/tracking?tenantId=${service.tenantId}`)).code).toBe('tenant_mismatch')
})

test('the requests of the last day are counted by webhook, with their median time', async () => {
  const made = async (body: object) =>
    ((await service.call('POST', '/webhooks', { key: service.liveKey, body })).body.data as { id: string }).id
  const busy = await made({ name: 'busy', url: 'https://example.com/', allEvents: true })
  const quiet = await made({ name: 'quiet', url: 'https://example.com/', allEvents: true })
  const nowMs = clock.nowMs()
  const request = (durationMs: number, success: boolean, agoMs = 1000) => ({
    id: crypto.randomUUID(),
    eventUuid: crypto.randomUUID(),
    webhookId: Number(busy),
    tenantId: service.tenantId,
    event: 'MessageSent',
    url: 'https://example.com/',
    attempt: 1,
    success,
    statusCode: success ? 200 : 500,
    willRetry: !success,
    at: new Date(nowMs - agoMs),
    requestHeaders: {},
    payload: '{}',
    responseBody: '',
    durationMs,
    error: null,
  })
  // The older ones are of the day before.
  await recordDeliveries(service.db, [request(10, true), request(20, true), request(90, false), request(5000, false, 25 * 3_600_000)])
  const use = async (who: string) =>
    ((await as(who, 'GET', `/use/webhooks?webhooks=${busy},${quiet},none`)).data as unknown as { webhooks: Record<string, object> })
      .webhooks
  const inLastHour = (count: number) => [...Array.from({ length: 23 }, () => 0), count]
  expect(await use('viewer')).toEqual({
    [busy]: {
      requests: 3,
      delivered: 2,
      medianMs: 20,
      requestsByHour: inLastHour(3),
      deliveredByHour: inLastHour(2),
      isComplete: true,
    },
  })
  expect(Object.keys(await use('viewer'))).not.toContain(quiet)
  expect(await use('landlord')).toEqual({})
  const many = Array.from({ length: 101 }, (_, index) => index).join(',')
  for (const query of ['', `?webhooks=${many}`]) {
    const { status, code } = await as('viewer', 'GET', `/use/webhooks${query}`)
    expect([status, code]).toEqual([400, 'validation_error'])
  }
})

describe('a template that is not stored', () => {
  const source = { subject: 'Order {{ number }}', html: '<p>Hello {{ name }}</p><script>1</script>', text: null, variables: {}, values: {} }
  const values = { number: 7, name: '<b>Ann</b>' }
  const render = (more: object) => as('viewer', 'POST', '/templates/render', { ...source, ...more })

  test('is rendered, and its fault is a result', async () => {
    expect((await render({ values })).data).toEqual({ subject: 'Order 7', fault: null })
    expect((await render({})).data).toMatchObject({ subject: null, fault: { message: expect.stringContaining('number') } })
    expect((await render({ html: '{% if %}' })).data).toMatchObject({
      subject: null,
      fault: { message: expect.stringContaining('html is not a template') },
    })
    expect((await render({ html: null })).data).toMatchObject({ fault: { message: expect.stringContaining('html or text is required') } })
    expect((await service.call('GET', '/templates', { key: service.liveKey })).body.total).toBe(0)
  })

  test.each([{ subject: 7 }, { variables: { a: { type: 'date' } } }, { variables: [] }, { values: 'x' }, { html: 'a\0' }])(
    'of another form is refused: %j',
    async (more) => {
      const { status, data } = await render(more)
      expect(status === 400 || (data as unknown as { fault: object | null }).fault !== null).toBe(true)
    },
  )

  test('fills a frame of the dashboard, inert, also from a page that hides its origin', async () => {
    const frame = { cookie: cookies.viewer ?? '', 'sec-fetch-site': 'same-origin', 'sec-fetch-dest': 'iframe', origin: 'null' }
    const show = (headers: Record<string, string>, params: string) =>
      fetch(`http://127.0.0.1:${service.port}/dashboard/api/templates/preview`, {
        method: 'POST',
        headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
        body: new URLSearchParams({ params }).toString(),
      })
    const shown = await show(frame, JSON.stringify({ ...source, values }))
    expect([shown.status, shown.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8'])
    expect(shown.headers.get('content-security-policy')).toMatch(/^sandbox; default-src 'none'/)
    expect(await shown.text()).toContain('<p>Hello &lt;b&gt;Ann&lt;/b&gt;</p><x-script>')
    expect((await show(frame, '{')).status).toBe(400)
    expect((await show(frame, JSON.stringify(source))).status).toBe(400)
    for (const other of [{ 'sec-fetch-site': 'cross-site' }, { 'sec-fetch-dest': 'document' }, { 'sec-fetch-site': '' }, { cookie: '' }])
      expect((await show({ ...frame, ...other }, JSON.stringify({ ...source, values }))).status, JSON.stringify(other)).toBe(401)
  })
})

test('the same time of the day before is counted, of the tenants that the member sees', async () => {
  const before = async (who: string, query: string) =>
    (await as(who, 'GET', `/before?${query}`)).data as unknown as { counts: { sent: number } }
  expect((await before('viewer', 'period=today')).counts.sent).toBe(0)
  // In two steps: a session without a request for a day ends.
  movedMs = dayMs / 2
  for (const who of ['viewer', 'landlord']) await before(who, 'period=today')
  movedMs = dayMs + 60_000
  expect((await before('viewer', 'period=today')).counts).toMatchObject({ sent: 4, delivered: 4, test: 4 })
  expect((await before('viewer', 'period=today&test=false')).counts.sent).toBe(0)
  expect((await before('landlord', 'period=today')).counts.sent).toBe(0)
  expect((await as('landlord', 'GET', `/before?tenantId=${service.tenantId}`)).code).toBe('tenant_mismatch')
  expect((await as('viewer', 'GET', '/before?period=nonsense')).code).toBe('validation_error')
})
