/** Suppressions over HTTP (contract 12): both lists, both path families, every way of writing an address into a path. */

import { request } from 'node:http'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Answer, type Service, startService } from '../support/in-process-service.ts'

let service: Service
let tenantId: string
let tenantKey: string
beforeAll(async () => {
  service = await startService({ rateLimit: null })
  tenantId = await service.makeTenant('Shop')
  tenantKey = await service.makeKey({ tenantId })
})
afterAll(() => service.stop())

const ask = (method: string, path: string, body?: object, key = service.testKey) => service.call(method, path, { key, body })
const add = (body: object, path = '/suppressions', key?: string) => ask('POST', path, body, key)
const iso = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
const addresses = ({ body }: Answer) => (body.data as { address: string }[]).map(({ address }) => address)

/** Sends the path unchanged: fetch would encode unusual characters. */
const rawGet = (path: string) =>
  new Promise<{ status: number; data: { address: string; suppressed: boolean } }>((resolve, reject) => {
    const options = { port: service.port, path: `/v1${path}`, headers: { authorization: `Bearer ${service.testKey}` } }
    const asked = request(options, (answer) => {
      const pieces: Buffer[] = []
      answer.on('data', (piece: Buffer) => pieces.push(piece))
      answer.on('end', () => resolve({ status: answer.statusCode ?? 0, data: JSON.parse(Buffer.concat(pieces).toString()).data }))
    })
    asked.on('error', reject).end()
  })

describe('an entry', () => {
  test('is made once with 201, and made again with 200 and the new reason', async () => {
    const made = await add({ address: 'Bob@Example.org', reason: 'asked' })
    expect(made.status).toBe(201)
    expect(made.body.data).toEqual({
      id: expect.stringMatching(/^\d+$/),
      address: 'bob@example.org',
      reason: 'asked',
      createdAt: iso,
      tenantId: null,
      source: 'manual',
    })
    const again = await add({ address: 'bob@example.ORG', reason: 'asked twice' })
    expect(again).toMatchObject({ status: 200, body: { data: { ...(made.body.data as object), reason: 'asked twice' } } })
    expect((await add({ address: 'bob@example.org' })).body.data).toMatchObject({ reason: 'asked twice' })
    expect((await add({ address: 'bob@example.org', reason: null })).body.data).not.toHaveProperty('reason')
  })

  test('is looked up with 200 whether it is there or not', async () => {
    await add({ address: 'there@example.org', reason: 'r' })
    expect((await ask('GET', '/suppressions/there@example.org')).body.data).toEqual({
      address: 'there@example.org',
      suppressed: true,
      reason: 'r',
      createdAt: iso,
    })
    expect((await ask('GET', '/suppressions/Absent@example.org')).body.data).toEqual({
      address: 'absent@example.org',
      suppressed: false,
      reason: null,
      createdAt: null,
    })
    const wrong = { status: 400, body: { error: { code: 'invalid_email_format', field: 'address' } } }
    for (const email of ['bulk', 'a@b', '%20', 'a%00@example.org']) expect(await ask('GET', `/suppressions/${email}`)).toMatchObject(wrong)
    expect(await add({ address: 'nobody' })).toMatchObject(wrong)
  })

  test('is taken away once', async () => {
    await add({ address: 'gone@example.org' })
    const options = { key: service.testKey, headers: { 'content-type': 'application/json' } }
    const taken = await service.call('DELETE', '/suppressions/GONE%40example.org', options)
    expect(taken).toMatchObject({ status: 200, body: { data: { message: expect.stringMatching(/./) } } })
    expect(await ask('DELETE', '/suppressions/gone@example.org')).toMatchObject({ status: 404, body: { error: { code: 'not_found' } } })
    expect(await ask('DELETE', '/suppressions/no-address')).toMatchObject({ status: 404 })
  })

  test.each([
    [{}, 'address'],
    [{ address: 7 }, 'address'],
    [{ address: 'a@example.org', reason: 'x'.repeat(501) }, 'reason'],
    [{ address: 'a@example.org', reason: 'x\0' }, 'reason'],
    [{ address: 'a@example.org', reason: ['x'] }, 'reason'],
  ])('is refused when its form is wrong: %j', async (body, field) => {
    expect(await add(body)).toMatchObject({ status: 400, body: { error: { code: 'validation_error', field } } })
  })
})

