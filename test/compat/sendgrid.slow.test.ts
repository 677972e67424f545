/** The unmodified npm packages `@sendgrid/mail` and `@sendgrid/client` against the service: each served endpoint and its errors. */
import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { sendgridApi } from '../../src/http/sendgrid-endpoints.ts'
import { type Service, startService } from '../support/in-process-service.ts'
import { recordSdkCalls } from '../support/record-sdk-calls.ts'
import { type SendGridClient, type SendGridMailer, sendgridClient, sendgridMailer } from '../support/sdk-clients.ts'

recordSdkCalls()
let service: Service
let client: SendGridClient
let mailer: SendGridMailer
const urlOf = ({ port } = service, path = '') => `http://127.0.0.1:${port}${path}`
const clientOf = (key: string, url = urlOf()) => sendgridClient(key, url)
const mailerOf = sendgridMailer
beforeAll(async () => {
  service = await startService({ rateLimit: null, sendLimit: null, roles: ['delivery'] })
  await service.addDomain(service.tenantId, 'shop.test')
  client = clientOf(await service.makeKey({ tenantId: service.tenantId }))
  mailer = mailerOf(client)
})
afterAll(() => service.stop())

const mail = { from: 'Shop <orders@shop.test>', to: 'Ann <ann@one.example>', subject: 'Hello', html: '<p>Hi</p>' }

interface Shown {
  id: string
  to: string
  subject: string
  tag: string | null
  status: string
  metadata: Record<string, string> | null
  htmlBody: string
  plainBody: string
  rawMessage: string
  attachments: { filename: string; contentType: string; size: number }[]
}

const shownAt = async (path: string) => (await service.call('GET', path, { key: service.testKey })).body.data
const emailOf = async (id: string) => (await shownAt(`/emails/${id}?expand=raw,content,attachments`)) as Shown
const emailsTo = async (address: string) => (await shownAt(`/emails?to=${encodeURIComponent(address)}`)) as Shown[]

/** Sends, and returns the message's id. */
async function send(changed: object, by = mailer): Promise<string> {
  const [response] = await by.send({ ...mail, ...changed } as Parameters<SendGridMailer['send']>[0])
  expect([response.statusCode, response.body]).toEqual([202, ''])
  const { 'x-message-id': id } = response.headers as Record<string, string>
  expect(id).toMatch(/^\w{22}$/)
  return id as string
}

interface Failure {
  code: number
  response: { headers: Record<string, string>; body: { errors: { message: string; field: string | null; help: string | null }[] } }
}

/** The error of a refused request, in SendGrid's form. */
async function refusalOf(asked: Promise<unknown>): Promise<Failure['response']['body']['errors'][0] & { code: number }> {
  const failure = await asked.then(
    () => undefined,
    (error: unknown) => error as Failure,
  )
  expect(failure?.response.body).toEqual({
    errors: [{ message: expect.any(String), field: failure?.response.body.errors[0]?.field, help: failure?.response.body.errors[0]?.help }],
  })
  return { code: failure?.code ?? 0, ...(failure?.response.body.errors[0] as Failure['response']['body']['errors'][0]) }
}

const call = async (method: 'GET' | 'POST' | 'DELETE', url: string, body?: object) => {
  const [{ statusCode, body: answer }] = await client.request({ method, url, ...(body ? { body } : {}) })
  return { statusCode, body: answer as unknown }
}

async function eventually<T>(read: () => Promise<T>, isDone: (value: T) => boolean): Promise<T> {
  for (;;) {
    const value = await read()
    if (isDone(value)) return value
    await service.wait(20)
  }
}

