import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { pauseQueue, readQueue } from '#delivery'
import { type Answer, type RequestOptions, type Service, startService } from '../support/in-process-service.ts'
import { neverTwice } from '../support/test-clock.ts'

interface Tenant {
  id: string
  name: string
  status: string
  metadata: Record<string, unknown>
  createdAt: string
  updatedAt: string
}

let service: Service
beforeAll(async () => {
  service = await startService({ rateLimit: null, sendLimit: null, roles: ['delivery', 'housekeeping'], clock: neverTwice() })
})
afterAll(() => service.stop())

const call = (method: string, path: string, body?: object, asked: RequestOptions = {}) =>
  service.call(method, path, { key: service.liveKey, ...(body ? { body } : {}), ...asked })
const tenantIn = (answer: Answer) => answer.body.data as Tenant
const made = async (body: object = { name: 'Acme' }) => tenantIn(await call('POST', '/tenants', body))

describe('a new tenant', () => {
  test('is active, and shown with every field and both spellings of its times', async () => {
    const answer = await call('POST', '/tenants', { name: 'Acme', metadata: { plan: 'gold', seats: 3, paid: true, since: null } })
    expect(answer.status).toBe(201)
    const tenant = tenantIn(answer)
    expect(tenant).toEqual({
      id: expect.stringMatching(/^[a-z][a-z0-9]{23,24}$/),
      name: 'Acme',
      status: 'active',
      metadata: { plan: 'gold', seats: 3, paid: true, since: null },
      isDefault: false,
      createdAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      updatedAt: tenant.createdAt,
      created_at: tenant.createdAt,
      updated_at: tenant.createdAt,
      pauseReason: null,
    })
    expect(tenantIn(await call('GET', `/tenants/${tenant.id}`))).toEqual(tenant)
  })

  test('has empty metadata when it is given none', async () => {
    expect(await made({ name: 'Bare' })).toMatchObject({ metadata: {} })
    expect(await made({ name: 'Bare', metadata: null })).toMatchObject({ metadata: {} })
  })

  test.each<[string, object, string]>([
    ['no name', {}, 'name'],
    ['an empty name', { name: '' }, 'name'],
    ['a name of 101 characters', { name: 'x'.repeat(101) }, 'name'],
    ['a number as its name', { name: 7 }, 'name'],
    ['a name with a NUL', { name: 'a\0b' }, 'name'],
    ['nested metadata', { name: 'a', metadata: { b: { c: 1 } } }, 'metadata.b'],
    ['a list in its metadata', { name: 'a', metadata: { b: [1] } }, 'metadata.b'],
    ['metadata that is a list', { name: 'a', metadata: [] }, 'metadata'],
    ['51 keys', { name: 'a', metadata: Object.fromEntries(Array.from({ length: 51 }, (_, n) => [`k${n}`, 1])) }, 'metadata'],
    ['a key of 41 characters', { name: 'a', metadata: { ['k'.repeat(41)]: 1 } }, `metadata.${'k'.repeat(41)}`],
    ['a value of 501 characters', { name: 'a', metadata: { b: 'x'.repeat(501) } }, 'metadata.b'],
    [
      'metadata over 8192 bytes',
      { name: 'a', metadata: Object.fromEntries(Array.from({ length: 20 }, (_, n) => [`k${n}`, 'x'.repeat(480)])) },
      'metadata',
    ],
  ])('is refused with %s', async (_, body, field) => {
    expect(await call('POST', '/tenants', body)).toMatchObject({ status: 400, body: { error: { code: 'validation_error', field } } })
  })
})

const octets = (metadata: object) => Buffer.byteLength(JSON.stringify(metadata))

