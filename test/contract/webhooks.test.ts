/** Webhooks over HTTP (contract 13), with a real receiver that verifies every request from its bytes. */

import { createHmac, createPublicKey, type JsonWebKey, verify } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { openIds, openSecrets, readConfig, systemClock, systemRandom } from '#base'
import { appendEvents } from '#events'
import { openGuard, openPost, openResolver } from '#net'
import { openTenants } from '#tenants'
import { type NewDelivery, openWebhooks, recordDeliveries, removeWebhooksOfTenant, webhookEvents } from '#webhooks'
import { type Service, startService } from '../support/in-process-service.ts'
import { type Jwk, jwksOf } from '../support/jwks.ts'
import { runHere } from '../support/run-command.ts'
import { type Received, type Receiver, startReceiver } from '../support/webhook-receiver.ts'

const ids = openIds(systemRandom)
let service: Service
let receiver: Receiver
let tenantId: string
let tenantKey: string
beforeAll(async () => {
  service = await startService({ rateLimit: null, settings: { POSTRIDER_ALLOWED_NETWORKS: '127.0.0.0/8', POSTRIDER_DNS: '127.0.0.1:9' } })
  receiver = await startReceiver()
  tenantId = await service.makeTenant('Shop')
  tenantKey = await service.makeKey({ tenantId })
})
beforeEach(() => {
  receiver.answer = (response) => response.end('thanks')
})
afterAll(async () => {
  await receiver[Symbol.asyncDispose]()
  await service.stop()
})

interface Hook {
  id: string
  uuid: string
  secret: string
  events: string[]
  allEvents: boolean
  disabledAt: string | null
  createdAt: string
  updatedAt: string
}

const ask = (method: string, path: string, body?: object, key = service.testKey) => service.call(method, path, { key, body })
const dataOf = async <T = Hook>(answer: ReturnType<typeof ask>) => (await answer).body.data as T
const wanted = (more: object = {}) => ({ name: 'orders', url: `${receiver.url}/hook`, ...more })
const make = (more: object = {}, path = '/webhooks', key?: string) => dataOf(ask('POST', path, wanted(more), key))
const iso = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
const uuid = expect.stringMatching(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/)
const secretForm = expect.stringMatching(/^whsec_[A-Za-z0-9+/]{43}=$/)
const refused = (status: number, code: string, field?: string) => ({ status, body: { error: { code, ...(field ? { field } : {}) } } })

const lastRequest = () => receiver.received.at(-1) as Received

/** The positions of the secrets that signed it; also checks the RSA signature against the published keys. */
async function verified({ headers, body }: Received, secrets: readonly string[], header = 'x-webhook-signature'): Promise<number[]> {
  const signatures = String(headers['webhook-signature']).split(' ')
  const signedBy = secrets.map((secret) => {
    const key = Buffer.from(secret.replace('whsec_', ''), 'base64')
    expect(key).toHaveLength(32)
    const text = `${headers['webhook-id']}.${headers['webhook-timestamp']}.`
    return signatures.includes(`v1,${createHmac('sha256', key).update(text).update(body).digest('base64')}`)
  })
  const { keys } = await jwksOf(service.port)
  const jwk = keys.find(({ kid }) => kid === headers[`${header}-kid`]) as Jwk
  const publicKey = createPublicKey({ key: jwk as unknown as JsonWebKey, format: 'jwk' })
  expect(verify('RSA-SHA256', body, publicKey, Buffer.from(String(headers[header]), 'base64'))).toBe(true)
  return signedBy.flatMap((signed, index) => (signed ? [index] : []))
}

