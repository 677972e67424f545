import { createHash } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { sql } from '#db'
import { type Answer, type RequestOptions, type Service, startService } from '../support/in-process-service.ts'

interface Credential {
  id: number
  name: string
  key?: string
  smtpUsername?: string
  tenantId: string | null
  permissions: string[] | null
}

const stored = sql<{ row: string }>`
  select credentials::text as row
  from credentials
  where key_hash = $1`

let service: Service
let tenantId: string
beforeAll(async () => {
  service = await startService({ rateLimit: null, settings: { POSTRIDER_REVEAL_KEYS: 'on' } })
  tenantId = await service.makeTenant('Acme')
})
afterAll(() => service.stop())

const call = (method: string, path: string, body?: object, asked: RequestOptions = {}) =>
  service.call(method, path, { key: service.liveKey, ...(body ? { body } : {}), ...asked })
const credentialIn = (answer: Answer) => answer.body.data as Credential
const made = async (path = '/credentials', body: object = {}) => {
  const answer = await call('POST', path, { name: 'one', type: 'api', ...body })
  expect(answer.status, answer.text).toBe(201)
  return credentialIn(answer) as Credential & { key: string }
}

describe('a new credential', () => {
  test('of type api shows its key once, with every field', async () => {
    const created = await made(`/tenants/${tenantId}/credentials`)
    expect(created).toEqual({
      id: expect.any(Number),
      name: 'one',
      type: 'api',
      hold: false,
      key: expect.stringMatching(/^svc_live_[0-9A-Za-z]{32}$/),
      lastUsedAt: null,
      createdAt: expect.stringMatching(/Z$/),
      updatedAt: expect.stringMatching(/Z$/),
      tenantId,
      mode: 'live',
      permissions: null,
      keyPrefix: created.key.slice(0, 8),
    })
    const { key, ...rest } = created
    expect(credentialIn(await call('GET', `/tenants/${tenantId}/credentials/${created.id}`))).toEqual(rest)
    expect(await call('GET', '/limits', undefined, { key })).toMatchObject({ status: 200 })
  })

  test('is stored as the SHA-256 of its key, and its key nowhere', async () => {
    await using plain = await startService()
    const { key } = credentialIn(await plain.call('POST', '/credentials', { key: plain.liveKey, body: { name: 'x', type: 'api' } }))
    const rows = await plain.db.rows(stored, [
      createHash('sha256')
        .update(key ?? '')
        .digest(),
    ])
    expect(rows).toEqual([{ row: expect.not.stringContaining(key?.slice(9) ?? '') }])
  })

  test('of type smtp has a user name, a key without prefix, and is no key of the API', async () => {
    const created = await made(`/tenants/${tenantId}/credentials`, { type: 'smtp', mode: 'test' })
    expect(created).toMatchObject({
      type: 'smtp',
      mode: 'live',
      key: expect.stringMatching(/^[0-9A-Za-z]{32}$/),
      smtpUsername: `${tenantId}/${created.key}`,
    })
    for (const key of [created.key, `svc_live_${created.key}`])
      expect(await call('GET', '/limits', undefined, { key })).toMatchObject({ status: 401, body: { error: { code: 'invalid_api_key' } } })
    expect(await call('POST', '/credentials', { name: 'x', type: 'smtp' })).toMatchObject({
      status: 400,
      body: { error: { code: 'validation_error', field: 'tenantId' } },
    })
  })

  test('is of the organisation, or of the tenant its body or query names', async () => {
    expect((await made()).tenantId).toBe(null)
    expect((await made('/credentials', { tenantId })).tenantId).toBe(tenantId)
    expect((await made('/credentials', { tenant_id: tenantId })).tenantId).toBe(tenantId)
    expect((await made(`/credentials?tenantId=${tenantId}`)).tenantId).toBe(tenantId)
    expect(await call('POST', '/credentials', { name: 'x', type: 'api', tenantId: 'nobody' })).toMatchObject({ status: 404 })
  })

  test('may be limited, and is a test key when asked', async () => {
    const created = await made('/credentials', { mode: 'test', permissions: ['emails:send', 'emails:read', 'emails:send'] })
    expect(created).toMatchObject({ mode: 'test', permissions: ['emails:send', 'emails:read'], key: expect.stringMatching(/^svc_test_/) })
    expect(await call('GET', '/suppressions', undefined, { key: created.key })).toMatchObject({
      body: { error: { code: 'permission_denied' } },
    })
    expect(await call('GET', '/emails', undefined, { key: created.key })).toMatchObject({ status: 200 })
    expect(await made('/credentials', { mode: null, permissions: null })).toMatchObject({ mode: 'live', permissions: null })
  })

  test.each<[string, object, string]>([
    ['without a name', { name: undefined }, 'name'],
    ['with a space in its name', { name: 'a b' }, 'name'],
    ['with a name of 51 characters', { name: 'x'.repeat(51) }, 'name'],
    ['without a type', { type: undefined }, 'type'],
    ['of an unknown type', { type: 'imap' }, 'type'],
    ['of an unknown mode', { mode: 'dry' }, 'mode'],
    ['with no permission at all', { permissions: [] }, 'permissions'],
    ['with an unknown permission', { permissions: ['emails:burn'] }, 'permissions[0]'],
  ])('is refused %s', async (_, body, field) => {
    const answer = await call('POST', '/credentials', { name: 'one', type: 'api', ...body })
    expect(answer).toMatchObject({ status: 400, body: { error: { code: 'validation_error', field } } })
  })

  test('is refused under an archived tenant', async () => {
    const archived = await service.makeTenant('Old')
    await call('PATCH', `/tenants/${archived}`, { status: 'archived' })
    expect(await call('POST', `/tenants/${archived}/credentials`, { name: 'x', type: 'api' })).toMatchObject({
      status: 403,
      body: { error: { code: 'tenant_archived' } },
    })
  })
})