describe('the bounds of a tenant', () => {
  const full = Object.fromEntries(Array.from({ length: 20 }, (_, n) => [`k${n}`, 'x'.repeat(400)]))
  const exactly = { ...full, rest: 'y'.repeat(8192 - octets({ ...full, rest: '' })) }

  test.each<[string, object]>([
    ['a name of 100 characters outside the BMP', { name: '😀'.repeat(100) }],
    ['50 keys', { name: 'a', metadata: Object.fromEntries(Array.from({ length: 50 }, (_, n) => [`k${n}`, n])) }],
    ['a key of 40 characters', { name: 'a', metadata: { ['ü'.repeat(40)]: true } }],
    ['a value of 500 characters', { name: 'a', metadata: { b: '😀'.repeat(500) } }],
    ['exactly 8192 bytes', { name: 'a', metadata: exactly }],
    ['keys that objects inherit', { name: 'a', metadata: JSON.parse('{"__proto__":"a","constructor":"b","toString":null}') }],
    ['fractions and negative numbers', { name: 'a', metadata: { ratio: 0.1, below: -7, large: 9007199254740991 } }],
  ])('let through %s, unchanged', async (_, body) => {
    const answer = await call('POST', '/tenants', body)
    expect(answer.status, answer.text).toBe(201)
    expect(tenantIn(answer)).toMatchObject(body)
    expect(JSON.stringify(tenantIn(await call('GET', `/tenants/${tenantIn(answer).id}`)))).toBe(JSON.stringify(tenantIn(answer)))
  })

  test('hold for a change too, which then changes nothing', async () => {
    const { id } = await made({ name: 'Kept', metadata: { a: 1 } })
    for (const [field, body] of [
      ['metadata', { metadata: { ...exactly, rest: `${exactly.rest}y` } }],
      ['metadata.b', { name: 'x', metadata: { b: {} } }],
      ['metadata', { name: 'x', metadata: 'a' }],
      ['name', { name: '', status: 'suspended' }],
      ['status', { name: 'x', status: null }],
    ] as const)
      expect(await call('PATCH', `/tenants/${id}`, body)).toMatchObject({
        status: 400,
        body: { error: { code: 'validation_error', field } },
      })
    expect(tenantIn(await call('GET', `/tenants/${id}`))).toMatchObject({ name: 'Kept', metadata: { a: 1 }, status: 'active' })
  })
})

describe('the list of tenants', () => {
  test('is newest first, by pages and by status, and counts all', async () => {
    const names = ['one', 'two', 'three']
    for (const name of names) await made({ name: `listed ${name}` })
    const page = await call('GET', '/tenants?perPage=2')
    expect(page.status).toBe(200)
    expect((page.body.data as unknown as Tenant[]).map((one) => one.name)).toEqual(['listed three', 'listed two'])
    expect(page.body).toMatchObject({ page: 1, perPage: 2 })
    expect(page.body.totalPages).toBe(Math.ceil((page.body.total ?? 0) / 2))
    const [{ id }] = page.body.data as unknown as [Tenant]
    await call('PATCH', `/tenants/${id}`, { status: 'suspended' })
    const suspended = await call('GET', '/tenants?status=suspended')
    expect(suspended.body.data).toMatchObject([{ id }])
    expect(suspended.body.total).toBe(1)
    expect(await call('GET', '/tenants?status=gone')).toMatchObject({ status: 400, body: { error: { field: 'status' } } })
  })
})