describe('a webhook', () => {
  test('is made with a secret that is shown then, on request, and at no other time', async () => {
    const answer = await ask('POST', '/webhooks', wanted())
    expect(answer.status).toBe(201)
    const made = answer.body.data as Hook
    const shown = {
      id: expect.stringMatching(/^\d+$/),
      uuid,
      name: 'orders',
      url: `${receiver.url}/hook`,
      events: [],
      allEvents: true,
      enabled: true,
      disabledAt: null,
      disabledReason: null,
      timeoutSeconds: 5,
      failingSince: null,
      createdAt: iso,
      updatedAt: iso,
      tenantId: null,
    }
    expect(made).toEqual({ ...shown, secret: secretForm })
    const { secret, ...rest } = made
    for (const given of [made.id, made.uuid, made.uuid.toUpperCase()]) expect(await dataOf(ask('GET', `/webhooks/${given}`))).toEqual(rest)
    expect(await dataOf(ask('GET', `/webhooks/${made.id}?reveal=true`))).toEqual({ ...rest, secret })
    const { webhooks } = await dataOf<{ webhooks: Hook[] }>(ask('GET', '/webhooks'))
    expect(webhooks).toContainEqual(rest)
    const stored = await service.db.script(
      `do $$ begin assert not exists (select from webhooks where encode(secret, 'escape') like '%whsec_%'); end $$`,
    )
    expect(stored).toBeUndefined()
  })

  test('gets all events, or those that are named', async () => {
    expect(await make({ events: ['MessageSent', 'MessageHeld', 'MessageSent'] })).toMatchObject({
      events: ['MessageSent', 'MessageHeld'],
      allEvents: false,
    })
    expect(await make({ events: ['MessageSent'], allEvents: true })).toMatchObject({ events: [], allEvents: true })
    expect(await make({ events: [], allEvents: true })).toMatchObject({ allEvents: true })
    expect(await make({ events: null, allEvents: null, enabled: null })).toMatchObject({ events: [], allEvents: true, enabled: true })
    for (const [more, field] of [
      [{ events: [] }, 'events'],
      [{ allEvents: false }, 'allEvents'],
      [{ events: ['SendLimitExceeded'] }, 'events[0]'],
    ] as const)
      expect(await ask('POST', '/webhooks', wanted(more))).toMatchObject(refused(400, 'validation_error', field))

    const { id } = await make()
    const change = (body: object) => dataOf(ask('PATCH', `/webhooks/${id}`, body))
    expect(await ask('PATCH', `/webhooks/${id}`, { allEvents: false })).toMatchObject(refused(400, 'validation_error', 'allEvents'))
    expect(await change({ events: ['MessageLoaded'] })).toMatchObject({ events: ['MessageLoaded'], allEvents: false })
    expect(await ask('PATCH', `/webhooks/${id}`, { events: [] })).toMatchObject(refused(400, 'validation_error', 'events'))
    expect(await change({ allEvents: true })).toMatchObject({ events: [], allEvents: true })
    expect(await change({ allEvents: false })).toMatchObject({ events: ['MessageLoaded'], allEvents: false })
  })

  test('changes in its given fields, and in no others', async () => {
    const made = await make({ events: ['MessageSent'] })
    const { secret: _, updatedAt: __, ...rest } = made
    const nothing = { name: null, url: null, events: null, allEvents: null, enabled: null, timeoutSeconds: null, rotateSecret: null }
    for (const body of [{}, nothing, { rotateSecret: false, other: 1 }])
      expect(await dataOf(ask('PATCH', `/webhooks/${made.id}`, body))).toEqual({ ...rest, updatedAt: iso })
    const changed = { name: 'n', url: `${receiver.url}/other`, enabled: false, timeoutSeconds: 30 }
    const off = { disabledAt: iso, disabledReason: 'requested' }
    expect(await dataOf(ask('PATCH', `/webhooks/${made.uuid}`, changed))).toEqual({ ...rest, ...changed, ...off, updatedAt: iso })
  })

  test('shows since when it is disabled, and no longer once it is enabled', async () => {
    const born = await make({ enabled: false })
    expect(born).toMatchObject({ disabledAt: born.createdAt, disabledReason: 'requested' })
    const { id } = await make()
    const change = (body: object, path = '/webhooks') => dataOf(ask('PATCH', `${path}/${id}`, body))
    const { disabledAt } = await change({ enabled: false })
    for (const path of ['/webhooks', '/platform/webhooks'])
      for (const body of [{ name: 'still off' }, { enabled: false }])
        expect(await change(body, path)).toMatchObject({ enabled: false, disabledAt, disabledReason: 'requested' })
    expect(await change({ enabled: true })).toMatchObject({ enabled: true, disabledAt: null, disabledReason: null })
    expect(await change({ name: 'still on' })).toMatchObject({ disabledAt: null, disabledReason: null })
  })

  test('is deleted once', async () => {
    const { id } = await make()
    expect(await ask('DELETE', `/webhooks/${id}`)).toMatchObject({ status: 200, body: { data: { message: expect.stringMatching(/./) } } })
    for (const method of ['DELETE', 'GET', 'PATCH']) expect(await ask(method, `/webhooks/${id}`)).toMatchObject(refused(404, 'not_found'))
  })

  test.each([
    [{ name: '' }, 'validation_error', 'name'],
    [{ name: 'x'.repeat(101) }, 'validation_error', 'name'],
    [{ name: 'x\0' }, 'validation_error', 'name'],
    [{ url: 'nowhere' }, 'validation_error', 'url'],
    [{ url: `https://example.com/${'x'.repeat(2048)}` }, 'validation_error', 'url'],
    [{ url: 'http://8.8.8.8/' }, 'webhook_url_not_allowed', 'url'],
    [{ url: 'https://10.0.0.1/' }, 'webhook_url_not_allowed', 'url'],
    [{ url: 'https://169.254.169.254/latest' }, 'webhook_url_not_allowed', 'url'],
    [{ url: 'https://user:pw@8.8.8.8/' }, 'webhook_url_not_allowed', 'url'],
    [{ timeoutSeconds: 0 }, 'validation_error', 'timeoutSeconds'],
    [{ timeoutSeconds: 31 }, 'validation_error', 'timeoutSeconds'],
    [{ enabled: 'yes' }, 'validation_error', 'enabled'],
  ])('is refused at making and at changing with %j', async (more, code, field) => {
    expect(await ask('POST', '/webhooks', wanted(more))).toMatchObject(refused(400, code, field))
    const { id } = await make()
    expect(await ask('PATCH', `/webhooks/${id}`, more)).toMatchObject(refused(400, code, field))
  })

  test('may have a name that cannot be looked up yet', async () => {
    expect(await make({ url: 'https://not.yet.invalid/' })).toMatchObject({ url: 'https://not.yet.invalid/' })
  })

  test('ids that cannot be are not found', async () => {
    for (const id of ['0', '-1', '01', 'x', '9'.repeat(30), '%00', ids.uuid()])
      expect(await ask('GET', `/webhooks/${id}`), id).toMatchObject(refused(404, 'not_found'))
  })
})

