import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { type Answer, type RequestOptions, type Service, startService } from '../support/in-process-service.ts'
import { halfPastTwelve } from '../support/test-clock.ts'

interface Counts {
  sent: number
  delivered: number
  soft_failed: number
  hard_failed: number
  bounced: number
  held: number
  test: number
}

let service: Service
let acme: string
let zulu: string
beforeAll(async () => {
  service = await startService({ rateLimit: null, sendLimit: 1000, roles: ['delivery', 'housekeeping'], clock: halfPastTwelve })
  acme = await tenant('Acme, "the" best', { externalId: 4711 })
  zulu = await tenant(' =Zulu', { external_id: 'z-1' })
  await service.addDomain(acme, 'acme.test')
  const ids = await Promise.all(
    ['delivered', 'delivered', 'delivered', 'hardfail', 'softfail'].map((how) =>
      send({ tenantId: acme, from: 'a@acme.test', to: [`${how}@simulator.test`] }),
    ),
  )
  const statuses = () => Promise.all(ids.map(async (id) => (dataIn(await get(`/emails/${id}`)) as { status: string }).status))
  const settled = ['sent', 'sent', 'sent', 'hardfail', 'softfail']
  await vi.waitFor(async () => expect(await statuses()).toEqual(settled), { timeout: 15_000, interval: 50 })
})
afterAll(() => service.stop())

const get = (path: string, asked: RequestOptions = {}) => service.call('GET', path, { key: service.liveKey, ...asked })
const dataIn = (answer: Answer) => answer.body.data
const tenant = async (name: string, metadata: object) =>
  ((await service.call('POST', '/tenants', { key: service.liveKey, body: { name, metadata } })).body.data as { id: string }).id
const send = async (body: object) =>
  (
    (await service.call('POST', '/emails', { key: service.testKey, body: { subject: 's', text: 't', ...body } })).body.data as {
      id: string
    }
  ).id

const acmeCounts: Counts = { sent: 5, delivered: 3, soft_failed: 1, hard_failed: 1, bounced: 0, held: 0, test: 5 }
const nothing: Counts = { sent: 0, delivered: 0, soft_failed: 0, hard_failed: 0, bounced: 0, held: 0, test: 0 }

describe('GET /usage', () => {
  test('returns counts, rates and tenants of the organisation, and the limits as well', async () => {
    const answer = await get('/usage?period=today')
    expect(answer.status).toBe(200)
    expect(dataIn(answer)).toEqual({
      period: { start: expect.stringMatching(/T00:00:00\.000Z$/), end: expect.stringMatching(/T23:59:59\.999Z$/) },
      emails: acmeCounts,
      rates: { delivery_rate: 0.6, bounce_rate: 0 },
      tenants: { total: 3, active: 3, withActivity: 1 },
      rateLimit: expect.objectContaining({ period: 'second' }),
      sendLimit: expect.objectContaining({ limit: 1000, period: 'hour' }),
      billing: null,
    })
    expect(dataIn(await get('/usage?period=yesterday'))).toMatchObject({ emails: nothing, rates: { delivery_rate: 0, bounce_rate: 0 } })
  })

  test.each([
    ['period=nonsense', 'period'],
    ['timezone=Mars/Phobos', 'timezone'],
    ['period=2026-02-30', 'period'],
  ])('refuses %s by its name', async (query, field) => {
    for (const path of ['/usage', '/usage/tenants', '/usage/export', `/tenants/${acme}/usage`, `/tenants/${acme}/usage/timeseries`])
      expect(await get(`${path}?${query}`)).toMatchObject({ status: 400, body: { error: { code: 'validation_error', field } } })
  })

  test('is for organisation-level keys that may read emails', async () => {
    const own = await service.makeKey({ tenantId: acme })
    const sender = await service.makeKey({ permissions: ['emails:send'] })
    for (const path of ['/usage', '/usage/tenants', '/usage/export'])
      for (const key of [own, sender])
        expect(await get(path, { key })).toMatchObject({ status: 403, body: { error: { code: 'permission_denied' } } })
  })
})

describe('GET /usage/tenants', () => {
  test('is ordered by the number sent, or as requested, and filtered', async () => {
    const items = async (query: string) => (await get(`/usage/tenants?period=today&${query}`)).body.data as { tenantId: string }[]
    expect((await items('')).at(0)).toEqual({
      tenantId: acme,
      tenantName: 'Acme, "the" best',
      externalId: '4711',
      status: 'active',
      emails: acmeCounts,
      rates: { delivery_rate: 0.6, bounce_rate: 0 },
    })
    expect((await items('sort=tenant_name')).map((one) => one.tenantId)).toEqual([zulu, acme, service.tenantId])
    expect((await items('sort=-tenant_name')).map((one) => one.tenantId)).toEqual([service.tenantId, acme, zulu])
    expect(await items('minSent=1')).toHaveLength(1)
    expect(await items('status=archived')).toEqual([])
    expect((await get('/usage/tenants?perPage=2&page=2')).body).toMatchObject({ page: 2, perPage: 2, total: 3, totalPages: 2, data: [{}] })
    for (const query of ['sort=name', 'minSent=-1', 'perPage=101', 'status=gone'])
      expect(await get(`/usage/tenants?${query}`)).toMatchObject({ status: 400, body: { error: { code: 'validation_error' } } })
  })
})

