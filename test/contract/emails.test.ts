/** The endpoints of emails and limits, called by stock clients: envelopes, headers, every field, idempotency, limits, tenants. */
import { createHash } from 'node:crypto'
import fastify from 'fastify'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { pathsOf, routes } from '#http'
import { openApiDocument } from '../../tools/openapi.ts'
import { type Answer, type Service, startService } from '../support/in-process-service.ts'
import { halfPastTwelve, handMovedDurations } from '../support/test-clock.ts'

let service: Service
beforeAll(async () => {
  service = await startService({ rateLimit: null, sendLimit: null })
})
afterAll(() => service.stop())

const letter = { from: 'Shop <shop@simulator.test>', to: ['ann@simulator.test'], subject: 'Your order' }
const isoForm = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/

const post = (path: string, body: object | undefined, more: { key?: string; headers?: Record<string, string> } = {}) =>
  service.call('POST', path, { key: service.testKey, body, ...more })
const get = (path: string, key = service.testKey) => service.call('GET', path, { key })
const dataOf = (answer: Answer): Record<string, unknown> => {
  expect(answer.body.error).toBe(undefined)
  return answer.body.data as Record<string, unknown>
}
const send = async (changes: object = {}) => dataOf(await post('/emails', { ...letter, ...changes }))

describe('every answer', () => {
  test.each([
    ['a success', () => get('/limits'), 200],
    ['a refusal', () => post('/emails', {}), 400],
    ['an unknown email', () => get('/emails/nothing'), 404],
    ['an unknown route', () => get('/nothing'), 404],
    ['an unknown method', () => service.call('PUT', '/emails', { key: service.testKey }), 404],
    ['no key', () => service.call('GET', '/limits', {}), 401],
    ['an unknown route without a key', () => service.call('GET', '/nothing', {}), 401],
  ])('carries envelope, request id and rate limit: %s', async (_, ask, status) => {
    const answer = await ask()
    expect(answer.status).toBe(status)
    expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8')
    expect(answer.body.success).toBe(status === 200)
    expect(answer.body.meta.requestId).toMatch(/^req_[A-Za-z0-9_-]{16,24}$/)
    expect(answer.headers.get('x-request-id')).toBe(answer.body.meta.requestId)
    for (const name of ['limit', 'remaining', 'reset']) expect(answer.headers.get(`x-ratelimit-${name}`)).toMatch(/^\d+$/)
    expect(answer.headers.get('www-authenticate')).toBe(status === 401 ? 'Bearer' : null)
    if (status !== 200)
      expect(answer.body.error).toMatchObject({
        code: expect.stringMatching(/^[a-z_]+$/),
        message: expect.stringMatching(/./),
        suggestion: expect.stringMatching(/./),
      })
  })
})

test.each([{ vendor: {} }, { vendor: { replyTo: [], bounce: true, recipientsPerField: 99 } }, { replyAddress: 'x' }])(
  'a field that only the APIs of other vendors set has no effect: %j',
  async (extra) => {
    await send(extra)
    const { text: ofBatch } = await post('/emails/batch', { from: letter.from, emails: [{ to: letter.to, subject: 'x', ...extra }] })
    expect(ofBatch).toContain('"accepted":1')
    const cc = Array.from({ length: 51 }, (_, nth) => `r${nth}@simulator.test`)
    expect(await post('/emails', { ...letter, cc, ...extra })).toMatchObject({ status: 400, body: { error: { field: 'cc' } } })
  },
)