describe('an address in a path', () => {
  const odd = [
    'a+b@example.org',
    'a/b@example.org',
    '"quoted @ text"@example.org',
    'per%cent@example.org',
    'per%41cent@example.org',
    'what?=#now@example.org',
    'grüße@example.org',
    'a;b=c@example.org'.replace(';', '!'),
    "o'neil&co@example.org",
  ]

  test.each(odd)('%s is decoded once', async (address) => {
    expect((await add({ address })).status).toBe(201)
    expect(await rawGet(`/suppressions/${encodeURIComponent(address)}`)).toMatchObject({ status: 200, data: { address, suppressed: true } })
    expect(await rawGet(`/suppressions/${encodeURIComponent(address)}?tenantId=`)).toMatchObject({ data: { suppressed: true } })
  })

  test('finds the same entry with @ and + raw or encoded', async () => {
    await add({ address: 'c+d@example.org' })
    for (const form of [
      'c+d@example.org',
      'c%2Bd%40example.org',
      'c+d%40example.org',
      'c%2bd@example.org',
      'C+D@EXAMPLE.ORG',
      'c+d@example.org/',
    ])
      expect(await rawGet(`/suppressions/${form}`), form).toMatchObject({
        status: 200,
        data: { address: 'c+d@example.org', suppressed: true },
      })
    expect(await rawGet('/suppressions/c%20d@example.org')).toMatchObject({ status: 400 })
  })

  test('means the text that encodeURIComponent was given, for any text', async () => {
    const local = fc.stringMatching(/^[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]{1,20}$/)
    await fc.assert(
      fc.asyncProperty(local, async (name) => {
        const { data } = await rawGet(`/suppressions/${encodeURIComponent(`${name}@example.org`)}`)
        expect(data.address).toBe(`${name}@example.org`.toLowerCase())
      }),
      { numRuns: 60 },
    )
  })
})

describe('the lists', () => {
  test('of tenants and of the organisation are kept apart, whichever path leads to them', async () => {
    const other = await service.makeTenant('Other')
    const base = `/tenants/${tenantId}/suppressions`
    expect((await add({ address: 'one@example.org' }, base)).body.data).toMatchObject({ tenantId })
    expect((await add({ address: 'two@example.org', tenantId })).body.data).toMatchObject({ tenantId })
    expect((await add({ address: 'three@example.org', tenant_id: tenantId })).body.data).toMatchObject({ tenantId })
    expect((await add({ address: 'four@example.org' }, '/suppressions', tenantKey)).body.data).toMatchObject({ tenantId })
    const all = ['four@example.org', 'three@example.org', 'two@example.org', 'one@example.org']
    expect(addresses(await ask('GET', base))).toEqual(all)
    expect(addresses(await ask('GET', `/suppressions?tenantId=${tenantId}`))).toEqual(all)
    expect(addresses(await ask('GET', `/suppressions?tenant_id=${tenantId}`))).toEqual(all)
    expect(addresses(await ask('GET', '/suppressions', undefined, tenantKey))).toEqual(all)
    expect(addresses(await ask('GET', '/suppressions'))).not.toContain('one@example.org')
    expect(addresses(await ask('GET', `/tenants/${other}/suppressions`))).toEqual([])
    expect((await ask('GET', `/tenants/${other}/suppressions/one@example.org`)).body.data).toMatchObject({ suppressed: false })
    expect(await ask('DELETE', '/suppressions/one@example.org')).toMatchObject({ status: 404 })
  })

  test('of another tenant are out of reach of a tenant key', async () => {
    const mismatch = { status: 403, body: { error: { code: 'tenant_mismatch' } } }
    const path = `/tenants/${service.tenantId}/suppressions`
    expect(await ask('GET', path, undefined, tenantKey)).toMatchObject(mismatch)
    expect(await add({ address: 'x@example.org' }, path, tenantKey)).toMatchObject(mismatch)
    expect(await add({ address: 'x@example.org', tenantId: service.tenantId }, '/suppressions', tenantKey)).toMatchObject(mismatch)
    expect(await add({ suppressions: [], tenantId: service.tenantId }, '/suppressions/bulk', tenantKey)).toMatchObject(mismatch)
    expect(await add({ address: 'x@example.org', tenantId: 'nobody' })).toMatchObject({
      status: 404,
      body: { error: { code: 'not_found' } },
    })
    expect(await add({ address: 'x@example.org', tenantId }, path)).toMatchObject(mismatch)
  })

  test('are filtered by a part of the address, taken literally, and by the whole reason, and paged', async () => {
    const filling = await service.makeTenant('Filling')
    const base = `/tenants/${filling}/suppressions`
    const suppressions = ['a_b', 'axb', '100%', 'Abc'].map((name) => ({ address: `${name}@example.org`, reason: `for ${name}` }))
    await add({ suppressions }, `${base}/bulk`)
    expect(addresses(await ask('GET', `${base}?address=_B`))).toEqual(['a_b@example.org'])
    expect(addresses(await ask('GET', `${base}?address=%25`))).toEqual(['100%@example.org'])
    expect(addresses(await ask('GET', `${base}?address=%5C`))).toEqual([])
    expect(addresses(await ask('GET', `${base}?reason=for%20axb`))).toEqual(['axb@example.org'])
    expect(addresses(await ask('GET', `${base}?reason=for`))).toEqual([])
    const pages = []
    for (let page = 1; page <= 3; page++) pages.push(...addresses(await ask('GET', `${base}?perPage=2&page=${page}`)))
    expect(new Set(pages).size).toBe(4)
    expect((await ask('GET', `${base}?perPage=3`)).body).toMatchObject({ page: 1, perPage: 3, total: 4, totalPages: 2 })
    expect(await ask('GET', `${base}?perPage=101`)).toMatchObject({ status: 400 })
  })
})