describe('GET /usage/export', () => {
  const head =
    'tenant_id,tenant_name,external_id,status,sent,delivered,soft_failed,hard_failed,bounced,held,delivery_rate,bounce_rate,period_start,period_end'
  const day = new Date(halfPastTwelve.nowMs()).toISOString().slice(0, 10)
  const [start, end] = [`${day}T00:00:00.000Z`, `${day}T23:59:59.999Z`]

  test('is CSV with a byte order mark by default, quoted and harmless in a spreadsheet', async () => {
    const answer = await fetch(`http://127.0.0.1:${service.port}/v1/usage/export?period=today&minSent=0`, {
      headers: { authorization: `Bearer ${service.liveKey}` },
    })
    const octets = Buffer.from(await answer.arrayBuffer())
    expect(answer.headers.get('content-type')).toBe('text/csv; charset=utf-8')
    expect(answer.headers.get('content-disposition')).toBe(`attachment; filename="usage-${day}_${day}.csv"`)
    expect(octets.subarray(0, 3)).toEqual(Buffer.from([0xef, 0xbb, 0xbf]))
    expect(octets.subarray(3).toString().split('\r\n')).toEqual([
      head,
      `${zulu},' =Zulu,z-1,active,0,0,0,0,0,0,0,0,${start},${end}`,
      `${acme},"Acme, ""the"" best",4711,active,5,3,1,1,0,0,0.6,0,${start},${end}`,
      `${service.tenantId},Default,,active,0,0,0,0,0,0,0,0,${start},${end}`,
      '',
    ])
  })

  const row = { tenant_id: acme, tenant_name: 'Acme, "the" best', external_id: '4711', status: 'active', sent: 5, delivery_rate: 0.6 }

  test('is a bare JSON array for clients that accept JSON', async () => {
    const answer = await get('/usage/export?period=today', { headers: { accept: 'application/json' } })
    expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8')
    const rows = JSON.parse(answer.text) as object[]
    expect(rows).toHaveLength(3)
    expect(rows[1]).toMatchObject({ ...row, tenant_id: acme, period_start: start, period_end: end })
    expect(Object.keys(rows[1] as object).join(',')).toBe(head)
    expect(JSON.parse((await get('/usage/export?format=json&minSent=99')).text)).toEqual([])
  })

  test('is one object a line when requested, with any Accept', async () => {
    const answer = await get('/usage/export?period=today&format=jsonl', { headers: { accept: 'application/json' } })
    expect(answer.headers.get('content-type')).toBe('application/x-ndjson')
    expect(
      answer.text
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line) as object),
    ).toMatchObject([{}, { tenant_id: acme, sent: 5 }, {}])
    expect((await get('/usage/export', { headers: { accept: 'application/x-ndjson' } })).headers.get('content-type')).toBe(
      'application/x-ndjson',
    )
    expect((await get('/usage/export?format=csv', { headers: { accept: 'application/json' } })).headers.get('content-type')).toMatch(
      /^text\/csv/,
    )
    expect(await get('/usage/export?format=xlsx')).toMatchObject({ status: 400, body: { error: { field: 'format' } } })
  })
})

describe('the usage of a tenant', () => {
  test('is shown to its own keys and to the organisation', async () => {
    const own = await service.makeKey({ tenantId: acme })
    for (const key of [own, service.liveKey])
      expect(dataIn(await get(`/tenants/${acme}/usage?period=today`, { key }))).toEqual({
        tenant_id: acme,
        tenant_name: 'Acme, "the" best',
        external_id: '4711',
        period: { start: expect.any(String), end: expect.any(String) },
        emails: acmeCounts,
        rates: { delivery_rate: 0.6, bounce_rate: 0 },
      })
    expect(await get(`/tenants/${zulu}/usage`, { key: own })).toMatchObject({ status: 403, body: { error: { code: 'tenant_mismatch' } } })
    expect(await get('/tenants/nobody/usage')).toMatchObject({ status: 404 })
  })

  test('over time has every bucket up to now', async () => {
    const series = dataIn(await get(`/tenants/${acme}/usage/timeseries?period=today&granularity=hour`)) as unknown as {
      granularity: string
      data: ({ timestamp: string } & Omit<Counts, 'test'>)[]
    }
    expect(series.granularity).toBe('hour')
    expect(series.data.length).toBe(13)
    const { test: _, ...counts } = acmeCounts
    const total = (name: keyof typeof counts) => series.data.reduce((sum, one) => sum + one[name], 0)
    expect(Object.fromEntries(Object.keys(counts).map((name) => [name, total(name as keyof typeof counts)]))).toEqual(counts)
    expect(series.data[0]?.timestamp).toMatch(/T00:00:00\.000Z$/)
    const weeks = dataIn(await get(`/tenants/${acme}/usage/timeseries?period=this_month&granularity=month`)) as unknown as {
      data: object[]
    }
    expect(weeks.data).toEqual([{ timestamp: expect.any(String), ...counts }])
    const long = await get(`/tenants/${acme}/usage/timeseries?period=2020-01-01..2026-01-01&granularity=hour`)
    expect(long).toMatchObject({ status: 400, body: { error: { field: 'granularity' } } })
  })

  test('follows a retry', async () => {
    await service.addDomain(zulu, 'zulu.test')
    const id = await send({ tenantId: zulu, from: 'a@zulu.test', to: ['softfail@simulator.test'] })
    const counts = async () => (dataIn(await get(`/tenants/${zulu}/usage?period=today`)) as { emails: Counts }).emails
    await expect.poll(counts, { timeout: 10_000, interval: 50 }).toMatchObject({ sent: 1, soft_failed: 1, delivered: 0 })
    await service.call('POST', `/emails/${id}/retry`, { key: service.testKey })
    await expect.poll(counts, { timeout: 10_000, interval: 50 }).toMatchObject({ sent: 1 })
  })
})