describe('a key', () => {
  const refused = async (authorization: string | undefined, code: string) => {
    const answer = await service.call('GET', '/limits', { headers: authorization === undefined ? {} : { authorization } })
    expect(answer).toMatchObject({ status: 401, body: { error: { code } } })
  }

  test('that is missing, malformed or unknown is refused with a code for each case', async () => {
    await refused(undefined, 'authentication_required')
    await refused('Basic abc', 'invalid_api_key')
    await refused('Bearer pk_live_123', 'invalid_api_key')
    await refused(`Bearer svc_live_${'A'.repeat(32)}`, 'invalid_api_key')
  })

  test('is taken with any case of the scheme', async () => {
    expect(await service.call('GET', '/limits', { headers: { authorization: `bearer ${service.testKey}` } })).toMatchObject({ status: 200 })
  })

  test('limited to reading may not send, and the other way round', async () => {
    const reader = await service.makeKey({ permissions: ['emails:read'] })
    const sender = await service.makeKey({ permissions: ['emails:send'] })
    const { id } = await send()
    expect(await post('/emails', letter, { key: reader })).toMatchObject({ status: 403, body: { error: { code: 'permission_denied' } } })
    expect(await get(`/emails/${id}`, reader)).toMatchObject({ status: 200 })
    expect(await post('/emails', letter, { key: sender })).toMatchObject({ status: 200 })
    expect(await get(`/emails/${id}`, sender)).toMatchObject({ status: 403 })
    expect(await get('/limits', sender)).toMatchObject({ status: 200 })
  })

  test('is refused for its permission before its body is looked at', async () => {
    const reader = await service.makeKey({ permissions: ['emails:read'] })
    expect(await service.call('POST', '/emails', { key: reader, raw: '{broken' })).toMatchObject({ status: 403 })
  })

  test('of a tenant neither sees nor infers another tenant, and may not name it', async () => {
    const other = await service.makeTenant('Other')
    const key = await service.makeKey({ tenantId: other })
    const { id } = await send()
    for (const path of [`/emails/${id}`, `/emails/${id}/deliveries`])
      expect(await get(path, key)).toMatchObject({ status: 404, body: { error: { code: 'not_found' } } })
    expect(await post(`/emails/${id}/retry`, undefined, { key })).toMatchObject({ status: 404 })
    expect(await get('/emails', key)).toMatchObject({ status: 200, body: { data: [], total: 0, totalPages: 0 } })
    expect(await get(`/emails?tenantId=${service.tenantId}`, key)).toMatchObject({
      status: 403,
      body: { error: { code: 'tenant_mismatch' } },
    })
    expect(await get(`/emails?tenant_id=${service.tenantId}`, key)).toMatchObject({ status: 403 })
    expect(await post('/emails', { ...letter, tenantId: service.tenantId }, { key })).toMatchObject({
      status: 403,
      body: { error: { code: 'tenant_mismatch', field: 'tenantId' } },
    })
    expect(await post('/emails', { ...letter, tenantId: 'nobody' })).toMatchObject({ status: 404, body: { error: { code: 'not_found' } } })
    expect(await get('/emails?tenantId=nobody')).toMatchObject({ status: 404 })
  })
})