describe('a change', () => {
  test('replaces the given fields and leaves the rest', async () => {
    const { id } = await made({ name: 'Old', metadata: { a: 1, b: 2 } })
    expect(tenantIn(await call('PATCH', `/tenants/${id}`, { metadata: { c: 3 } }))).toMatchObject({ name: 'Old', metadata: { c: 3 } })
    const renamed = tenantIn(await call('PATCH', `/tenants/${id}`, { name: 'New', metadata: null }))
    expect(renamed).toMatchObject({ name: 'New', metadata: {}, status: 'active' })
    expect(renamed.updatedAt >= renamed.createdAt).toBe(true)
  })

  test('needs at least one field, of its type', async () => {
    const { id } = await made()
    for (const body of [{}, { other: 1 }]) expect(await call('PATCH', `/tenants/${id}`, body)).toMatchObject({ status: 400 })
    expect(await call('PATCH', `/tenants/${id}`, { status: 'closed' })).toMatchObject({ status: 400, body: { error: { field: 'status' } } })
    expect(await call('PATCH', `/tenants/${id}`, { name: null })).toMatchObject({ status: 400, body: { error: { field: 'name' } } })
  })

  test('of an unknown tenant is not found', async () => {
    for (const id of ['k3v9d0q2m7x1c5b8n4t6w2y0', 'UPPER', 'a%00b', '../x'])
      expect(await call('PATCH', `/tenants/${encodeURIComponent(id)}`, { name: 'x' })).toMatchObject({
        status: 404,
        body: { error: { code: 'not_found' } },
      })
  })

  test('never suspends, archives or deletes the default tenant', async () => {
    for (const status of ['suspended', 'archived'])
      expect(await call('PATCH', `/tenants/${service.tenantId}`, { status })).toMatchObject({
        status: 400,
        body: { error: { code: 'default_tenant_protected' } },
      })
    expect(await call('DELETE', `/tenants/${service.tenantId}`)).toMatchObject({
      status: 400,
      body: { error: { code: 'default_tenant_protected' } },
    })
    expect(await call('PATCH', `/tenants/${service.tenantId}`, { status: 'active' })).toMatchObject({ status: 200 })
  })

  test('of the status refuses sends at once', async () => {
    const { id } = await made()
    await service.addDomain(id, 'states.test')
    const send = () => call('POST', '/emails', { tenantId: id, from: 'a@states.test', to: ['b@simulator.test'], subject: 's', text: 't' })
    expect((await send()).status).toBe(200)
    await call('PATCH', `/tenants/${id}`, { status: 'suspended' })
    expect(await send()).toMatchObject({ status: 403, body: { error: { code: 'tenant_suspended' } } })
    await call('PATCH', `/tenants/${id}`, { status: 'archived' })
    expect(await send()).toMatchObject({ status: 403, body: { error: { code: 'tenant_archived' } } })
    expect(await call('GET', `/tenants/${id}/suppressions`)).toMatchObject({ status: 200 })
    await call('PATCH', `/tenants/${id}`, { status: 'active' })
    expect((await send()).status).toBe(200)
  })
})

describe('the readers of a tenant', () => {
  test('are all keys of the tenant itself, with any permissions, and no key of another', async () => {
    const { id } = await made()
    const own = await service.makeKey({ tenantId: id, permissions: ['emails:send'] })
    const limited = await service.makeKey({ permissions: ['emails:read'] })
    const other = await service.makeKey({ tenantId: (await made()).id })
    expect(await call('GET', `/tenants/${id}`, undefined, { key: own })).toMatchObject({ status: 200, body: { data: { id } } })
    expect(await call('GET', `/tenants/${id}`, undefined, { key: limited })).toMatchObject({
      body: { error: { code: 'permission_denied' } },
    })
    expect(await call('GET', `/tenants/${id}`, undefined, { key: other })).toMatchObject({ body: { error: { code: 'tenant_mismatch' } } })
    for (const [method, path] of [
      ['GET', '/tenants'],
      ['POST', '/tenants'],
      ['PATCH', `/tenants/${id}`],
      ['DELETE', `/tenants/${id}`],
    ] as const)
      expect(await call(method, path, undefined, { key: own })).toMatchObject({
        status: 403,
        body: { error: { code: 'permission_denied' } },
      })
  })
})

