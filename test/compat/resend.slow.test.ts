/** The unmodified npm package `resend` against the service: each served method and its errors. */
import { readFileSync } from 'node:fs'
import type { Resend } from 'resend'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { sql } from '#db'
import { type Service, startService } from '../support/in-process-service.ts'
import { recordSdkCalls } from '../support/record-sdk-calls.ts'
import { resendClient } from '../support/sdk-clients.ts'

const newestActions = sql<{ action: string; data: object }>`
  select action, data
  from audit_entries
  order by id desc
  limit $1`

recordSdkCalls()
let service: Service
let resend: Resend
beforeAll(async () => {
  service = await startService({ rateLimit: null, sendLimit: null, roles: ['delivery'] })
  await service.addDomain(service.tenantId, 'shop.test')
  resend = resendClient(service.testKey, `http://127.0.0.1:${service.port}`)
})
afterAll(() => service.stop())

const mail = { from: 'Shop <orders@shop.test>', to: 'Ann <ann@one.example>', subject: 'Hello', html: '<p>Hi</p>' }

/** The data of an answer; an error fails the test. */
function dataOf<T>({ data, error }: { data: T | null; error: unknown }): T {
  expect(error).toBeNull()
  return data as T
}

async function eventually<T>(read: () => Promise<T>, isDone: (value: T) => boolean): Promise<T> {
  for (;;) {
    const value = await read()
    if (isDone(value)) return value
    await service.wait(20)
  }
}