describe('a send', () => {
  test('answers with everything clients decode', async () => {
    const answer = await post('/emails', {
      ...letter,
      to: ['ann@simulator.test', 'bob@simulator.test'],
      cc: ['cy@simulator.test'],
      bcc: ['ANN@simulator.test'],
    })
    const data = dataOf(answer)
    expect(data).toEqual({
      id: expect.stringMatching(/^[0-9A-Za-z]{20,24}$/),
      tenantId: service.tenantId,
      messageId: expect.stringMatching(/^<.+@simulator\.test>$/),
      to: ['ann@simulator.test', 'bob@simulator.test'],
      status: 'pending',
      messages: {
        'ann@simulator.test': { id: data.id },
        'bob@simulator.test': { id: expect.any(String) },
        'cy@simulator.test': { id: expect.any(String) },
      },
    })
  })

  test('takes the older spelling of the tenant, nulls, and keys it does not know', async () => {
    const data = await send({
      tenant_id: service.tenantId,
      cc: null,
      bcc: null,
      replyTo: null,
      html: null,
      text: null,
      tag: null,
      headers: null,
      attachments: null,
      metadata: null,
      colour: 'red',
    })
    expect(data.tenantId).toBe(service.tenantId)
  })

  test('reports the state of the send limit, refused or not', async () => {
    const limited = await startService({ rateLimit: null, sendLimit: 5, clock: halfPastTwelve })
    const ask = (body: object) => limited.call('POST', '/emails', { key: limited.testKey, body })
    const standing = ({ headers }: Answer) => ['limit', 'used', 'remaining', 'reset'].map((name) => headers.get(`x-sendlimit-${name}`))
    const reset = expect.stringMatching(/^\d{10}$/)
    expect(standing(await ask(letter))).toEqual(['5', '1', '4', reset])
    expect(standing(await ask({}))).toEqual(['5', '1', '4', reset])
    const sixth = await ask({ ...letter, to: Array.from({ length: 5 }, (_, n) => `n${n}@simulator.test`) })
    expect([sixth.status, ...standing(sixth)]).toEqual([200, '5', '5', '0', reset])
    expect(Number(sixth.headers.get('x-sendlimit-reset')) % 3600).toBe(0)
    const limits = await limited.call('GET', '/limits', { key: limited.testKey })
    expect(limits.body.data).toMatchObject({
      sendLimit: {
        limit: 5,
        used: 5,
        remaining: 0,
        usagePercent: 100,
        approaching: true,
        exceeded: true,
        period: 'hour',
        resetsAt: expect.stringMatching(isoForm),
      },
    })
    const other = await limited.call('GET', '/limits', { key: limited.liveKey })
    expect(other.body.data).toMatchObject({ sendLimit: { used: 0 } })
    expect(limits.headers.get('x-sendlimit-used')).toBe(null)
    await limited.stop()
  })

  test('without a limit leaves limit and remaining out', async () => {
    const answer = await post('/emails', letter)
    expect(answer.headers.get('x-sendlimit-limit')).toBe(null)
    expect(answer.headers.get('x-sendlimit-remaining')).toBe(null)
    expect(answer.headers.get('x-sendlimit-used')).toMatch(/^\d+$/)
  })

  test.each([
    [{ from: 'nobody' }, 'invalid_email_format', 'from'],
    [{ from: 'a@elsewhere.example' }, 'domain_not_verified', 'from'],
    [{ to: ['a@simulator.test', 'b@simulator.test', 'c@simulator.test', 'nobody'] }, 'invalid_email_format', 'to[3]'],
    [{ replyTo: 'Name <a@b.example>' }, 'invalid_email_format', 'replyTo'],
    [{ subject: 'two\r\nlines' }, 'validation_error', 'subject'],
    [{ headers: { 'Message-ID': '<x@y>' } }, 'validation_error', 'headers.Message-ID'],
    [{ metadata: { one: 'tab\there' } }, 'validation_error', 'metadata.one'],
    [{ attachments: [{ filename: 'a/b', content: '', contentType: 'text/plain' }] }, 'validation_error', 'attachments[0].filename'],
  ])('with %j is refused: %s of %s', async (changes, code, field) => {
    expect(await post('/emails', { ...letter, ...changes })).toMatchObject({ status: 400, body: { error: { code, field } } })
  })
})

describe('a batch', () => {
  test('accepts the right emails and fails the wrong ones, each separately', async () => {
    const emails = [
      { to: ['ann@simulator.test'], subject: 'One' },
      { to: ['nobody'], subject: 'Two' },
      { to: ['bob@simulator.test'] },
      { to: ['ann@simulator.test'], subject: 'Four', metadata: { a: 'b' } },
    ]
    const data = dataOf(await post('/emails/batch', { from: letter.from, emails })) as {
      messages: Record<string, { id: string }>
      results: { id?: string }[]
    }
    expect(data).toMatchObject({
      total: 4,
      accepted: 2,
      failed: 2,
      tenantId: service.tenantId,
      results: [
        { index: 0, status: 'accepted', id: expect.any(String) },
        { index: 1, status: 'failed', error: { code: 'invalid_email_format', field: 'emails[1].to[0]', suggestion: expect.any(String) } },
        { index: 2, status: 'failed', error: { code: 'validation_error', field: 'emails[2].subject' } },
        { index: 3, status: 'accepted' },
      ],
    })
    expect(data.messages).toEqual({ 'ann@simulator.test': { id: data.results[3]?.id } })
  })

  test('that fails altogether is still answered 200', async () => {
    expect(await post('/emails/batch', { from: letter.from, emails: [{}] })).toMatchObject({
      status: 200,
      body: { data: { total: 1, accepted: 0, failed: 1, messages: {} } },
    })
  })

  test.each([
    [{ emails: [] }, 'emails'],
    [{ emails: Array.from({ length: 101 }, () => ({ to: ['a@simulator.test'], subject: 'x' })) }, 'emails'],
    [
      {
        emails: Array.from({ length: 21 }, (_, n) => ({
          to: Array.from({ length: 50 }, (_, m) => `n${n}m${m}@simulator.test`),
          subject: 'x',
        })),
      },
      'emails',
    ],
    [{ emails: [5] }, 'emails[0]'],
    [{ emails: [{ to: ['a@simulator.test'], subject: 'x' }], from: 'x' }, 'from'],
  ])('is refused as a whole for its shape, sender or size %#', async (body, field) => {
    expect(await post('/emails/batch', { from: letter.from, ...body })).toMatchObject({ status: 400, body: { error: { field } } })
  })
})