describe('many at once', () => {
  test('are counted as added, updated and failed', async () => {
    await add({ address: 'known@example.org', reason: 'old' })
    const suppressions = [
      { address: 'known@example.org', reason: 'new' },
      { address: 'fresh@example.org', reason: null },
      { address: 'FRESH@example.org', reason: 'last' },
      { address: 'not an address' },
      { address: '' },
      { address: 'plain@example.org' },
    ]
    const answer = await add({ suppressions }, '/suppressions/bulk')
    expect(answer).toMatchObject({ status: 200, body: { data: { totalRequested: 6, added: 2, updated: 2, failed: 2 } } })
    expect((await ask('GET', '/suppressions/known@example.org')).body.data).toMatchObject({ reason: 'new' })
    expect((await ask('GET', '/suppressions/fresh@example.org')).body.data).toMatchObject({ reason: 'last' })
  })

  test('may be none, or 1000 from several callers at once, and no more', async () => {
    const counts = { totalRequested: 0, added: 0, updated: 0, failed: 0 }
    expect((await add({ suppressions: [] }, '/suppressions/bulk')).body.data).toEqual(counts)
    const thousand = Array.from({ length: 1000 }, (_, index) => ({ address: `n${index}@example.org` }))
    const answers = await Promise.all([
      add({ suppressions: thousand }, '/suppressions/bulk'),
      add({ suppressions: thousand.toReversed() }, '/suppressions/bulk'),
    ])
    const sums = answers.map(({ body }) => body.data as typeof counts)
    for (const sum of sums) expect(sum.added + sum.updated + sum.failed).toBe(1000)
    expect((sums[0]?.added ?? 0) + (sums[1]?.added ?? 0)).toBe(1000)
    const many = [...thousand, { address: 'one-more@example.org' }]
    expect(await add({ suppressions: many }, '/suppressions/bulk')).toMatchObject({
      status: 400,
      body: { error: { field: 'suppressions' } },
    })
  })

  test.each([
    [{}, 'suppressions'],
    [{ suppressions: {} }, 'suppressions'],
    [{ suppressions: ['a@example.org'] }, 'suppressions[0]'],
    [{ suppressions: [{}] }, 'suppressions[0].address'],
    [{ suppressions: [{ address: 'a@example.org', reason: 'x'.repeat(501) }] }, 'suppressions[0].reason'],
  ])('are refused when their form is wrong: %j', async (body, field) => {
    expect(await add(body, '/suppressions/bulk')).toMatchObject({ status: 400, body: { error: { code: 'validation_error', field } } })
  })
})