describe('a mail', () => {
  test('is accepted with 202, an empty body and the id of its message', async () => {
    const id = await send({
      to: [{ email: 'ann@one.example', name: 'Ann, "A"' }, 'bob@one.example'],
      cc: 'cat@one.example',
      bcc: 'eve@one.example',
      replyTo: 'Help <help@shop.test>',
      text: 'Hi',
      headers: { 'X-Order': '4711' },
      categories: ['order', 'new', 'shoes'],
      customArgs: { 'order-id': '4711' },
    })
    const shown = await emailOf(id)
    expect(shown).toMatchObject({
      id,
      to: 'ann@one.example',
      subject: 'Hello',
      tag: 'order',
      metadata: { 'order-id': '4711', category_2: 'new', category_3: 'shoes' },
    })
    const raw = Buffer.from(shown.rawMessage, 'base64').toString()
    expect(raw).toContain('From: Shop <orders@shop.test>\r\n')
    expect(raw).toContain('To: "Ann, \\"A\\"" <ann@one.example>, bob@one.example\r\n')
    expect(raw).toContain('Cc: cat@one.example\r\n')
    expect(raw).toContain('Reply-To: Help <help@shop.test>\r\n')
    expect(raw).toContain('X-Order: 4711\r\n')
    expect(raw).not.toContain('eve@one.example')
    expect(await emailsTo('eve@one.example')).toHaveLength(1)
  })

  test('has several reply-to addresses', async () => {
    const id = await send({ replyToList: [{ email: 'help@shop.test', name: 'Help' }, { email: 'desk@shop.test' }] })
    const raw = Buffer.from((await emailOf(id)).rawMessage, 'base64').toString()
    expect(raw).toContain('Reply-To: Help <help@shop.test>,\r\n desk@shop.test\r\n')
  })

  test('has attachments, inline ones with their content id', async () => {
    const content = Buffer.from('Hello').toString('base64')
    const id = await send({
      html: '<img src="cid:logo">',
      attachments: [
        { content, filename: 'a.pdf', disposition: 'attachment' },
        { content, filename: 'logo.png', type: 'image/png', disposition: 'inline', contentId: 'logo' },
      ],
    })
    const shown = await emailOf(id)
    expect(shown.attachments).toMatchObject([
      { filename: 'a.pdf', contentType: 'application/pdf', size: 5 },
      { filename: 'logo.png', contentType: 'image/png', size: 5 },
    ])
    expect(Buffer.from(shown.rawMessage, 'base64').toString()).toContain('Content-ID: <logo>')
  })

  test('may have a thousand recipients in one field', async () => {
    const to = Array.from({ length: 1000 }, (_, n) => `many${n}@one.example`)
    const id = await send({ to })
    expect(await emailsTo('many999@one.example')).toHaveLength(1)
    expect(Buffer.from((await emailOf(id)).rawMessage, 'base64').toString()).toContain('many999@one.example')
    expect(await refusalOf(send({ to, cc: 'one@more.example' }))).toMatchObject({ code: 400, field: 'personalizations' })
  })

  test('with sandbox_mode is checked with 200, and nothing is sent', async () => {
    const sandbox = { mailSettings: { sandboxMode: { enable: true } } }
    const [response] = await mailer.send({ ...mail, ...sandbox, to: 'sandbox@one.example' })
    expect([response.statusCode, response.body]).toEqual([200, ''])
    expect(await emailsTo('sandbox@one.example')).toEqual([])
    expect(await refusalOf(send({ ...sandbox, headers: { 'Message-ID': 'a' } }))).toMatchObject({ code: 400, field: 'headers.Message-ID' })
    expect(await refusalOf(send({ ...sandbox, from: 'a@elsewhere.test' }))).toMatchObject({ code: 403, field: 'from' })
    expect(await send({ mailSettings: { sandboxMode: { enable: false } } })).toBeTruthy()
  })

  test('switches tracking off, and on only where there is a track domain', async () => {
    await send({ trackingSettings: { clickTracking: { enable: false, enableText: false }, openTracking: { enable: false } } })
    await send({ trackingSettings: { subscriptionTracking: { enable: false }, ganalytics: { enable: false } } })
    expect(await refusalOf(send({ trackingSettings: { openTracking: { enable: true } } }))).toMatchObject({
      code: 400,
      field: 'tracking_settings',
      message: expect.stringContaining('track domain'),
    })
  })

  test('to a suppressed address is accepted and held', async () => {
    await call('POST', '/v3/asm/suppressions/global', { recipient_emails: ['gone@one.example'] })
    const id = await send({ to: 'gone@one.example' })
    expect(
      (
        await eventually(
          () => emailOf(id),
          ({ status }) => status === 'held',
        )
      ).status,
    ).toBe('held')
  })
})