describe('the views', () => {
  test('of the organisation show one record, where no events means all', async () => {
    const answer = await ask('POST', '/platform/webhooks', wanted({ events: ['MessageSent'] }))
    expect(answer.status).toBe(201)
    const made = answer.body.data as Hook
    expect(made).toMatchObject({ events: ['MessageSent'], allEvents: false, secret: secretForm })
    expect(await dataOf(ask('GET', `/webhooks/${made.id}`))).toMatchObject({ id: made.id, uuid: made.uuid, tenantId: null })
    expect(await dataOf(ask('PATCH', `/platform/webhooks/${made.id}`, { events: [] }))).toMatchObject({ events: [], allEvents: true })
    expect(await dataOf(ask('GET', `/webhooks/${made.id}`))).toMatchObject({ allEvents: true })
    await ask('PATCH', `/webhooks/${made.id}`, { name: 'renamed' })
    const all = await dataOf<Hook[]>(ask('GET', '/platform/webhooks'))
    expect(Array.isArray(all)).toBe(true)
    expect(all.find(({ id }) => id === made.id)).toMatchObject({ name: 'renamed' })
    expect(all.every((one) => !('secret' in one))).toBe(true)
    expect(await dataOf(ask('GET', `/platform/webhooks/${made.uuid}?reveal=1`))).toMatchObject({ secret: made.secret })
    expect(await make({ events: [] }, '/platform/webhooks')).toMatchObject({ allEvents: true })
    const postal = await make({ events: [], format: 'postal' }, '/platform/webhooks')
    expect(postal).toMatchObject({ format: 'postal' })
    expect(await dataOf(ask('GET', `/webhooks/${postal.id}`))).toMatchObject({ format: 'postal' })
    expect(await dataOf(ask('PATCH', `/platform/webhooks/${postal.id}`, { format: 'ses' }))).toMatchObject({ format: 'ses' })
    expect(await ask('DELETE', `/platform/webhooks/${made.id}`)).toMatchObject({ status: 200 })
    expect(await ask('GET', `/webhooks/${made.id}`)).toMatchObject(refused(404, 'not_found'))
  })

  test('of a tenant show its own records only', async () => {
    const other = await service.makeTenant('Other')
    const foreign = await make({}, `/tenants/${other}/webhooks`)
    const organisation = await make()
    const own = await make({}, `/tenants/${tenantId}/webhooks`)
    expect(await make({ tenantId })).toMatchObject({ tenantId })
    expect(await make({}, '/webhooks', tenantKey)).toMatchObject({ tenantId })
    for (const hook of [foreign, organisation]) {
      for (const [method, path, body] of [
        ['GET', '', undefined],
        ['PATCH', '', { name: 'stolen' }],
        ['DELETE', '', undefined],
        ['POST', '/test', { event: 'MessageSent' }],
        ['GET', '/deliveries', undefined],
        ['GET', `/deliveries/${ids.uuid()}`, undefined],
        ['POST', `/deliveries/${ids.uuid()}/replay`, undefined],
      ] as const) {
        expect(await ask(method, `/webhooks/${hook.id}${path}`, body, tenantKey)).toMatchObject(refused(404, 'not_found'))
        expect(await ask(method, `/tenants/${tenantId}/webhooks/${hook.uuid}${path}`, body)).toMatchObject(refused(404, 'not_found'))
      }
    }
    const { webhooks } = await dataOf<{ webhooks: { tenantId: string }[] }>(ask('GET', '/webhooks', undefined, tenantKey))
    expect(new Set(webhooks.map((one) => one.tenantId))).toEqual(new Set([tenantId]))
    expect(await ask('GET', `/webhooks/${own.id}?tenantId=${other}`)).toMatchObject(refused(404, 'not_found'))
    expect(await ask('PATCH', `/webhooks/${own.id}`, { tenantId: other, name: 'x' })).toMatchObject(refused(404, 'not_found'))
    expect(await ask('GET', `/webhooks/${foreign.id}`)).toMatchObject({ status: 200 })
    expect(await ask('GET', `/platform/webhooks/${own.id}`)).toMatchObject(refused(404, 'not_found'))
    expect(await ask('GET', '/platform/webhooks', undefined, tenantKey)).toMatchObject(refused(403, 'permission_denied'))
    expect(await ask('GET', `/tenants/${other}/webhooks`, undefined, tenantKey)).toMatchObject(refused(403, 'tenant_mismatch'))
    expect(await ask('POST', '/webhooks', wanted({ tenantId: other }), tenantKey)).toMatchObject(refused(403, 'tenant_mismatch'))
    expect(await ask('POST', '/webhooks', wanted({ tenantId: 'nobody' }))).toMatchObject(refused(404, 'not_found'))
  })

  test('of an archived tenant take no new webhook', async () => {
    const archived = await service.makeTenant('Archived')
    await service.db.script(`update tenants set status = 'archived' where id = '${archived}'`)
    expect(await ask('POST', `/tenants/${archived}/webhooks`, wanted())).toMatchObject(refused(403, 'tenant_archived'))
  })

  test('of a tenant that is removed have nothing left', async () => {
    const gone = await service.makeTenant('Gone')
    const hook = await make({}, `/tenants/${gone}/webhooks`)
    const { id } = await deliver(hook, { tenantId: gone })
    await service.db.transaction((tx) => removeWebhooksOfTenant(tx, gone, Date.now()))
    expect(await ask('GET', `/webhooks/${hook.id}`)).toMatchObject(refused(404, 'not_found'))
    expect(await ask('GET', `/webhooks/${hook.id}/deliveries/${id}`)).toMatchObject(refused(404, 'not_found'))
  })
})