describe('emails', () => {
  test('send answers one id for all recipients, and get shows the message with its recipients', async () => {
    const { id } = dataOf(
      await resend.emails.send({
        ...mail,
        to: ['Ann <ann@one.example>', 'bob@one.example'],
        cc: ['cat@one.example'],
        bcc: 'eve@one.example',
        replyTo: ['Help <help@shop.test>', 'desk@shop.test'],
        text: 'Hi',
        headers: { 'X-Order': '4711' },
        tags: [
          { name: 'category', value: 'order' },
          { name: 'order-id', value: '4711' },
        ],
        attachments: [{ filename: 'a.pdf', content: Buffer.from('Hello') }],
      }),
    )
    expect(dataOf(await resend.emails.get(id))).toMatchObject({
      object: 'email',
      id,
      from: mail.from,
      to: ['Ann <ann@one.example>', 'bob@one.example'],
      cc: ['cat@one.example'],
      bcc: ['eve@one.example'],
      reply_to: ['Help <help@shop.test>', 'desk@shop.test'],
      subject: 'Hello',
      html: '<p>Hi</p>',
      text: 'Hi',
      scheduled_at: null,
      tags: [
        { name: 'category', value: 'order' },
        { name: 'order-id', value: '4711' },
      ],
    })
    const shown = await service.call('GET', `/emails/${id}?expand=attachments`, { key: service.testKey })
    expect(shown.body.data).toMatchObject({
      to: 'ann@one.example',
      tag: 'order',
      attachments: [{ contentType: 'application/pdf', size: 5 }],
    })
    const second = await service.call('GET', '/emails?to=bob@one.example', { key: service.testKey })
    const [{ id: idOfBob } = { id: '' }] = second.body.data as { id: string }[]
    expect(dataOf(await resend.emails.get(idOfBob)).id).toBe(id)
  })

  test("Resend's test addresses have the outcomes of the simulator", async () => {
    const ids = dataOf(
      await resend.batch.send(['delivered+1@resend.dev', 'bounced@resend.dev', 'suppressed@resend.dev'].map((to) => ({ ...mail, to }))),
    ).data.map(({ id }) => id)
    for (const [index, event] of ['delivered', 'bounced', 'suppressed'].entries()) {
      const get = async () => dataOf(await resend.emails.get(ids[index] as string)).last_event
      expect(await eventually(get, (found) => found === event)).toBe(event)
    }
    expect((await resend.emails.send({ ...mail, to: 'other@resend.dev' })).error).toMatchObject({ name: 'validation_error' })
    const live = resendClient(service.liveKey, `http://127.0.0.1:${service.port}`)
    expect((await live.emails.send({ ...mail, to: 'delivered@resend.dev' })).error?.message).toContain('svc_test_')
  })

  test('list pages through messages by their ids', async () => {
    const sent: string[] = []
    for (let n = 0; n < 3; n++) sent.unshift(dataOf(await resend.emails.send({ ...mail, cc: `c${n}@one.example` })).id)
    const first = dataOf(await resend.emails.list({ limit: 2 }))
    expect(first).toMatchObject({ object: 'list', has_more: true, data: [{ id: sent[0], to: ['ann@one.example', 'c2@one.example'] }, {}] })
    const rest = dataOf(await resend.emails.list({ limit: 1, after: sent[1] as string }))
    expect(rest.data.map(({ id }) => id)).toEqual([sent[2]])
    const newer = dataOf(await resend.emails.list({ limit: 1, before: sent[1] as string }))
    expect(newer).toMatchObject({ has_more: false, data: [{ id: sent[0] }] })
  })

  test('one idempotency key sends once, and refuses another request', async () => {
    const once = { idempotencyKey: 'welcome/user-4711' }
    const { id } = dataOf(await resend.emails.send(mail, once))
    expect(dataOf(await resend.emails.send(mail, once)).id).toBe(id)
    expect((await resend.emails.send({ ...mail, subject: 'Other' }, once)).error).toMatchObject({
      statusCode: 409,
      name: 'invalid_idempotent_request',
    })
    expect((await resend.emails.send(mail, { idempotencyKey: 'x'.repeat(257) })).error).toMatchObject({
      statusCode: 400,
      name: 'invalid_idempotency_key',
    })
    const batch = { idempotencyKey: 'batch/1' }
    expect(dataOf(await resend.batch.send([mail], batch))).toEqual(dataOf(await resend.batch.send([mail], batch)))
  })

  test('a strict batch sends all or none, a permissive one the correct emails', async () => {
    const wrong = { ...mail, to: 'ann' }
    const before = dataOf(await resend.emails.list({ limit: 1 })).data[0]?.id
    expect((await resend.batch.send([mail, wrong])).error).toMatchObject({ statusCode: 422, name: 'validation_error' })
    expect((await resend.batch.send([mail, { ...mail, scheduledAt: 'tomorrow at noon' }])).error).toMatchObject({
      name: 'validation_error',
    })
    expect(dataOf(await resend.emails.list({ limit: 1 })).data[0]?.id).toBe(before)
    const answer = dataOf(await resend.batch.send([wrong, mail, { ...mail, from: 'a@elsewhere.test' }], { batchValidation: 'permissive' }))
    expect(answer).toMatchObject({ data: [{ id: expect.any(String) }], errors: [{ index: 0 }, { index: 2 }] })
    expect((await resend.batch.send(Array.from({ length: 101 }, () => mail))).error).toMatchObject({ statusCode: 422 })
  })

  test('a scheduled email is rescheduled and cancelled, as Resend answers it', async () => {
    const inHours = (hours: number) => new Date(Date.now() + hours * 3_600_000).toISOString()
    const { id } = dataOf(await resend.emails.send({ ...mail, to: ['ann@one.example', 'bob@one.example'], scheduledAt: 'in 2 hours' }))
    const read = async () => dataOf(await resend.emails.get(id))
    const { scheduled_at: at, last_event: event } = await read()
    expect(event).toBe('scheduled')
    expect(Math.abs(Date.parse(`${at}`.replace(/\+00$/, 'Z')) - Date.parse(inHours(2)))).toBeLessThan(30_000)
    const later = inHours(5)
    expect(dataOf(await resend.emails.update({ id, scheduledAt: later }))).toEqual({ object: 'email', id })
    expect((await read()).scheduled_at).toBe(later.replace('T', ' ').replace('Z', '000+00'))
    expect((await resend.emails.update({ id, scheduledAt: 'Monday' })).error).toMatchObject({ statusCode: 422, name: 'validation_error' })
    expect(dataOf(await resend.emails.cancel(id))).toEqual({ object: 'email', id })
    expect(dataOf(await resend.emails.cancel(id))).toEqual({ object: 'email', id })
    expect((await read()).last_event).toBe('canceled')
    const listed = dataOf(await resend.emails.list({ limit: 1 })).data[0]
    expect(listed).toMatchObject({ id, last_event: 'canceled' })
    expect((await resend.emails.update({ id, scheduledAt: later })).error).toMatchObject({ statusCode: 422, name: 'validation_error' })
    expect((await resend.emails.cancel('missing')).error).toMatchObject({ statusCode: 404, name: 'not_found' })
    const plain = dataOf(await resend.emails.send(mail))
    expect((await resend.emails.cancel(plain.id)).error).toMatchObject({ statusCode: 422, name: 'validation_error' })
    const batch = dataOf(await resend.batch.send([mail, { ...mail, scheduledAt: inHours(1) }]))
    expect(dataOf(await resend.emails.get(batch.data[1]?.id ?? '')).last_event).toBe('scheduled')
  })

  test.each([
    ['missing_required_field', { from: '' }],
    ['missing_required_field', { to: [] }],
    ['missing_required_field', { subject: '' }],
    ['missing_required_field', { html: '' }],
    ['validation_error', { from: 'a@elsewhere.test' }],
    ['validation_error', { to: Array.from({ length: 51 }, (_, n) => `a${n}@one.example`) }],
    ['validation_error', { scheduledAt: '2020-01-01T00:00:00Z' }],
    ['validation_error', { scheduledAt: 'in 31 days' }],
    ['validation_error', { scheduledAt: 'in 5 constructors' }],
    ['validation_error', { scheduledAt: 'Monday' }],
    ['validation_error', { topicId: 't' }],
    ['validation_error', { template: { id: 'x' }, html: undefined }],
    ['validation_error', { tags: [{ name: 'a b', value: 'c' }] }],
    ['validation_error', { headers: { 'X-A': 'a\r\nBcc: b@c.example' } }],
    ['validation_error', { attachments: [{ filename: 'a', path: 'https://one.example/a' }] }],
    ['invalid_attachment', { attachments: [{ filename: 'a', content: '%%%' }] }],
  ])('send refuses with %s: %j', async (name, changed) => {
    const { error } = await resend.emails.send({ ...mail, ...changed } as typeof mail)
    expect(error).toEqual({ statusCode: expect.any(Number), name, message: expect.any(String) })
  })

  test('a key that is wrong or may not send is refused, and other tenants are not found', async () => {
    const baseUrl = `http://127.0.0.1:${service.port}`
    expect((await resendClient('re_123', baseUrl).emails.send(mail)).error).toMatchObject({ statusCode: 403, name: 'invalid_api_key' })
    const reader = resendClient(await service.makeKey({ permissions: ['emails:read'] }), baseUrl)
    expect((await reader.emails.send(mail)).error).toMatchObject({ statusCode: 401, name: 'restricted_api_key' })
    const { id } = dataOf(await resend.emails.send(mail))
    const other = resendClient(await service.makeKey({ tenantId: await service.makeTenant('Other') }), baseUrl)
    for (const wanted of [id, 'x', '../emails']) expect((await other.emails.get(wanted)).error).not.toBeNull()
    expect((await other.emails.get(id)).error).toMatchObject({ statusCode: 404, name: 'not_found' })
    expect(dataOf(await other.emails.list()).data).toEqual([])
  })
})