describe('personalizations', () => {
  test('are messages of their own, with substitutions as plain text', async () => {
    const id = await send({
      to: undefined,
      subject: 'Order {{n}}',
      html: '<p>{{name}} {{nam}} {{n}} -a-b- {{missing}} {{name}}</p>',
      replyTo: 'r{{n}}@shop.test',
      customArgs: { kind: 'x', run: '1' },
      headers: { 'X-A': 'a', 'X-B': 'b' },
      personalizations: [
        { to: 'p1@one.example', substitutions: { name: '{{n}} & <b>$&', n: '1' }, customArgs: { kind: 'y' }, headers: { 'x-a': 'c' } },
        { to: 'p2@one.example', subject: 'Own {{n}}', substitutions: { name: 'Bob', n: '2' }, from: 'Two <two@shop.test>' },
      ],
    })
    const [[first], [second]] = await Promise.all([emailsTo('p1@one.example'), emailsTo('p2@one.example')])
    const [one, two] = await Promise.all([emailOf(first?.id ?? ''), emailOf(second?.id ?? '')])
    expect(one).toMatchObject({
      subject: 'Order 1',
      htmlBody: '<p>{{n}} & <b>$& {{nam}} 1 -a-b- {{missing}} {{n}} & <b>$&</p>',
      metadata: { kind: 'y', run: '1', 'X-Message-Id': id },
    })
    expect(two).toMatchObject({ subject: 'Own 2', htmlBody: '<p>Bob {{nam}} 2 -a-b- {{missing}} Bob</p>', metadata: { kind: 'x' } })
    const [rawOne, rawTwo] = [one, two].map(({ rawMessage }) => Buffer.from(rawMessage, 'base64').toString())
    expect(rawOne).toContain('x-a: c\r\n')
    expect(rawOne).not.toContain('X-A: a')
    expect(rawOne).toContain('Reply-To: r1@shop.test\r\n')
    expect(rawTwo).toContain('From: Two <two@shop.test>\r\n')
    expect(rawTwo).toContain('X-A: a\r\n')
  })

  test('of sendMultiple show each recipient only themselves', async () => {
    await mailer.sendMultiple({ ...mail, to: ['s1@one.example', 's2@one.example'] })
    const [first] = await emailsTo('s1@one.example')
    expect(Buffer.from((await emailOf(first?.id ?? '')).rawMessage, 'base64').toString()).not.toContain('s2@one.example')
  })

  test('are accepted all or none', async () => {
    const refused = await refusalOf(
      send({ to: undefined, personalizations: [{ to: 'all@one.example' }, { to: 'two@one.example', headers: { Received: 'x' } }] }),
    )
    expect(refused).toMatchObject({ code: 400, field: 'headers.Received' })
    expect(await emailsTo('all@one.example')).toEqual([])
  })

  test('may be a thousand, and one more is refused', async () => {
    const personalizations = Array.from({ length: 1001 }, (_, n) => ({ to: `t${n}@one.example`, substitutions: { n: String(n) } }))
    await send({ to: undefined, html: '<p>{{n}}</p>', personalizations: personalizations.slice(0, 1000) })
    const [last] = await emailsTo('t999@one.example')
    expect((await emailOf(last?.id ?? '')).htmlBody).toBe('<p>999</p>')
    expect(await refusalOf(send({ to: undefined, personalizations }))).toMatchObject({ code: 400, field: 'personalizations' })
  })

  test('whose messages are too large together are refused, however short the request is', async () => {
    const personalizations = Array.from({ length: 700 }, (_, n) => ({ to: `large${n}@one.example` }))
    const large = { to: undefined, html: 'x'.repeat(100_000), personalizations }
    expect(await refusalOf(send(large))).toMatchObject({ code: 413, field: 'personalizations' })
    const value = 'y'.repeat(9900)
    const grown = { to: undefined, html: 'ab'.repeat(50_000), personalizations: [{ to: 'grown@one.example', substitutions: { a: value } }] }
    expect(await refusalOf(send({ ...grown, substitutionWrappers: ['', ''] }))).toMatchObject({ code: 413 })
    expect(await emailsTo('large0@one.example')).toEqual([])
  })
})