describe('a test', () => {
  test.each(webhookEvents)('sends a sample of %s that looks real and verifies', async (event) => {
    const hook = await make({ enabled: false })
    const answer = await ask('POST', `/webhooks/${hook.id}/test`, { event })
    const duration = expect.any(Number)
    expect(answer).toMatchObject({ status: 200 })
    expect(answer.body.data).toEqual({ success: true, event, statusCode: 200, duration, durationMs: duration, body: 'thanks', error: null })
    const request = lastRequest()
    expect(await verified(request, [hook.secret])).toEqual([0])
    expect(request).toMatchObject({
      method: 'POST',
      path: '/hook',
      headers: {
        'content-type': 'application/json',
        'user-agent': 'Postrider/test',
        'webhook-id': uuid,
        'x-webhook-event': event,
        'x-webhook-attempt': '1',
      },
    })
    const body = JSON.parse(request.body.toString()) as { uuid: string; payload: Record<string, unknown>; timestamp: number }
    expect(Object.keys(body)).toEqual(['event', 'timestamp', 'uuid', 'tenant_id', 'payload'])
    expect(body).toMatchObject({ event, tenant_id: service.tenantId, uuid: request.headers['webhook-id'] })
    expect(Math.abs(body.timestamp - Number(request.headers['webhook-timestamp']))).toBeLessThan(2)
    if (event === 'DomainDNSError') expect(body.payload).toHaveProperty('server.organization')
    else if (event === 'ReputationWarning') expect(body.payload).toMatchObject({ kind: 'block_rate_up', severity: 'problem' })
    else if (event === 'MessageReceived') expect(body.payload['raw_url']).toContain(`/v1/received/${body.payload['id']}/raw`)
    else {
      const message = (body.payload['message'] ?? body.payload['original_message']) as { metadata: object }
      expect(body.payload['metadata']).toEqual(message.metadata)
    }
  })

  test('in the platform view is marked, and has 0 where the other has null', async () => {
    const hook = await make({}, '/platform/webhooks')
    await ask('POST', `/platform/webhooks/${hook.id}/test`, { event: 'MessageSent' })
    expect(JSON.parse(lastRequest().body.toString())).toMatchObject({ _test: true, event: 'MessageSent' })
    const dead = await startReceiver()
    await dead[Symbol.asyncDispose]()
    await ask('PATCH', `/webhooks/${hook.id}`, { url: dead.url })
    const failed = { success: false, body: null, error: expect.stringContaining('ECONNREFUSED'), event: 'MessageSent' }
    expect(await dataOf(ask('POST', `/platform/webhooks/${hook.id}/test`, { event: 'MessageSent' }))).toMatchObject({
      ...failed,
      statusCode: 0,
    })
    expect(await dataOf(ask('POST', `/webhooks/${hook.id}/test`, { event: 'MessageSent' }))).toMatchObject({ ...failed, statusCode: null })
  })

  test('shows the answer, follows no redirect, and leaves no record', async () => {
    const hook = await make({}, `/tenants/${tenantId}/webhooks`)
    receiver.answer = (response) => response.writeHead(302, { location: `${receiver.url}/else` }).end('x'.repeat(20_000))
    const before = receiver.received.length
    const data = await dataOf<{ body: string }>(ask('POST', `/webhooks/${hook.id}/test`, { event: 'MessageHeld' }, tenantKey))
    expect(data).toMatchObject({ success: false, statusCode: 302, error: null })
    expect(data.body).toHaveLength(10_000)
    expect(receiver.received).toHaveLength(before + 1)
    expect(JSON.parse(lastRequest().body.toString())).toMatchObject({ tenant_id: tenantId })
    expect((await ask('GET', `/webhooks/${hook.id}/deliveries`)).body).toMatchObject({ data: [], total: 0, totalPages: 0 })
  })

  test('of an event that has no name there is refused', async () => {
    const { id } = await make()
    for (const body of [{}, { event: 'SendLimitExceeded' }, { event: null }])
      expect(await ask('POST', `/webhooks/${id}/test`, body)).toMatchObject(refused(400, 'validation_error', 'event'))
  })
})