test.each<[string, (by: Resend) => Promise<{ error: unknown }>]>([
  ['emails.send', (by) => by.emails.send(mail)],
  ['emails.create', (by) => by.emails.create(mail)],
  ['emails.get', (by) => by.emails.get('x')],
  ['emails.list', (by) => by.emails.list()],
  ['emails.update', (by) => by.emails.update({ id: 'x', scheduledAt: 'in 1 hour' })],
  ['emails.cancel', (by) => by.emails.cancel('x')],
  ['batch.send', (by) => by.batch.send([mail])],
  ['batch.create', (by) => by.batch.create([mail])],
  ['domains.create', (by) => by.domains.create({ name: 'a.example' })],
  ['domains.list', (by) => by.domains.list()],
  ['domains.get', (by) => by.domains.get('x')],
  ['domains.verify', (by) => by.domains.verify('x')],
  ['domains.remove', (by) => by.domains.remove('x')],
  ['suppressions.add', (by) => by.suppressions.add({ email: 'a@one.example' })],
  ['suppressions.list', (by) => by.suppressions.list()],
  ['suppressions.get', (by) => by.suppressions.get('a@one.example')],
  ['suppressions.remove', (by) => by.suppressions.remove('a@one.example')],
  ['suppressions.batch.add', (by) => by.suppressions.batch.add({ emails: ['a@one.example'] })],
  ['suppressions.batch.remove', (by) => by.suppressions.batch.remove({ ids: ['a@one.example'] })],
  ['webhooks.create', (by) => by.webhooks.create({ endpoint: 'https://one.example', events: ['email.bounced'] })],
  ['webhooks.list', (by) => by.webhooks.list()],
  ['webhooks.get', (by) => by.webhooks.get('x')],
  ['webhooks.update', (by) => by.webhooks.update('x', { status: 'disabled' })],
  ['webhooks.remove', (by) => by.webhooks.remove('x')],
  ['webhooks.rotateSigningSecret', (by) => by.webhooks.rotateSigningSecret('x')],
])('%s with a wrong key has the typed error', async (_, call) => {
  const { error } = await call(resendClient('svc_test_wrong', `http://127.0.0.1:${service.port}`))
  expect(error).toEqual({ statusCode: 403, name: 'invalid_api_key', message: expect.any(String) })
})