describe('refusals', () => {
  test.each([
    ['from', 403, { from: 'a@elsewhere.test' }],
    ['from.email', 400, { from: 'orders' }],
    ['personalizations.0.to.0.email', 400, { to: 'ann' }],
    ['personalizations.0.to', 400, { to: [] }],
    ['subject', 400, { subject: '' }],
    ['content', 400, { html: undefined }],
    [
      'content.1.type',
      400,
      {
        content: [
          { type: 'text/html', value: 'a' },
          { type: 'text/calendar', value: 'b' },
        ],
        html: undefined,
      },
    ],
    ['send_at', 400, { sendAt: 1_900_000_000 }],
    ['personalizations.0.send_at', 400, { to: undefined, personalizations: [{ to: 'a@one.example', sendAt: 1_900_000_000 }] }],
    ['batch_id', 400, { batchId: 'a' }],
    ['asm', 400, { asm: { groupId: 1 } }],
    ['template_id', 400, { templateId: 'd-1' }],
    ['ip_pool_name', 400, { ipPoolName: 'a' }],
    ['sections', 400, { sections: { a: 'b' } }],
    ['mail_settings.footer', 400, { mailSettings: { footer: { enable: true, text: 'a' } } }],
    ['mail_settings.bypass_list_management', 400, { mailSettings: { bypassListManagement: { enable: true } } }],
    ['tracking_settings.ganalytics', 400, { trackingSettings: { ganalytics: { enable: true } } }],
    ['tracking_settings.subscription_tracking', 400, { trackingSettings: { subscriptionTracking: { enable: true } } }],
    ['tracking_settings.click_tracking.enable_text', 400, { trackingSettings: { clickTracking: { enable: true, enableText: true } } }],
    ['headers.X-A', 400, { headers: { 'X-A': 'a\r\nBcc: b@c.example' } }],
    ['custom_args.category_2', 400, { customArgs: { category_2: 'a' } }],
    ['attachments.0.content', 400, { attachments: [{ content: '%%%', filename: 'a' }] }],
    ['attachments.0.content_id', 400, { attachments: [{ content: 'YQ==', filename: 'a', disposition: 'inline' }] }],
    ['reply_to_list', 400, { replyTo: 'a@one.example', replyToList: [{ email: 'b@one.example' }] }],
  ])('name the field %s with %i', async (field, code, changed) => {
    expect(await refusalOf(send(changed))).toMatchObject({ code, field })
  })

  test('of the key have 401 and 403', async () => {
    expect(await refusalOf(send({}, mailerOf(clientOf('svc_test_wrong'))))).toMatchObject({ code: 401, field: null })
    const reader = clientOf(await service.makeKey({ permissions: ['emails:read'] }))
    expect(await refusalOf(send({}, mailerOf(reader)))).toMatchObject({ code: 403, field: null })
    const impersonating = clientOf(service.testKey)
    impersonating.setImpersonateSubuser('other')
    expect(await refusalOf(send({}, mailerOf(impersonating)))).toMatchObject({
      code: 403,
      message: expect.stringContaining('On-Behalf-Of'),
    })
  })

  const served = sendgridApi.endpoints.flatMap(({ methods, path }) => methods.map((method) => [method, path] as const))
  test.each(served)('of a wrong key: %s %s', async (method, path) => {
    const asked = { method, url: path.replace(/:\w+/g, 'a@one.example'), ...(method === 'GET' ? {} : { body: {} }) }
    expect(await refusalOf(clientOf('svc_test_wrong').request(asked))).toMatchObject({ code: 401, field: null })
  })

  test('of sendMultiple have the same form', async () => {
    expect(await refusalOf(mailer.sendMultiple({ ...mail, to: ['multiple@one.example', 'ann'] }))).toMatchObject({ code: 400 })
    expect(await emailsTo('multiple@one.example')).toEqual([])
  })

  test('of one key too fast have 429 and the limits in the headers', async () => {
    await using slow = await startService({ rateLimit: 1 })
    const fast = clientOf(slow.testKey, urlOf(slow))
    const asked = await Promise.allSettled(Array.from({ length: 8 }, () => fast.request({ method: 'GET', url: '/v3/scopes' })))
    const [refused] = asked.flatMap((one) => (one.status === 'rejected' ? [one.reason as Failure] : []))
    expect(refused?.code).toBe(429)
    expect(refused?.response.body).toEqual({ errors: [{ message: expect.any(String), field: null, help: expect.any(String) }] })
    expect(refused?.response.headers).toMatchObject({
      'x-ratelimit-limit': expect.stringMatching(/^\d+$/),
      'x-ratelimit-remaining': '0',
      'x-ratelimit-reset': expect.stringMatching(/^\d{10}$/),
      'retry-after': expect.stringMatching(/^\d+$/),
    })
  })

  test('of a message that is too large have 413', async () => {
    expect(await refusalOf(send({ text: 'x'.repeat(14_680_000), html: 'y'.repeat(100) }))).toMatchObject({ code: 413 })
  })

  test('of paths that are not served have 404', async () => {
    for (const url of ['/v3/templates', '/v3/mail/batch', '/v3/asm/groups', '/v3/', '/v3/suppression/other'])
      expect(await refusalOf(client.request({ method: 'GET', url }))).toMatchObject({
        code: 404,
        message: expect.stringContaining('docs/sendgrid-api.md'),
      })
  })

  test("of hostile bodies have SendGrid's form, never 500", async () => {
    const deep = `${'['.repeat(50_000)}${']'.repeat(50_000)}`
    const bodies = ['', '[]', 'null', '"x"', '{', deep, `{"from":${deep}}`, '{"personalizations":[1]}', '{"recipient_emails":[1]}']
    for (const path of ['/v3/mail/send', '/v3/asm/suppressions/global'])
      for (const body of bodies) {
        const response = await fetch(urlOf(service, path), {
          method: 'POST',
          headers: { authorization: `Bearer ${service.testKey}`, 'content-type': 'application/json' },
          body,
        })
        expect(response.status, `${path} ${body.slice(0, 40)}`).toBe(400)
        expect(await response.json()).toEqual({ errors: [expect.objectContaining({ message: expect.any(String) })] })
      }
  })
})