describe('a rotated secret', () => {
  test('signs beside the old one for a day', async () => {
    const hook = await make()
    const { secret } = await dataOf(ask('PATCH', `/webhooks/${hook.id}`, { rotateSecret: true }))
    expect(secret).not.toBe(hook.secret)
    expect(await dataOf(ask('GET', `/webhooks/${hook.id}?reveal=true`))).toMatchObject({ secret })
    const test = () => ask('POST', `/webhooks/${hook.id}/test`, { event: 'MessageSent' })
    await test()
    expect(await verified(lastRequest(), [secret, hook.secret])).toEqual([0, 1])
    await service.db.script(
      `update webhooks set old_secrets = jsonb_set(old_secrets, '{0,until}', '"2020-01-01T00:00:00.000Z"') where id = ${hook.id}`,
    )
    await test()
    expect(await verified(lastRequest(), [secret, hook.secret])).toEqual([0])
  })
})

/** Writes a delivery record as the sender does. */
async function deliver(hook: Hook, more: Partial<NewDelivery> = {}): Promise<NewDelivery> {
  const eventUuid = ids.uuid()
  const made: NewDelivery = {
    id: ids.uuid(),
    webhookId: Number(hook.id),
    tenantId: service.tenantId,
    eventUuid,
    event: 'MessageSent',
    url: 'https://old.example.com/',
    attempt: 2,
    success: false,
    statusCode: 503,
    willRetry: true,
    at: new Date(),
    durationMs: 12,
    requestHeaders: { 'webhook-id': eventUuid },
    payload: JSON.stringify({
      event: 'MessageSent',
      timestamp: 1,
      uuid: eventUuid,
      tenant_id: service.tenantId,
      payload: { subject: 'é\u0000😀' },
    }),
    responseBody: 'later',
    error: null,
    ...more,
  }
  await recordDeliveries(service.db, [made])
  return made
}