describe('an idempotency key', () => {
  const ask = (key: string, body: object = letter, path = '/emails') => post(path, body, { headers: { 'idempotency-key': key } })
  const sentWithTag = async (tag: string) => (await get(`/emails?tag=${tag}`)).body.total

  test('used by eight requests at once sends once, and all get the same octets', async () => {
    const answers = await Promise.all(Array.from({ length: 8 }, () => ask('eight', { ...letter, tag: 'eight' })))
    expect(new Set(answers.map((one) => one.status))).toEqual(new Set([200]))
    expect(new Set(answers.map((one) => one.text)).size).toBe(1)
    expect(answers.filter((one) => one.headers.get('idempotent-replayed') === 'true')).toHaveLength(7)
    expect(new Set(answers.map((one) => one.headers.get('x-request-id'))).size).toBe(8)
    expect(await sentWithTag('eight')).toBe(1)
  })

  test('does not care for the order of keys, and refuses another body or path', async () => {
    const first = await ask('order', { ...letter, tag: 'order' })
    expect((await ask('order', { tag: 'order', subject: letter.subject, to: letter.to, from: letter.from })).text).toBe(first.text)
    expect(await ask('order', { ...letter, tag: 'another' })).toMatchObject({
      status: 400,
      body: { error: { code: 'idempotency_key_reused' } },
    })
    expect(await ask('order', { from: letter.from, emails: [{ to: letter.to, subject: 'x' }] }, '/emails/batch')).toMatchObject({
      status: 400,
      body: { error: { code: 'idempotency_key_reused' } },
    })
    expect(await sentWithTag('order')).toBe(1)
  })

  test('of a batch that fails altogether is kept as any other', async () => {
    const failing = { from: letter.from, emails: [{}] }
    const first = await ask('failing', failing, '/emails/batch')
    expect(first).toMatchObject({ status: 200, body: { data: { accepted: 0, failed: 1 } } })
    const again = await ask('failing', failing, '/emails/batch')
    expect(again.text).toBe(first.text)
    expect(again.headers.get('idempotent-replayed')).toBe('true')
    expect(await ask('failing', { from: letter.from, emails: [letter] }, '/emails/batch')).toMatchObject({
      status: 400,
      body: { error: { code: 'idempotency_key_reused' } },
    })
  })

  test('of a refused request may be used again', async () => {
    expect(await ask('again', { ...letter, from: 'a@elsewhere.example' })).toMatchObject({ status: 400 })
    expect(await ask('again')).toMatchObject({ status: 200 })
  })

  test.each(['', 'with space', 'x'.repeat(256), 'ümlaut', 'a,b'])('%o is refused', async (key) => {
    const answer = await post('/emails', letter, { headers: { 'idempotency-key': Buffer.from(key).toString('latin1') } })
    expect(answer).toMatchObject({ status: 400, body: { error: { code: 'invalid_idempotency_key' } } })
  })

  test('of one credential is none of another', async () => {
    const key = await service.makeKey({})
    const first = await ask('mine')
    const second = await post('/emails', letter, { key, headers: { 'idempotency-key': 'mine' } })
    expect(second.headers.get('idempotent-replayed')).toBe(null)
    expect((second.body.data as { id: string }).id).not.toBe((first.body.data as { id: string }).id)
  })
})

describe('the rate limit', () => {
  test('lets ten requests pass in a second and refuses the eleventh, which passes after the time in the refusal', async () => {
    const clock = handMovedDurations()
    const limited = await startService({ rateLimit: 10, clock })
    const ask = () => limited.call('GET', '/limits', { key: limited.testKey })
    const answers = await Promise.all(Array.from({ length: 11 }, ask))
    expect(answers.filter((one) => one.status === 200)).toHaveLength(10)
    const refused = answers.find((one) => one.status === 429)
    expect(refused?.body.error).toMatchObject({ code: 'rate_limit_exceeded' })
    expect(refused?.headers.get('retry-after')).toBe('1')
    expect(answers.map((one) => Number(one.headers.get('x-ratelimit-remaining'))).sort((a, b) => a - b)).toEqual([
      0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9,
    ])
    expect(new Set(answers.map((one) => one.headers.get('x-ratelimit-limit')))).toEqual(new Set(['10']))
    clock.pass(1000)
    expect(await ask()).toMatchObject({ status: 200 })
    await limited.stop()
  })

  test('counts requests without a key by their address, and answers them 401 always', async () => {
    const limited = await startService({ rateLimit: 3, clock: handMovedDurations() })
    const answers = []
    for (let n = 0; n < 5; n++) answers.push(await limited.call('GET', '/limits', {}))
    expect(answers.map((one) => [one.status, one.headers.get('x-ratelimit-remaining')])).toEqual([
      [401, '2'],
      [401, '1'],
      [401, '0'],
      [401, '0'],
      [401, '0'],
    ])
    await limited.stop()
  })
})