describe('suppressions', () => {
  test('a hard bounce is in the list of bounces with the reply, and can be removed', async () => {
    await send({ to: 'hardfail+sg@simulator.test' })
    const url = '/v3/suppression/bounces/hardfail+sg@simulator.test'
    const { body } = await eventually(
      () => call('GET', url),
      (found) => (found.body as unknown[]).length > 0,
    )
    const entry = { email: 'hardfail+sg@simulator.test', created: expect.any(Number), status: expect.stringMatching(/^5\.\d\.\d+$/) }
    expect(body).toMatchObject([{ ...entry, reason: expect.stringContaining('5') }])
    expect((await call('GET', '/v3/suppression/bounces?limit=1&start_time=1')).body).toMatchObject([entry])
    expect((await call('GET', '/v3/suppression/bounces?end_time=1')).body).toEqual([])
    expect((await call('GET', '/v3/asm/suppressions/global/hardfail+sg@simulator.test')).body).toEqual({})
    expect(await refusalOf(call('DELETE', '/v3/asm/suppressions/global/hardfail+sg@simulator.test'))).toMatchObject({ code: 404 })
    expect(await call('DELETE', url)).toMatchObject({ statusCode: 204 })
    expect((await call('GET', url)).body).toEqual([])
    expect(await refusalOf(call('DELETE', url))).toMatchObject({ code: 404 })
  })

  test('each list shows, removes and empties its own addresses', async () => {
    for (const list of ['bounces', 'spam_reports', 'unsubscribes', 'blocks', 'invalid_emails'])
      expect((await call('GET', `/v3/suppression/${list}/none@one.example`)).body).toEqual([])
    const add = (address: string) => call('POST', '/v3/asm/suppressions/global', { recipient_emails: [address] })
    const shown = async () => (await call('GET', '/v3/suppression/unsubscribes/list@one.example')).body
    await add('list@one.example')
    expect(await shown()).toEqual([{ email: 'list@one.example', created: expect.any(Number) }])
    expect(await call('DELETE', '/v3/suppression/unsubscribes/list@one.example')).toMatchObject({ statusCode: 204 })
    expect(await shown()).toEqual([])
    await send({ to: 'complaint+one@simulator.test' })
    const url = '/v3/suppression/spam_reports/complaint+one@simulator.test'
    await eventually(
      () => call('GET', url),
      ({ body }) => (body as unknown[]).length > 0,
    )
    expect(await call('DELETE', url)).toMatchObject({ statusCode: 204 })
    expect(await call('DELETE', '/v3/suppression/bounces', { delete_all: true })).toMatchObject({ statusCode: 204 })
  })

  test('a complaint is a spam report', async () => {
    await send({ to: 'complaint+sg@simulator.test' })
    const { body } = await eventually(
      () => call('GET', '/v3/suppression/spam_reports'),
      (found) => (found.body as unknown[]).length > 0,
    )
    expect(body).toEqual([{ email: 'complaint+sg@simulator.test', created: expect.any(Number), ip: '' }])
    expect(await call('DELETE', '/v3/suppression/spam_reports', { emails: ['COMPLAINT+sg@simulator.test'] })).toMatchObject({
      statusCode: 204,
    })
    expect((await call('GET', '/v3/suppression/spam_reports')).body).toEqual([])
  })

  test('global unsubscribes are added, listed in pages, shown and removed', async () => {
    const recipient_emails = ['g1@one.example', 'g2@one.example', 'g3@one.example']
    const added = await call('POST', '/v3/asm/suppressions/global', { recipient_emails })
    expect(added).toEqual({ statusCode: 201, body: { recipient_emails } })
    expect((await call('GET', '/v3/asm/suppressions/global?limit=2&offset=1')).body).toMatchObject([
      { email: 'g2@one.example' },
      { email: 'g1@one.example' },
    ])
    expect((await call('GET', '/v3/suppression/unsubscribes?limit=1')).body).toMatchObject([{ email: 'g3@one.example' }])
    expect((await call('GET', '/v3/asm/suppressions/global/G1@one.example')).body).toEqual({ recipient_email: 'g1@one.example' })
    expect(await call('DELETE', '/v3/asm/suppressions/global/g1@one.example')).toMatchObject({ statusCode: 204 })
    expect((await call('GET', '/v3/asm/suppressions/global/g1@one.example')).body).toEqual({})
    const wrong = { recipient_emails: ['g4@one.example', 'ann'] }
    expect(await refusalOf(call('POST', '/v3/asm/suppressions/global', wrong))).toMatchObject({ code: 400, field: 'recipient_emails.1' })
    expect((await call('GET', '/v3/asm/suppressions/global/g4@one.example')).body).toEqual({})
    await call('DELETE', '/v3/suppression/unsubscribes', { delete_all: true })
    expect((await call('GET', '/v3/asm/suppressions/global')).body).toEqual([])
  })

  test('blocks and invalid addresses are empty lists, and unknown parameters are refused', async () => {
    for (const list of ['blocks', 'invalid_emails']) {
      expect((await call('GET', `/v3/suppression/${list}`)).body).toEqual([])
      expect(await refusalOf(call('DELETE', `/v3/suppression/${list}/a@one.example`))).toMatchObject({ code: 404 })
      expect(await call('DELETE', `/v3/suppression/${list}`, { delete_all: true })).toMatchObject({ statusCode: 204 })
    }
    expect(await refusalOf(call('GET', '/v3/suppression/bounces?email=a'))).toMatchObject({ code: 400, field: 'email' })
    expect(await refusalOf(call('GET', '/v3/suppression/bounces?limit=501'))).toMatchObject({ code: 400, field: 'limit' })
    expect(await refusalOf(call('DELETE', '/v3/suppression/bounces'))).toMatchObject({ code: 400, field: 'emails' })
  })

  test("are those of the key's tenant", async () => {
    const other = clientOf(await service.makeKey({ tenantId: await service.makeTenant('Other') }))
    await call('POST', '/v3/asm/suppressions/global', { recipient_emails: ['own@one.example'] })
    const [{ body }] = await other.request({ method: 'GET', url: '/v3/asm/suppressions/global/own@one.example' })
    expect(body).toEqual({})
    expect(await refusalOf(other.request({ method: 'DELETE', url: '/v3/asm/suppressions/global/own@one.example' }))).toMatchObject({
      code: 404,
    })
  })
})