describe('the list', () => {
  test('shows one tenant or the organisation, newest first, by type, without keys', async () => {
    const own = await service.makeTenant('Lister')
    const api = await made(`/tenants/${own}/credentials`, { name: 'api' })
    const smtp = await made(`/tenants/${own}/credentials`, { name: 'smtp', type: 'smtp' })
    const list = await call('GET', `/tenants/${own}/credentials`)
    expect((list.body.data as unknown as Credential[]).map((one) => one.id)).toEqual([smtp.id, api.id])
    expect(list.text).not.toContain(api.key)
    expect(list.body).toMatchObject({ page: 1, perPage: 30, total: 2, totalPages: 1 })
    expect((await call('GET', `/credentials?tenant_id=${own}&type=smtp`)).body.data).toMatchObject([{ id: smtp.id }])
    const organisation = (await call('GET', '/credentials?perPage=100')).body.data as unknown as Credential[]
    expect(organisation.every((one) => one.tenantId === null)).toBe(true)
    expect(await call('GET', '/credentials?type=imap')).toMatchObject({ status: 400, body: { error: { field: 'type' } } })
  })
})

describe('a change', () => {
  test('is in force at once', async () => {
    const { id, key } = await made()
    expect(credentialIn(await call('PATCH', `/credentials/${id}`, { hold: true, name: 'two' }))).toMatchObject({
      id,
      hold: true,
      name: 'two',
    })
    for (const path of ['/limits', '/no-such-endpoint'])
      expect(await call('GET', path, undefined, { key })).toMatchObject({ status: 403, body: { error: { code: 'credential_on_hold' } } })
    await call('PATCH', `/credentials/${id}`, { hold: false, permissions: ['emails:read'] })
    expect(await call('GET', '/tenants', undefined, { key })).toMatchObject({ status: 403, body: { error: { code: 'permission_denied' } } })
    expect(credentialIn(await call('PATCH', `/credentials/${id}`, { permissions: null }))).toMatchObject({ permissions: null })
    expect(await call('GET', '/tenants', undefined, { key })).toMatchObject({ status: 200 })
  })

  test('needs at least one field', async () => {
    const { id } = await made()
    expect(await call('PATCH', `/credentials/${id}`, {})).toMatchObject({ status: 400, body: { error: { code: 'validation_error' } } })
  })
})