describe('the list', () => {
  test('is paged, newest first, and filtered', async () => {
    const tag = 'list-of-five'
    const ids: unknown[] = []
    for (let n = 0; n < 5; n++) ids.push((await send({ tag, to: [`N${n}@simulator.test`] })).id)
    const page = async (query: string) => (await get(`/emails?tag=${tag}&${query}`)).body
    expect(await page('perPage=2&page=1')).toMatchObject({
      success: true,
      page: 1,
      perPage: 2,
      total: 5,
      totalPages: 3,
      data: [{ id: ids[4] }, { id: ids[3] }],
    })
    expect(await page('perPage=2&page=3')).toMatchObject({ page: 3, totalPages: 3, data: [{ id: ids[0] }] })
    expect(await page('perPage=2&page=4')).toMatchObject({ page: 4, data: [] })
    expect(await page('')).toMatchObject({ page: 1, perPage: 30 })
    expect(await page('to=n2@SIMULATOR.test')).toMatchObject({ total: 1, data: [{ id: ids[2], to: 'N2@simulator.test' }] })
    expect(await page('from=shop@simulator.test')).toMatchObject({ total: 5 })
    expect(await page('from=other@simulator.test')).toMatchObject({ total: 0, totalPages: 0, data: [] })
    expect(await page('status=bounced')).toMatchObject({ total: 0 })
    expect(await page(`tenant_id=${service.tenantId}`)).toMatchObject({ total: 5 })
    const [{ timestamp, timestampIso }] = (await page('perPage=1')).data as unknown as [{ timestamp: number; timestampIso: string }]
    expect(await page(`after=${timestamp}`)).toMatchObject({ total: 0 })
    expect(await page(`after=${timestamp - 0.001}&perPage=1`)).toMatchObject({ data: [{ id: ids[4] }] })
    expect((await page(`before=${timestampIso}`)).total).toBeLessThan(5)
    expect(await page('after=2000-01-01T00:00:00%2B02:00&before=2100-01-01')).toMatchObject({ total: 5 })
  })

  test('has every field with its type', async () => {
    const { id } = await send({ tag: 'fields' })
    const [item] = (await get('/emails?tag=fields')).body.data as unknown as [Record<string, unknown>]
    expect(item).toEqual({
      id,
      tenantId: service.tenantId,
      to: 'ann@simulator.test',
      from: letter.from,
      subject: letter.subject,
      status: expect.stringMatching(/^(pending|sent)$/),
      timestamp: expect.any(Number),
      timestampIso: expect.stringMatching(isoForm),
      tag: 'fields',
      messageId: expect.stringMatching(/^<.*>$/),
      test: true,
    })
    expect(new Date((item.timestamp as number) * 1000).toISOString()).toBe(item.timestampIso)
    const { id: untagged } = await send()
    const [other] = (await get('/emails?perPage=1')).body.data as unknown as [object]
    expect(other).toMatchObject({ id: untagged })
    expect(other).not.toHaveProperty('tag')
  })

  test.each([
    ['page=0', 'page'],
    ['page=x', 'page'],
    ['perPage=101', 'perPage'],
    ['perPage=0', 'perPage'],
    ['status=lost', 'status'],
    ['after=soon', 'after'],
    ['before=2026-02-30', 'before'],
    ['page=1&page=2', 'page'],
    ['tag=%00', 'tag'],
  ])('refuses %s by its name', async (query, field) => {
    expect(await get(`/emails?${query}`)).toMatchObject({ status: 400, body: { error: { code: 'validation_error', field } } })
  })

  test('refuses an address that is none', async () => {
    for (const field of ['to', 'from'])
      expect(await get(`/emails?${field}=nobody`)).toMatchObject({ status: 400, body: { error: { code: 'invalid_email_format', field } } })
  })
})