describe('deliveries', () => {
  test('are listed newest first and filtered', async () => {
    const hook = await make()
    const atMs = Math.floor(Date.now() / 1000) * 1000
    const first = await deliver(hook, { at: new Date(atMs) })
    const second = await deliver(hook, { at: new Date(atMs + 1000), success: true, statusCode: 200, willRetry: false })
    const third = await deliver(hook, { at: new Date(atMs + 2000), event: 'MessageHeld', statusCode: null, tenantId })
    const list = (query = '', path = `/webhooks/${hook.id}/deliveries`) => ask('GET', path + query)
    const idsOf = async (query?: string, path?: string) => ((await list(query, path)).body.data as { id: string }[]).map(({ id }) => id)
    expect(await idsOf()).toEqual([third.id, second.id, first.id])
    expect((await list()).body).toMatchObject({
      total: 3,
      totalPages: 1,
      data: [{ statusCode: null, tenantId }, { success: true }, {}],
    })
    expect(((await list()).body.data as object[])[2]).toEqual({
      id: first.id,
      webhookId: hook.id,
      tenantId: service.tenantId,
      event: 'MessageSent',
      eventId: expect.stringMatching(/^[0-9a-f-]{36}$/),
      emailId: null,
      recipient: null,
      url: 'https://old.example.com/',
      attempt: 2,
      success: false,
      statusCode: 503,
      willRetry: true,
      timestamp: new Date(atMs).toISOString(),
    })
    expect(await idsOf('?success=true')).toEqual([second.id])
    expect(await idsOf('?success=0')).toEqual([third.id, first.id])
    expect(await idsOf('?event=MessageHeld')).toEqual([third.id])
    expect(await idsOf(`?after=${atMs / 1000}&before=${atMs / 1000 + 2}`)).toEqual([second.id])
    expect(await idsOf('?perPage=1&page=2')).toEqual([second.id])
    for (const query of ['?success=maybe', '?event=Other', '?after=soon', '?after=9999999999999'])
      expect(await list(query), query).toMatchObject(refused(400, 'validation_error'))
    const platform = '/platform/webhooks/deliveries'
    expect(await idsOf(`?webhookId=${hook.id}`, platform)).toEqual([third.id, second.id, first.id])
    expect(await idsOf(`?webhookId=${hook.uuid}&tenantId=${tenantId}`, platform)).toEqual([third.id])
    const tenants = await make({}, `/tenants/${tenantId}/webhooks`)
    const own = await deliver(tenants, { tenantId })
    expect(await idsOf('?perPage=100', platform)).not.toContain(own.id)
    expect(await ask('GET', `${platform}/${own.id}`)).toMatchObject(refused(404, 'not_found'))
    expect(await ask('GET', `/webhooks/${hook.id}/deliveries/${own.id}`)).toMatchObject(refused(404, 'not_found'))
    expect(await ask('GET', `/webhooks/${tenants.id}/deliveries/${own.id}`, undefined, tenantKey)).toMatchObject({ status: 200 })
  })

  test('are shown with the sent and the answered octets', async () => {
    const hook = await make()
    const made = await deliver(hook)
    const expected = {
      id: made.id,
      webhookId: hook.id,
      webhookName: 'orders',
      request: { headers: made.requestHeaders, payload: JSON.parse(made.payload) },
      response: { statusCode: 503, body: 'later', duration: 12, error: null },
    }
    for (const path of [`/webhooks/${hook.id}/deliveries`, '/platform/webhooks/deliveries'])
      expect(await dataOf(ask('GET', `${path}/${made.id}`))).toMatchObject(expected)
  })

  test('are replayed with the same octets, a fresh signature and a record of their own', async () => {
    const hook = await make()
    const made = await deliver(hook)
    const options = { key: service.testKey, headers: { 'content-type': 'application/json' } }
    const answer = await service.call('POST', `/webhooks/${hook.id}/deliveries/${made.id}/replay`, options)
    const replayed = answer.body.data as { newDeliveryId: string; duration: number; timestamp: string }
    expect(replayed).toEqual({
      success: true,
      statusCode: 200,
      duration: expect.any(Number),
      originalDeliveryId: made.id,
      newDeliveryId: uuid,
      timestamp: iso,
    })
    const request = lastRequest()
    expect(request.body.toString()).toBe(made.payload)
    expect(request.headers).toMatchObject({ 'webhook-id': made.eventUuid, 'x-webhook-attempt': '1' })
    expect(Math.abs(Number(request.headers['webhook-timestamp']) - Date.now() / 1000)).toBeLessThan(5)
    expect(await verified(request, [hook.secret])).toEqual([0])
    const record = await dataOf<{ request: { headers: Record<string, string> } }>(
      ask('GET', `/webhooks/${hook.id}/deliveries/${replayed.newDeliveryId}`),
    )
    expect(record).toMatchObject({
      attempt: 1,
      willRetry: false,
      success: true,
      url: `${receiver.url}/hook`,
      timestamp: replayed.timestamp,
      request: { payload: JSON.parse(made.payload) },
      response: { statusCode: 200, body: 'thanks', duration: replayed.duration, error: null },
    })
    expect(record.request.headers['webhook-signature']).toBe(request.headers['webhook-signature'])

    receiver.answer = (response) => response.destroy()
    const failed = await dataOf(ask('POST', `/platform/webhooks/deliveries/${made.id}/replay`))
    expect(failed).toMatchObject({ success: false, statusCode: null })
  })

  test('of a receiver that is silent or never ends are bounded by its own time limit', async () => {
    const hook = await make({ timeoutSeconds: 1 })
    const { id } = await deliver(hook)
    const replay = () => dataOf<{ duration: number; newDeliveryId: string }>(ask('POST', `/webhooks/${hook.id}/deliveries/${id}/replay`))
    receiver.answer = () => undefined
    const silent = await replay()
    expect(silent).toMatchObject({ success: false, statusCode: null })
    expect(silent.duration).toBeGreaterThanOrEqual(990)
    expect(silent.duration).toBeLessThan(3000)
    const error = 'no response within 1 s; the request may have arrived'
    expect(await dataOf(ask('GET', `/webhooks/${hook.id}/deliveries/${silent.newDeliveryId}`))).toMatchObject({
      response: { error, body: null },
    })
    receiver.answer = (response) => {
      const write = () => {
        while (!response.destroyed && response.write('x'.repeat(65_536))) {}
      }
      response.on('drain', write)
      write()
    }
    expect(await replay()).toMatchObject({ success: true, statusCode: 200 })
  })

  test('of a disabled webhook are not replayed', async () => {
    const hook = await make({ enabled: false })
    const { id } = await deliver(hook)
    const path = `/webhooks/${hook.id}/deliveries/${id}/replay`
    expect(await ask('POST', path)).toMatchObject(refused(400, 'webhook_disabled'))
    expect(await ask('POST', `/platform/webhooks/deliveries/${id}/replay`)).toMatchObject(refused(400, 'webhook_disabled'))
  })

  test('ids that cannot be are not found', async () => {
    const { id } = await make()
    for (const path of [`/webhooks/${id}/deliveries`, '/platform/webhooks/deliveries'])
      for (const deliveryId of ['x', '1', ids.uuid()])
        expect(await ask('GET', `${path}/${deliveryId}`)).toMatchObject(refused(404, 'not_found'))
  })
})