test('create sends as send does, alone and in a batch', async () => {
  const [one, many] = [await resend.emails.create(mail), await resend.batch.create([mail, mail])]
  const ids = [dataOf(one).id, ...dataOf(many).data.map(({ id }) => id)]
  for (const id of ids) expect(dataOf(await resend.emails.get(id))).toMatchObject({ object: 'email', id, subject: 'Hello' })
  expect(new Set(ids).size).toBe(3)
})

describe('domains', () => {
  test('are created, listed, shown, verified and deleted', async () => {
    const made = dataOf(await resend.domains.create({ name: 'mail.one.example', region: 'eu-west-1' }))
    expect(made).toMatchObject({ name: 'mail.one.example', status: 'not_started' })
    expect(made.records.map(({ record, type }) => `${record} ${type}`)).toEqual(['SPF TXT', 'SPF CNAME', 'DKIM TXT'])
    expect(dataOf(await resend.domains.list()).data.map(({ id }) => id)).toContain(made.id)
    expect(dataOf(await resend.domains.get(made.id))).toMatchObject({ object: 'domain', id: made.id, records: made.records })
    expect(dataOf(await resend.domains.verify(made.id))).toEqual({ object: 'domain', id: made.id })
    expect(dataOf(await resend.domains.remove(made.id))).toEqual({ object: 'domain', id: made.id, deleted: true })
    expect((await resend.domains.get(made.id)).error).toMatchObject({ statusCode: 404, name: 'not_found' })
    expect((await resend.domains.create({ name: 'a.example', tls: 'enforced' })).error).toMatchObject({ name: 'validation_error' })
    expect((await resend.domains.create({ name: 'a.example', openTracking: true })).error?.message).toContain('open_tracking')
  })
})