describe('an email in detail', () => {
  const always = [
    'id',
    'tenantId',
    'to',
    'from',
    'subject',
    'status',
    'scope',
    'timestamp',
    'timestampIso',
    'messageId',
    'explanation',
    'spam',
    'spamScore',
    'test',
  ]
  const content = Buffer.from('attached ü')

  const rich = () =>
    send({
      to: ['ann@simulator.test'],
      cc: ['cy@simulator.test'],
      html: '<p>Hello <b>Ann</b></p>',
      tag: 'rich',
      metadata: { order: '4711' },
      headers: { 'X-Shop': 'one' },
      attachments: [{ filename: 'räport.txt', contentType: 'text/plain', content: content.toString('base64') }],
    })

  test('has its constant fields and no fields that were not requested', async () => {
    const { id } = await send()
    const data = dataOf(await get(`/emails/${id}`))
    expect(Object.keys(data).sort()).toEqual([...always].sort())
    expect(data).toMatchObject({
      id,
      tenantId: service.tenantId,
      to: 'ann@simulator.test',
      from: letter.from,
      subject: letter.subject,
      scope: 'outgoing',
      spam: false,
      spamScore: 0,
      test: true,
    })
    expect(dataOf(await get(`/emails/${id}?expand=`))).not.toHaveProperty('headers')
  })

  test.each([
    ['content', ['htmlBody', 'plainBody']],
    ['headers', ['headers']],
    ['deliveries', ['deliveries']],
    ['activity', ['activity']],
    ['attachments', ['attachments']],
    ['raw', ['rawMessage']],
    ['content,%20raw', ['htmlBody', 'plainBody', 'rawMessage']],
    ['full', ['htmlBody', 'plainBody', 'headers', 'deliveries', 'activity', 'attachments', 'rawMessage']],
  ])('expands %s', async (expand, fields) => {
    const { id } = await rich()
    const data = dataOf(await get(`/emails/${id}?expand=${expand}`))
    expect(Object.keys(data).sort()).toEqual([...always, 'tag', 'metadata', ...fields].sort())
  })

  test('shows the content that was sent', async () => {
    const { id, messageId } = await rich()
    const data = dataOf(await get(`/emails/${id}?expand=full`))
    expect(data).toMatchObject({
      tag: 'rich',
      metadata: { order: '4711' },
      htmlBody: '<p>Hello <b>Ann</b></p>',
      plainBody: expect.stringContaining('Hello Ann'),
      activity: { opens: [], clicks: [] },
      attachments: [
        {
          filename: 'räport.txt',
          contentType: 'text/plain',
          size: content.length,
          hash: createHash('sha256').update(content).digest('hex'),
          data: content.toString('base64'),
        },
      ],
    })
    const headers = data.headers as Record<string, string>
    expect(headers).toMatchObject({
      Subject: letter.subject,
      To: 'ann@simulator.test',
      Cc: 'cy@simulator.test',
      'X-Shop': 'one',
      'Message-ID': messageId,
    })
    const message = Buffer.from(data.rawMessage as string, 'base64').toString()
    expect(message).toContain(`Message-ID: ${messageId}\r\n`)
    expect(message).toContain('DKIM-Signature:')
    expect(dataOf(await get(`/emails/${id}?expand=raw`)).rawMessage).toBe(data.rawMessage)
  })

  test('of a raw message is read from its octets', async () => {
    const rawMessage = Buffer.from(
      'From: shop@simulator.test\r\nTo: ann@simulator.test\r\nSubject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\r\nX-Two: a\r\nX-Two: b\r\nContent-Type: text/plain; charset=utf-8\r\n\r\nHello raw\r\n',
    )
    const sent = dataOf(
      await post('/emails/raw', { from: 'shop@simulator.test', to: ['ann@simulator.test'], rawMessage: rawMessage.toString('base64') }),
    )
    const data = dataOf(await get(`/emails/${sent.id as string}?expand=full`))
    expect(data).toMatchObject({ subject: 'Grüße', plainBody: expect.stringContaining('Hello raw'), attachments: [] })
    expect(data).not.toHaveProperty('htmlBody')
    expect(data.headers).toMatchObject({ 'X-Two': 'a, b' })
    expect(Buffer.from(data.rawMessage as string, 'base64').toString()).toContain('X-Two: b\r\n')
  })

  test.each(['content,everything', 'full,everything'])('refuses an expansion that there is not: %s', async (expand) => {
    const { id } = await send()
    expect(await get(`/emails/${id}?expand=${expand}`)).toMatchObject({
      status: 400,
      body: { error: { code: 'validation_error', field: 'expand' } },
    })
  })

  test.each(['nothing', 'batch', '%00', '%zz', `${'0'.repeat(22)}`, 'a'.repeat(3000), '..%2f..'])(
    'with the id %s does not exist',
    async (id) => {
      for (const path of [`/emails/${id}`, `/emails/${id}/deliveries`])
        expect(await get(path)).toMatchObject({ status: 404, body: { error: { code: 'not_found' } } })
    },
  )
})

