/** Keys against tenants and credentials: every kind of key on every endpoint of both path families, and changes made at the same moment. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { sql } from '#db'
import { addSource, assignPool, removeSource } from '#delivery'
import { setLimits, tenantLimitScope } from '#limits'
import { deleteRemovedLists } from '#suppressions'
import { type Answer, type RequestOptions, type Service, startService } from '../support/in-process-service.ts'

const domainOf = sql<{ id: number }>`
  select id
  from domains
  where tenant_id = $1`
const leftOf = sql<{ left: number }>`
  select (select count(*) from domains where tenant_id = $1) + (select count(*) from track_domains where tenant_id = $1)
    + (select count(*) from webhooks where tenant_id = $1) + (select count(*) from suppressions where tenant_id = $1)
    + (select count(*) from pool_assignments where tenant_id = $1) + (select count(*) from limit_overrides where scope = 'tenant:' || $1)
    + (select count(*) from credentials where tenant_id = $1 and (revoked_at is null or sealed_key is not null)) as left`

let service: Service
let own: string
let other: string
let keys: Record<'organisation' | 'limited' | 'tenant' | 'limitedTenant', string>
beforeAll(async () => {
  service = await startService({ rateLimit: null, settings: { POSTRIDER_REVEAL_KEYS: 'on' } })
  own = await service.makeTenant('Own')
  other = await service.makeTenant('Other')
  keys = {
    organisation: service.liveKey,
    limited: await service.makeKey({
      permissions: ['emails:send', 'emails:read', 'domains:manage', 'webhooks:manage', 'suppressions:manage'],
    }),
    tenant: await service.makeKey({ tenantId: own }),
    limitedTenant: await service.makeKey({ tenantId: own, permissions: ['emails:send'] }),
  }
})
afterAll(() => service.stop())

const call = (method: string, path: string, body?: object, asked: RequestOptions = {}) =>
  service.call(method, path, { key: service.liveKey, ...(body ? { body } : {}), ...asked })
const idIn = (answer: Answer) => (answer.body.data as { id: number }).id
const codeOf = (answer: Answer) => answer.body.error?.code ?? answer.status
const credentialOf = async (tenantId: string | null) =>
  idIn(await call('POST', tenantId === null ? '/credentials' : `/tenants/${tenantId}/credentials`, { name: 'target', type: 'api' }))
const newKey = { name: 'made', type: 'api' }

describe('the keys that may make a request', () => {
  const denied = 'permission_denied'
  test.each<[string, string, object | undefined, Record<keyof typeof keys, string | number>]>([
    ['POST', '/tenants', { name: 'New' }, { organisation: 201, limited: denied, tenant: denied, limitedTenant: denied }],
    ['GET', '/tenants', undefined, { organisation: 200, limited: denied, tenant: denied, limitedTenant: denied }],
    ['GET', '/tenants/{own}', undefined, { organisation: 200, limited: denied, tenant: 200, limitedTenant: 200 }],
    [
      'GET',
      '/tenants/{other}',
      undefined,
      { organisation: 200, limited: denied, tenant: 'tenant_mismatch', limitedTenant: 'tenant_mismatch' },
    ],
    ['PATCH', '/tenants/{own}', { name: 'Own' }, { organisation: 200, limited: denied, tenant: denied, limitedTenant: denied }],
    ['DELETE', '/tenants/{new}', undefined, { organisation: 200, limited: denied, tenant: denied, limitedTenant: denied }],
    ['POST', '/credentials', newKey, { organisation: 201, limited: denied, tenant: denied, limitedTenant: denied }],
    ['GET', '/credentials', undefined, { organisation: 200, limited: denied, tenant: denied, limitedTenant: denied }],
    ['GET', '/credentials?tenantId={own}', undefined, { organisation: 200, limited: denied, tenant: denied, limitedTenant: denied }],
    ['GET', '/credentials/{id}', undefined, { organisation: 200, limited: denied, tenant: denied, limitedTenant: denied }],
    ['PATCH', '/credentials/{id}', { name: 'x' }, { organisation: 200, limited: denied, tenant: denied, limitedTenant: denied }],
    ['DELETE', '/credentials/{id}', undefined, { organisation: 200, limited: denied, tenant: denied, limitedTenant: denied }],
    ['POST', '/tenants/{own}/credentials', newKey, { organisation: 201, limited: denied, tenant: 201, limitedTenant: denied }],
    ['GET', '/tenants/{own}/credentials', undefined, { organisation: 200, limited: denied, tenant: 200, limitedTenant: denied }],
    ['GET', '/tenants/{own}/credentials/{id}', undefined, { organisation: 200, limited: denied, tenant: 200, limitedTenant: denied }],
    ['PATCH', '/tenants/{own}/credentials/{id}', { name: 'x' }, { organisation: 200, limited: denied, tenant: 200, limitedTenant: denied }],
    ['DELETE', '/tenants/{own}/credentials/{id}', undefined, { organisation: 200, limited: denied, tenant: 200, limitedTenant: denied }],
    [
      'GET',
      '/tenants/{other}/credentials',
      undefined,
      { organisation: 200, limited: denied, tenant: 'tenant_mismatch', limitedTenant: denied },
    ],
    [
      'POST',
      '/tenants/{other}/credentials',
      newKey,
      { organisation: 201, limited: denied, tenant: 'tenant_mismatch', limitedTenant: denied },
    ],
  ])('%s %s', async (method, path, body, expected) => {
    for (const [kind, key] of Object.entries(keys)) {
      const there = path
        .replace('{own}', own)
        .replace('{other}', other)
        .replace('{new}', path.includes('{new}') ? await service.makeTenant('Short') : '')
        .replace('{id}', path.includes('{id}') ? String(await credentialOf(own)) : '')
      const answer = await call(method, there, body, { key })
      const code = expected[kind as keyof typeof keys]
      expect([kind, codeOf(answer)]).toEqual([kind, code])
    }
  })
})

describe('a key of a tenant', () => {
  test('names no other tenant in path, query or body, in either spelling', async () => {
    const path = `/tenants/${own}/credentials`
    const named = [
      await call('GET', `${path}?tenantId=${other}`, undefined, { key: keys.tenant }),
      await call('GET', `${path}?tenant_id=${other}`, undefined, { key: keys.tenant }),
      await call('POST', path, { ...newKey, tenantId: other }, { key: keys.tenant }),
      await call('POST', path, { ...newKey, tenant_id: other }, { key: keys.tenant }),
      await call('POST', path, { ...newKey, tenantId: own, tenant_id: other }, { key: keys.tenant }),
      await call('PATCH', `${path}/${await credentialOf(own)}`, { name: 'x', tenantId: other }, { key: keys.tenant }),
    ]
    expect(named.map((answer) => [answer.status, codeOf(answer)])).toEqual(named.map(() => [403, 'tenant_mismatch']))
  })

  test('makes no wider key: not by a body without a tenant, nor by naming its own', async () => {
    for (const tenantId of [null, undefined, own]) {
      const made = await call('POST', `/tenants/${own}/credentials`, { ...newKey, tenantId }, { key: keys.tenant })
      expect(made).toMatchObject({ status: 201, body: { data: { tenantId: own } } })
    }
  })

  test('finds no credential of the organisation or of another tenant, as if there were none', async () => {
    const unknown = await call('GET', `/tenants/${own}/credentials/999999999`, undefined, { key: keys.tenant })
    for (const id of [await credentialOf(null), await credentialOf(other)])
      for (const [method, body] of [['GET'], ['PATCH', { hold: true }], ['DELETE']] as const) {
        const answer = await call(method, `/tenants/${own}/credentials/${id}`, body, { key: keys.tenant })
        expect({ status: answer.status, error: answer.body.error }).toEqual({ status: 404, error: unknown.body.error })
        expect((await call('GET', `/credentials/${id}`)).body.data).toMatchObject({ hold: false })
      }
  })
})

describe('a key of the organisation', () => {
  test('that names a tenant twice means the same one, or is refused', async () => {
    expect(codeOf(await call('POST', `/tenants/${own}/credentials`, { ...newKey, tenantId: own }))).toBe(201)
    expect(codeOf(await call('POST', `/tenants/${own}/credentials`, { ...newKey, tenantId: other }))).toBe('tenant_mismatch')
    expect(codeOf(await call('GET', `/credentials?tenantId=${own}&tenantId=${own}`))).toBe('validation_error')
  })

  test.each(['k3v9d0q2m7x1c5b8n4t6w2y0', 'UPPER', 'a%00b', 'x'.repeat(300)])('finds nothing under the tenant %s', async (id) => {
    for (const [method, path, body] of [
      ['GET', `/tenants/${id}`],
      ['DELETE', `/tenants/${id}`],
      ['GET', `/tenants/${id}/credentials`],
      ['POST', `/tenants/${id}/credentials`, newKey],
      ['GET', `/credentials?tenantId=${id}`],
      ['GET', `/credentials?tenant_id=${id}`],
      ['POST', '/credentials', { ...newKey, tenantId: decodeURIComponent(id).replace('\0', '') }],
    ] as const)
      expect([path, codeOf(await call(method, path, body))]).toEqual([path, 'not_found'])
  })
})

describe('a malformed body', () => {
  test.each<[string, string, object]>([
    ['POST', 'name', { type: 'api' }],
    ['POST', 'name', { ...newKey, name: null }],
    ['POST', 'name', { ...newKey, name: 7 }],
    ['POST', 'name', { ...newKey, name: 'a\n' }],
    ['POST', 'name', { ...newKey, name: 'ä' }],
    ['POST', 'type', { ...newKey, type: null }],
    ['POST', 'mode', { ...newKey, mode: true }],
    ['POST', 'permissions', { ...newKey, permissions: 'emails:send' }],
    ['POST', 'permissions', { ...newKey, permissions: [] }],
    ['POST', 'permissions[1]', { ...newKey, permissions: ['emails:send', null] }],
    ['PATCH', 'name', { name: null }],
    ['PATCH', 'name', { name: '' }],
    ['PATCH', 'hold', { hold: null }],
    ['PATCH', 'hold', { hold: 'true' }],
    ['PATCH', 'permissions', { permissions: [] }],
    ['PATCH', 'permissions[0]', { permissions: ['emails:burn'] }],
  ])('%s names %s when given %o, in both families', async (method, field, body) => {
    for (const family of ['', `/tenants/${own}`]) {
      const path = `${family}/credentials${method === 'PATCH' ? `/${await credentialOf(own)}` : ''}`
      expect(await call(method, path, body)).toMatchObject({ status: 400, body: { error: { code: 'validation_error', field } } })
    }
  })
})

describe('under an archived tenant', () => {
  test('nothing is made, and all that is there can be read, changed and removed', async () => {
    const id = await service.makeTenant('Archive')
    const credential = await credentialOf(id)
    await service.addDomain(id, 'archive.test')
    const domainId = (await service.db.first(domainOf, [id]))?.id
    await call('POST', `/tenants/${id}/suppressions`, { address: 'a@example.com' })
    await call('PATCH', `/tenants/${id}`, { status: 'archived' })
    for (const [path, body] of [
      [`/tenants/${id}/credentials`, newKey],
      ['/credentials', { ...newKey, tenant_id: id }],
      [`/tenants/${id}/tracking`, { domainId, name: 'click' }],
      ['/tracking', { domainId, name: 'click' }],
      [`/tenants/${id}/suppressions`, { address: 'b@example.com' }],
      [`/tenants/${id}/suppressions/bulk`, { suppressions: [{ address: 'b@example.com' }] }],
      [`/tenants/${id}/suppressions/bulk`, { suppressions: [] }],
      [`/tenants/${id}/suppressions/import`, { suppressions: [], dryRun: true }],
      [`/tenants/${id}/webhooks`, { name: 'x', url: 'https://hooks.example.com/x', events: ['MessageSent'] }],
    ] as const) {
      const answer = await call('POST', path, body)
      expect([path, answer.status, codeOf(answer)]).toEqual([path, 403, 'tenant_archived'])
    }
    expect(await call('GET', `/tenants/${id}/credentials`)).toMatchObject({ status: 200, body: { total: 1 } })
    expect(await call('GET', '/tenants?status=archived')).toMatchObject({ body: { data: [{ id }] } })
    expect(await call('PATCH', `/tenants/${id}/credentials/${credential}`, { hold: true })).toMatchObject({ status: 200 })
    expect(await call('DELETE', `/tenants/${id}/suppressions/a@example.com`)).toMatchObject({ status: 200 })
    expect(await call('DELETE', `/tenants/${id}/credentials/${credential}`)).toMatchObject({ status: 200 })
  })
})

describe('a deleted tenant', () => {
  test('leaves no row but its revoked keys, and no copy of those', async () => {
    const id = await service.makeTenant('Leaving')
    await service.addDomain(id, 'leaving.example')
    const domainId = (await service.db.first(domainOf, [id]))?.id
    const track = { domainId, name: 'click' }
    for (const [path, body] of [
      ['tracking', track],
      ['credentials', newKey],
      ['credentials', { ...newKey, type: 'smtp' }],
      ['suppressions', { address: 'a@example.com' }],
      ['webhooks', { name: 'x', url: 'https://hooks.example.com/x', events: ['MessageSent'] }],
    ] as const)
      expect((await call('POST', `/tenants/${id}/${path}`, body)).status).toBe(201)
    await setLimits(service.db, tenantLimitScope(id), { sendPerHour: 5 })
    await addSource(service.db, { address: '192.0.2.9', ehloName: null, pool: 'bulk', warmUp: 'none' }, Date.now())
    await assignPool(service.db, { pool: 'bulk', tenantId: id, tag: '' }, Date.now())
    expect((await service.db.first(leftOf, [id]))?.left).toBe(8)
    expect(await call('DELETE', `/tenants/${id}`)).toMatchObject({ status: 200 })
    await deleteRemovedLists(service.db)
    expect((await service.db.first(leftOf, [id]))?.left).toBe(0)
    expect(await removeSource(service.db, '192.0.2.9', Date.now())).toMatchObject({ pool: 'bulk' })

    // The names are free again for another tenant.
    await service.addDomain(other, 'leaving.example')
    const again = { ...track, domainId: (await service.db.first(domainOf, [other]))?.id }
    expect(await call('POST', `/tenants/${other}/tracking`, again)).toMatchObject({ status: 201 })
  })
})

describe('requests at the same moment', () => {
  test('no key made while its tenant is deleted outlives it', async () => {
    for (let round = 0; round < 10; round++) {
      const id = await service.makeTenant('Vanishing')
      const making = Array.from({ length: 6 }, () => call('POST', `/tenants/${id}/credentials`, newKey))
      const [made] = await Promise.all([Promise.all(making), call('DELETE', `/tenants/${id}`)])
      for (const answer of made) {
        if (answer.status === 404) continue
        expect(answer.status).toBe(201)
        const { key } = answer.body.data as { key: string }
        expect(codeOf(await call('GET', '/limits', undefined, { key }))).toBe('expired_api_key')
      }
    }
  })

  test('nothing else made while its tenant is deleted outlives it', async () => {
    for (let round = 0; round < 8; round++) {
      const id = await service.makeTenant('Vanishing')
      const make = [
        ['webhooks', { name: 'x', url: 'https://hooks.example.com/x' }],
        ['domains', { name: 'first.example' }],
        ['suppressions', { address: 'a@example.com' }],
        ['webhooks', { name: 'y', url: 'https://hooks.example.com/x' }],
        ['domains', { name: 'second.example' }],
      ] as const
      const [made] = await Promise.all([
        Promise.all(make.map(([path, body]) => call('POST', `/tenants/${id}/${path}`, body))),
        call('DELETE', `/tenants/${id}`),
      ])
      for (const answer of made) expect([201, 404]).toContain(answer.status)
      await deleteRemovedLists(service.db)
      expect((await service.db.first(leftOf, [id]))?.left).toBe(0)
    }
  })

  test('a webhook that is tried while its tenant is deleted is tried or not found', async () => {
    for (let round = 0; round < 8; round++) {
      const id = await service.makeTenant('Vanishing')
      const webhook = idIn(await call('POST', `/tenants/${id}/webhooks`, { name: 'x', url: 'https://hooks.example.com/x' }))
      const trying = Array.from({ length: 8 }, () => call('POST', `/webhooks/${webhook}/test`, { event: 'MessageSent' }))
      // A change to a tenant drops the cached tenant.
      const changing = Array.from({ length: 4 }, (_, n) => call('PATCH', `/tenants/${id}`, { name: `${n}` }))
      const [tried] = await Promise.all([Promise.all(trying), call('DELETE', `/tenants/${id}`), ...changing])
      for (const answer of tried) expect([200, 'not_found']).toContain(codeOf(answer))
    }
  })

  test('a track domain made while its sending domain is deleted is gone with it, or its domain not found', async () => {
    for (let round = 0; round < 8; round++) {
      await service.addDomain(own, `round${round}.example`)
      const { domains } = (await call('GET', `/tenants/${own}/domains`)).body.data as { domains: { id: number }[] }
      const domainId = domains[0]?.id
      const making = Array.from({ length: 8 }, (_, n) => call('POST', '/tracking', { domainId, name: `click${n}` }))
      const [made] = await Promise.all([Promise.all(making), call('DELETE', `/domains/${domainId}`)])
      for (const answer of made) expect([201, 'not_found']).toContain(codeOf(answer))
      expect((await call('GET', `/tenants/${own}/tracking`)).body.data).toEqual({ trackDomains: [] })
    }
  })

  test('only one of two deletions succeeds', async () => {
    const id = await service.makeTenant('Twice')
    const answers = await Promise.all([call('DELETE', `/tenants/${id}`), call('DELETE', `/tenants/${id}`)])
    expect(new Set(answers.map((answer) => answer.status))).toEqual(new Set([200, 404]))
    const credential = await credentialOf(null)
    const revoked = await Promise.all([call('DELETE', `/credentials/${credential}`), call('DELETE', `/credentials/${credential}`)])
    expect(new Set(revoked.map((answer) => answer.status))).toEqual(new Set([200, 404]))
  })
})

describe('paging while rows are added', () => {
  test.each<[string, () => Promise<{ path: string; add: () => Promise<unknown> }>]>([
    ['tenants', async () => ({ path: '/tenants', add: () => service.makeTenant('Paged') })],
    [
      'credentials',
      async () => {
        const id = await service.makeTenant('Paged')
        return { path: `/tenants/${id}/credentials`, add: () => credentialOf(id) }
      },
    ],
  ])('%s: misses none that was there at the start, and keeps the order', async (_, prepared) => {
    const { path, add } = await prepared()
    for (let n = 0; n < 9; n++) await add()
    const all = (await call('GET', `${path}?perPage=100`)).body.data as { id: string | number }[]
    const seen: (string | number)[] = []
    for (let page = 1; ; page++) {
      const answer = await call('GET', `${path}?perPage=4&page=${page}`)
      expect(answer.body).toMatchObject({ page, perPage: 4 })
      const items = answer.body.data as { id: string | number }[]
      if (items.length === 0) break
      seen.push(...items.map((one) => one.id))
      if (page < 4) await add()
      if (page >= (answer.body.totalPages ?? 0)) break
    }
    const distinct = [...new Set(seen)].filter((id) => all.some((one) => one.id === id))
    expect(distinct).toEqual(all.map((one) => one.id))
  })
})

describe('a change that reveals', () => {
  test('shows the key, and the SMTP user name with it', async () => {
    const made = await call('POST', `/tenants/${own}/credentials`, { name: 'smtp', type: 'smtp' })
    const { key, smtpUsername } = made.body.data as { key: string; smtpUsername: string }
    const path = `/tenants/${own}/credentials/${idIn(made)}`
    expect((await call('PATCH', `${path}?reveal=true`, { name: 'renamed' })).body.data).toMatchObject({
      name: 'renamed',
      key,
      smtpUsername,
    })
    const plain = (await call('PATCH', path, { name: 'again' })).body.data
    for (const name of ['key', 'smtpUsername']) expect(plain).not.toHaveProperty(name)
  })
})