describe('a deleted tenant', () => {
  test('takes its keys, domains and suppressions along, and leaves its emails to the organisation', async () => {
    const { id } = await made()
    await service.addDomain(id, 'leaving.test')
    const key = await service.makeKey({ tenantId: id })
    const sent = await call(
      'POST',
      '/emails',
      { from: 'a@leaving.test', to: ['softfail@simulator.test'], subject: 's', text: 't' },
      { key },
    )
    const emailId = (sent.body.data as { id: string }).id
    await call('POST', `/tenants/${id}/suppressions`, { address: 'x@example.com' })
    await pauseQueue(service.db, { tenantId: id, kind: 'domain', name: 'leaving.test' }, 'a test', Date.now())
    expect(await call('DELETE', `/tenants/${id}`)).toMatchObject({ status: 200, body: { data: { deleted: true } } })

    expect(await call('GET', '/limits', undefined, { key })).toMatchObject({ status: 401, body: { error: { code: 'expired_api_key' } } })
    for (const [method, path] of [
      ['GET', `/tenants/${id}`],
      ['DELETE', `/tenants/${id}`],
      ['GET', `/tenants/${id}/suppressions`],
    ] as const)
      expect(await call(method, path)).toMatchObject({ status: 404, body: { error: { code: 'not_found' } } })
    expect((await readQueue(service.db, null, 1, Date.now())).pauses).toEqual([])
    const status = async () => (await call('GET', `/emails/${emailId}`)).body.data as { status: string; tenantId: string }
    expect((await status()).tenantId).toBe(id)
    await expect.poll(async () => (await status()).status, { timeout: 10_000, interval: 50 }).toBe('hardfail')
  })
})

test('the privacy of a tenant is read, changed and removed', async () => {
  const { id } = await made()
  const path = `/tenants/${id}/privacy`
  const read = async () => (await call('GET', path)).body.data
  expect(await read()).toEqual({
    tenantId: id,
    contentDays: null,
    hashAddressesAfterDays: null,
    recordDays: null,
    contentVisibleTo: 'everyone',
  })
  for (const contentDays of [0, 3650, null]) {
    expect(await call('PATCH', path, { contentDays })).toMatchObject({ status: 200, body: { data: { tenantId: id, contentDays } } })
    expect(await read()).toEqual({
      tenantId: id,
      contentDays,
      hashAddressesAfterDays: null,
      recordDays: null,
      contentVisibleTo: 'everyone',
    })
  }
  for (const contentDays of [-1, 3651, 1.5, '7'])
    expect(await call('PATCH', path, { contentDays })).toMatchObject({ status: 400, body: { error: { field: 'contentDays' } } })
  expect(await call('PATCH', path, {})).toMatchObject({ status: 400 })
  for (const hashAddressesAfterDays of [1, 3650, null]) {
    const changed = { tenantId: id, contentDays: null, hashAddressesAfterDays, recordDays: null, contentVisibleTo: 'everyone' }
    expect(await call('PATCH', path, { hashAddressesAfterDays })).toMatchObject({ status: 200, body: { data: changed } })
    expect(await read()).toEqual(changed)
  }
  for (const hashAddressesAfterDays of [0, 3651, 1.5, '7'])
    expect(await call('PATCH', path, { hashAddressesAfterDays })).toMatchObject({
      status: 400,
      body: { error: { field: 'hashAddressesAfterDays' } },
    })
  for (const recordDays of [1, 3650, null]) {
    const changed = { tenantId: id, contentDays: null, hashAddressesAfterDays: null, recordDays, contentVisibleTo: 'everyone' }
    expect(await call('PATCH', path, { recordDays })).toMatchObject({ status: 200, body: { data: changed } })
    expect(await read()).toEqual(changed)
  }
  for (const recordDays of [0, 3651, 1.5, '7'])
    expect(await call('PATCH', path, { recordDays })).toMatchObject({ status: 400, body: { error: { field: 'recordDays' } } })
  for (const contentVisibleTo of ['admins', 'owners', 'everyone'])
    expect(await call('PATCH', path, { contentVisibleTo })).toMatchObject({ body: { data: { contentDays: null, contentVisibleTo } } })
  for (const contentVisibleTo of ['nobody', null, 1])
    expect(await call('PATCH', path, { contentVisibleTo })).toMatchObject({ status: 400, body: { error: { field: 'contentVisibleTo' } } })
  expect(await read()).toEqual({
    tenantId: id,
    contentDays: null,
    hashAddressesAfterDays: null,
    recordDays: null,
    contentVisibleTo: 'everyone',
  })
  expect(await call('PATCH', '/tenants/nosuchtenant/privacy', { contentDays: 0 })).toMatchObject({ status: 404 })
  expect(await call('GET', '/tenants/nosuchtenant/privacy')).toMatchObject({ status: 404 })
})