test("the key's scopes are listed", async () => {
  const sender = clientOf(await service.makeKey({ permissions: ['emails:send'] }))
  const [{ body }] = await sender.request({ method: 'GET', url: '/v3/scopes' })
  expect(body).toEqual({ scopes: ['mail.send'] })
  expect((await call('GET', '/v3/scopes')).body).toMatchObject({ scopes: expect.arrayContaining(['mail.send', 'suppression.read']) })
})

test('the API is also below /compat/sendgrid, needs a key there, and is off with the setting', async () => {
  const below = clientOf(service.testKey, urlOf(service, '/compat/sendgrid'))
  expect(await send({ from: 'a@simulator.test', to: 'delivered@simulator.test' }, mailerOf(below))).toBeTruthy()
  const response = await fetch(urlOf(service, '/compat/sendgrid/v3/mail/send'), { method: 'POST' })
  expect([response.status, await response.json()]).toEqual([
    401,
    { errors: [{ message: expect.any(String), field: null, help: expect.any(String) }] },
  ])
  await using plain = await startService({ settings: { POSTRIDER_SENDGRID_API: 'off' } })
  await expect(mailerOf(clientOf(plain.testKey, urlOf(plain))).send(mail)).rejects.toMatchObject({ code: 404 })
})

test('the documented table names every endpoint', () => {
  const page = readFileSync('docs/sendgrid-api.md', 'utf8')
  for (const path of ['POST /v3/mail/send`', '/v3/suppression/bounces', '/v3/asm/suppressions/global', 'GET /v3/scopes`'])
    expect(page).toContain(path)
})