describe('clients that send headers on everything', () => {
  test('may send a content type with an empty body', async () => {
    const { id } = await send()
    const headers = { 'content-type': 'application/json' }
    expect(await service.call('GET', '/limits', { key: service.testKey, headers })).toMatchObject({ status: 200 })
    const retried = await service.call('POST', `/emails/${id}/retry`, { key: service.testKey, headers })
    expect([200, 400]).toContain(retried.status)
    if (retried.status === 400) expect(retried.body.error?.code).toBe('email_not_retryable')
  })

  test('may leave the content type out, and end a path with a slash', async () => {
    const headers = { authorization: `Bearer ${service.testKey}` }
    const answer = await fetch(`http://127.0.0.1:${service.port}/v1/emails/`, {
      method: 'POST',
      headers,
      body: Buffer.from(JSON.stringify(letter)),
    })
    expect(answer.status).toBe(200)
  })
})

describe('the OpenAPI document', () => {
  test('lists every route, and needs no key', async () => {
    const served = await fetch(`http://127.0.0.1:${service.port}/v1/openapi.json`)
    expect(served.status).toBe(200)
    const document = (await served.json()) as { openapi: string; paths: Record<string, Record<string, { operationId: string }>> }
    expect(document).toEqual(JSON.parse(JSON.stringify(await openApiDocument())))
    expect(document.openapi).toMatch(/^3\.1/)
    for (const endpoint of routes)
      for (const path of pathsOf(endpoint)) expect(document.paths[`/v1${path}`]?.[endpoint.method.toLowerCase()]).toBeDefined()
  })

  test('describes every answer truly', async () => {
    const { id } = await send({ html: '<p>x</p>', attachments: [{ filename: 'a', content: 'aGk=', contentType: 'text/plain' }] })
    const asked: Record<string, () => Promise<Answer>> = {
      'emails.send': () => post('/emails', letter),
      'emails.sendBatch': () => post('/emails/batch', { from: letter.from, emails: [{ to: ['a@simulator.test'], subject: 'x' }, {}] }),
      'emails.sendRaw': () =>
        post('/emails/raw', {
          from: 'a@simulator.test',
          to: ['b@simulator.test'],
          rawMessage: Buffer.from('From: a@simulator.test\r\n\r\nx').toString('base64'),
        }),
      'emails.list': () => get('/emails'),
      'emails.retrieve': () => get(`/emails/${id}?expand=full`),
      'emails.retrieveDeliveries': () => get(`/emails/${id}/deliveries`),
      'limits.retrieve': () => get('/limits'),
    }
    for (const endpoint of routes) {
      const ask = asked[endpoint.name]
      if (!ask) continue
      const answer = await ask()
      expect(answer.status, endpoint.name).toBe(200)
      expect(await ajvSays(endpoint.reply, answer.text), endpoint.name).toBe('fits')
    }
  })
})

/** Validates with Fastify's Ajv, which the service does not use for requests; returns `fits` or the objection. */
async function ajvSays(schema: object, text: string): Promise<string> {
  const app = fastify({ ajv: { customOptions: { coerceTypes: false, removeAdditional: false, allowUnionTypes: true } } })
  app.post('/', { schema: { body: schema } }, () => 'fits')
  const answer = await app.inject({ method: 'POST', url: '/', headers: { 'content-type': 'application/json' }, payload: text })
  await app.close()
  return answer.body
}