describe('a part of the log', () => {
  const happen = (ofTenant: string, second: number, count: number) =>
    service.db.transaction((tx) =>
      appendEvents(
        tx,
        Array.from({ length: count }, () => ({
          tenantId: ofTenant,
          kind: 'MessageSent' as const,
          emailId: null,
          at: new Date(second * 1000),
          data: {},
        })),
      ),
    )

  test('is queued to be sent again, in both families: as many events as the webhook gets between two moments', async () => {
    const second = Math.floor(Date.now() / 1000)
    await happen(service.tenantId, second, 2)
    await happen(tenantId, second, 3)
    await happen(tenantId, second - 10, 5)
    const range = { after: second - 1, before: second + 1 }
    const { id } = await make()
    expect(await dataOf(ask('POST', `/webhooks/${id}/replay`, range))).toEqual({ queued: 5 })
    const own = await make({}, `/tenants/${tenantId}/webhooks`)
    expect(await dataOf(ask('POST', `/tenants/${tenantId}/webhooks/${own.id}/replay`, range, tenantKey))).toEqual({ queued: 3 })
    expect(await dataOf(ask('POST', `/webhooks/${own.id}/replay`, { after: second - 20, before: second - 5 }, tenantKey))).toEqual({
      queued: 5,
    })
    expect(await dataOf(ask('POST', `/webhooks/${own.uuid}/replay`, { after: 1, before: 2 }, tenantKey))).toEqual({ queued: 0 })
  })

  test("is refused of no webhook, another tenant's or a disabled one, and without a time that passes", async () => {
    const { id } = await make({ enabled: false })
    const range = { after: 1, before: 2 }
    expect(await ask('POST', `/webhooks/${id}/replay`, range)).toMatchObject(refused(400, 'webhook_disabled'))
    expect(await ask('POST', `/webhooks/${id}/replay`, range, tenantKey)).toMatchObject(refused(404, 'not_found'))
    expect(await ask('POST', '/webhooks/4711/replay', range)).toMatchObject(refused(404, 'not_found'))
    for (const wrong of [{ after: 2, before: 2 }, { after: 1 }, { before: 1 }, { after: -1, before: 1 }, { after: '1', before: 2 }])
      expect(await ask('POST', `/webhooks/${id}/replay`, wrong)).toMatchObject(refused(400, 'validation_error'))
  })

  test('is queued by a command too', async () => {
    const { id, uuid } = await make()
    const second = Math.floor(Date.now() / 1000)
    const words = (wanted: string, after = second - 100) => [
      'webhook',
      'replay',
      wanted,
      '--after',
      `${after}`,
      '--before',
      `${second + 100}`,
      '--json',
    ]
    const printed: string[] = []
    const run = (given: string[]) =>
      runHere(given, {
        withInstallation: (work) =>
          work({
            config: readConfig({}),
            db: service.db,
            clock: systemClock,
            ids,
            random: systemRandom,
            secrets: openSecrets('a secret for tests only', systemRandom),
            version: 'test',
          }),
        print: (text) => printed.push(text),
      })
    expect([await run(words(id)), await run(words(uuid)), await run(words('4711')), await run(words(id, second + 200))]).toEqual([
      0, 0, 2, 2,
    ])
    expect(await run(['webhook', 'replay', id, '--after', 'yesterday', '--before', '2'])).toBe(2)
    expect(printed.map((text) => (JSON.parse(text) as { queued: number }).queued)).toEqual([expect.any(Number), expect.any(Number)])
  })
})