describe('suppressions', () => {
  test('are added, listed, shown and removed, alone and in batches', async () => {
    const own = resendClient(await service.makeKey({ tenantId: await service.makeTenant('Lists') }), `http://127.0.0.1:${service.port}`)
    expect(dataOf(await own.suppressions.add({ email: 'A@one.example' }))).toEqual({ object: 'suppression', id: 'a@one.example' })
    dataOf(await own.suppressions.batch.add({ emails: ['b@one.example', 'c@one.example'] }))
    expect(dataOf(await own.suppressions.get('a@one.example'))).toMatchObject({ email: 'a@one.example', origin: 'manual', source_id: null })
    const idsOf = async (options: object) => dataOf(await own.suppressions.list(options)).data.map(({ id }) => id)
    expect(await idsOf({ limit: 2 })).toEqual(['c@one.example', 'b@one.example'])
    expect(await idsOf({ limit: 2, after: 'b@one.example' })).toEqual(['a@one.example'])
    expect(await idsOf({ limit: 1, before: 'a@one.example' })).toEqual(['b@one.example'])
    expect(await idsOf({ origin: 'complaint' })).toEqual([])
    expect(dataOf(await own.suppressions.remove('a@one.example'))).toMatchObject({ id: 'a@one.example', deleted: true })
    expect((await own.suppressions.remove('a@one.example')).error).toMatchObject({ statusCode: 404, name: 'not_found' })
    expect(dataOf(await own.suppressions.batch.remove({ ids: ['b@one.example', 'a@one.example'] })).data).toMatchObject([
      { deleted: true },
      { deleted: false },
    ])
    expect((await own.suppressions.add({ email: 'none' })).error).toMatchObject({ statusCode: 422, name: 'validation_error' })
    expect((await own.suppressions.batch.add({ emails: ['none'] })).error).toMatchObject({ statusCode: 422, name: 'validation_error' })
  })
})

describe('paths', () => {
  test("at the root a browser's request is for the dashboard, under /compat/resend none is", async () => {
    const root = `http://127.0.0.1:${service.port}`
    const page = await fetch(`${root}/emails`, { headers: { accept: 'text/html' } })
    expect(await page.text()).not.toContain('missing_api_key')
    expect(await (await fetch(`${root}/compat/resend/emails`)).json()).toMatchObject({ statusCode: 401, name: 'missing_api_key' })
    const below = resendClient(service.testKey, `${root}/compat/resend`)
    dataOf(await below.emails.send(mail))
  })

  test("methods that are not served are refused in Resend's form", async () => {
    const refused = [
      await resend.apiKeys.list(),
      await resend.contacts.list(),
      await resend.broadcasts.list(),
      await resend.templates.list(),
      await resend.topics.list(),
    ]
    for (const { error } of refused) {
      expect(error).toMatchObject({ statusCode: 404, name: 'not_found' })
      expect(error?.message).toContain('docs/resend-api.md')
    }
  })

  test("hostile bodies are refused in Resend's form, never with 500", async () => {
    const deep = `${'['.repeat(50_000)}${']'.repeat(50_000)}`
    const bodies = [
      '',
      '[]',
      'null',
      '"x"',
      '{',
      deep,
      `{"to":${deep}}`,
      '{"from":{"a":1}}',
      '[null]',
      `{"attachments":[{"content":[1,2]}]}`,
    ]
    for (const path of ['/emails', '/emails/batch', '/domains', '/webhooks'])
      for (const body of bodies) {
        const response = await fetch(`http://127.0.0.1:${service.port}${path}`, {
          method: 'POST',
          headers: { authorization: `Bearer ${service.testKey}`, 'content-type': 'application/json' },
          body,
        })
        expect(response.status, `${path} ${body.slice(0, 40)}`).toBe(422)
        expect(await response.json()).toMatchObject({ statusCode: 422, name: expect.any(String) })
      }
  })

  test('changes are in the audit log, mail is not', async () => {
    const made = dataOf(await resend.domains.create({ name: 'audit.one.example' }))
    dataOf(await resend.emails.send(mail))
    const entries = await service.db.rows(newestActions, [10])
    expect(entries[0]).toMatchObject({ action: 'resend.domains.create', data: { id: made.id, name: 'audit.one.example' } })
  })

  test('with the setting off, nothing is served', async () => {
    await using plain = await startService({ settings: { POSTRIDER_RESEND_API: 'off' } })
    const off = resendClient(plain.testKey, `http://127.0.0.1:${plain.port}`)
    expect((await off.emails.send(mail)).data).toBeNull()
  })

  test('the documented table names every endpoint', () => {
    const page = readFileSync('docs/resend-api.md', 'utf8')
    for (const path of ['POST /emails`', 'POST /emails/batch`', 'GET /emails`', 'GET /emails/:id`', 'POST /domains/:id/verify`'])
      expect(page).toContain(path)
  })
})