describe('a revoked credential', () => {
  test('is gone, and its key is distinguished from an unknown one', async () => {
    const { id, key } = await made()
    expect(await call('DELETE', `/credentials/${id}`)).toMatchObject({ status: 200, body: { data: { deleted: true } } })
    expect(await call('GET', '/limits', undefined, { key })).toMatchObject({ status: 401, body: { error: { code: 'expired_api_key' } } })
    for (const method of ['GET', 'DELETE']) expect(await call(method, `/credentials/${id}`)).toMatchObject({ status: 404 })
    expect(await call('PATCH', `/credentials/${id}`, { hold: true })).toMatchObject({ status: 404 })
  })
})

describe('an id', () => {
  test.each(['0', '-1', '1.5', 'abc', '99999999999999999999', '01', '%00'])('%s is not found', async (id) => {
    expect(await call('GET', `/credentials/${id}`)).toMatchObject({ status: 404, body: { error: { code: 'not_found' } } })
  })

  test('of another tenant is not found', async () => {
    const { id } = await made(`/tenants/${tenantId}/credentials`)
    const other = await service.makeTenant('Other')
    const key = await service.makeKey({ tenantId: other })
    for (const method of ['GET', 'DELETE'])
      expect(await call(method, `/tenants/${other}/credentials/${id}`, undefined, { key })).toMatchObject({ status: 404 })
    expect(await call('GET', `/credentials/${id}`)).toMatchObject({ status: 200 })
    expect(await call('GET', `/credentials/${id}?tenantId=${other}`)).toMatchObject({ status: 404 })
  })
})

describe('a key of one tenant', () => {
  test('manages the credentials of that tenant by its path only', async () => {
    const key = await service.makeKey({ tenantId })
    expect(await call('GET', `/tenants/${tenantId}/credentials`, undefined, { key })).toMatchObject({ status: 200 })
    for (const path of ['/credentials', `/credentials?tenantId=${tenantId}`])
      expect(await call('GET', path, undefined, { key })).toMatchObject({ status: 403, body: { error: { code: 'permission_denied' } } })
    const mine = await call('POST', `/tenants/${tenantId}/credentials`, { name: 'x', type: 'api' }, { key })
    expect(mine).toMatchObject({ status: 201, body: { data: { tenantId } } })
    const limited = await service.makeKey({ tenantId, permissions: ['emails:read'] })
    expect(await call('GET', `/tenants/${tenantId}/credentials`, undefined, { key: limited })).toMatchObject({ status: 403 })
  })
})

describe('revealing', () => {
  test('shows the key again where the operator keeps keys', async () => {
    const { id, key } = await made()
    expect(credentialIn(await call('GET', `/credentials/${id}?reveal=true`)).key).toBe(key)
    expect(credentialIn(await call('GET', `/credentials/${id}?reveal=0`)).key).toBe(undefined)
    const smtp = await made(`/tenants/${tenantId}/credentials`, { type: 'smtp' })
    expect(credentialIn(await call('GET', `/credentials/${smtp.id}?reveal=true`)).smtpUsername).toBe(smtp.smtpUsername)
  })

  test('answers without the key where not', async () => {
    await using plain = await startService()
    const created = await plain.call('POST', '/credentials', { key: plain.liveKey, body: { name: 'x', type: 'api' } })
    const answer = await plain.call('GET', `/credentials/${credentialIn(created).id}?reveal=true`, { key: plain.liveKey })
    expect(answer.status).toBe(200)
    expect(credentialIn(answer)).not.toHaveProperty('key')
  })
})