describe('the published keys', () => {
  test('are one RSA key, made once, also by several first readers, and cacheable', async () => {
    await using fresh = await startService()
    const clock = systemClock
    const secrets = openSecrets('a secret for tests only', systemRandom)
    const resolver = openResolver({ servers: ['127.0.0.1:9'], clock, ids: { random: Math.random } })
    const post = openPost({ resolver, guard: openGuard([]), openedNetworks: [], clock })
    const tenants = openTenants({ db: fresh.db, clock })
    const config = { webhookSignatureHeader: 'X-Webhook-Signature' }
    const processes = Array.from({ length: 4 }, () =>
      openWebhooks({ db: fresh.db, clock, ids, random: systemRandom, secrets, tenants, post, config, version: 'test' }),
    )
    const sets = await Promise.all([jwksOf(fresh.port), ...processes.map((one) => one.jwks())])
    expect(new Set(sets.map((one) => JSON.stringify(one))).size).toBe(1)
    expect(sets[0]?.keys).toEqual([{ kty: 'RSA', n: expect.any(String), e: 'AQAB', kid: expect.any(String), alg: 'RS256', use: 'sig' }])
    const answer = await fetch(`http://127.0.0.1:${fresh.port}/.well-known/jwks.json`)
    expect(answer.headers.get('cache-control')).toBe('public, max-age=3600')
    expect(answer.headers.get('content-type')).toContain('application/json')
  })

  test('go by the header that the operator has chosen', async () => {
    await using other = await startService({
      settings: { POSTRIDER_ALLOWED_NETWORKS: '127.0.0.0/8', POSTRIDER_WEBHOOK_SIGNATURE_HEADER: 'X-Vendor-Signature' },
    })
    const asked = (method: string, path: string, body: object) => other.call(method, path, { key: other.testKey, body })
    const { id } = (await asked('POST', '/webhooks', wanted())).body.data as Hook
    await asked('POST', `/webhooks/${id}/test`, { event: 'MessageSent' })
    expect(lastRequest().headers).toMatchObject({ 'x-vendor-signature': expect.any(String), 'x-vendor-signature-kid': expect.any(String) })
  })
})
