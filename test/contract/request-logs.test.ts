import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { sql } from '#db'
import { type Answer, type RequestOptions, type Service, startService } from '../support/in-process-service.ts'

type Entry = Record<string, unknown> & {
  requestId: string
  timestamp: string
  credential: { id: string; keyPrefix: string }
  rateLimit: Record<string, unknown>
  context: Record<string, unknown>
  request: { body: unknown; bodySize: number | null }
  response: { body: unknown; bodySize: number | null }
}

let service: Service
beforeAll(async () => {
  service = await startService({ rateLimit: null, sendLimit: null })
})
afterAll(() => service.stop())

const idOf = (answer: Answer) => answer.body.meta.requestId
const look = async (id: string, key = service.testKey) => (await service.call('GET', `/logs/${id}`, { key })).body.data as Entry
/** The log entry of a response, once it exists; the contract allows a second. */
async function entryOf(answer: Answer, key = service.testKey): Promise<Entry> {
  await expect.poll(() => look(idOf(answer), key), { interval: 20 }).toBeDefined()
  return look(idOf(answer), key)
}
const ask = (method: string, path: string, asked: RequestOptions = {}) => service.call(method, path, { key: service.testKey, ...asked })
const list = async (query: string, key = service.testKey) => (await service.call('GET', `/logs?${query}`, { key })).body
const idsIn = async (query: string, key?: string) => ((await list(query, key)).data as Entry[]).map(({ requestId }) => requestId)
const letter = (more = {}) => ({ from: 'a@simulator.test', to: ['delivered@simulator.test'], subject: 's', text: 't', ...more })

const everything = sql<{ text: string }>`
  select request_logs::text as text
  from request_logs`

describe('an entry of the request log', () => {
  test('records of a send the request, the answer, and the email', async () => {
    const body = letter({
      cc: ['softfail@simulator.test'],
      attachments: [{ content: 'aGVsbG8=', contentType: 'text/plain', filename: 'a.txt' }],
    })
    const headers = {
      'user-agent': 'node-client/2.1',
      'x-stainless-lang': 'js',
      'x-stainless-package-version': '1.4.0',
      'idempotency-key': 'once-1',
    }
    const sent = await ask('POST', '/emails?expand=a&expand=b', { body, headers })
    const entry = await entryOf(sent)
    const { id, messages } = sent.body.data as { id: string; messages: object }
    expect(entry).toMatchObject({
      requestId: idOf(sent),
      method: 'POST',
      path: '/v1/emails',
      endpoint: 'emails.send',
      statusCode: 200,
      credential: { id: expect.stringMatching(/^\d+$/), keyPrefix: 'svc_test' },
      rateLimit: { limit: null, remaining: null, reset: null, limited: false },
      context: { ipAddress: '127.0.0.1', userAgent: 'node-client/2.1', idempotencyKey: 'once-1', queryParams: { expand: ['a', 'b'] } },
      error: null,
      email: { id, recipientCount: Object.keys(messages).length },
      sdk: { name: 'js', version: '1.4.0' },
      tenantId: service.tenantId,
      request: {
        body: { ...body, attachments: [{ content: '[redacted]', contentType: 'text/plain', filename: 'a.txt' }] },
        bodySize: JSON.stringify(body).length,
      },
      response: { body: sent.body, bodySize: sent.text.length },
    })
    expect(Math.abs(new Date(entry.timestamp).getTime() - new Date().getTime())).toBeLessThan(30_000)
    const repeated = await entryOf(await ask('POST', '/emails?expand=a&expand=b', { body, headers }))
    expect(repeated).toMatchObject({ email: { id, recipientCount: 2 }, tenantId: service.tenantId })
  })

  test('names the email of a batch, of a raw message and of a look', async () => {
    const batch = await ask('POST', '/emails/batch', {
      body: { from: 'a@simulator.test', emails: [letter(), { subject: 'no one' }, letter()] },
    })
    const firstId = (batch.body.data as { results: { id: string }[] }).results[0]?.id as string
    expect(await entryOf(batch)).toMatchObject({ endpoint: 'emails.sendBatch', email: { id: firstId, recipientCount: 2 } })
    const rawMessage = Buffer.from('From: a@simulator.test\r\nTo: b@simulator.test\r\n\r\nx').toString('base64')
    const raw = await ask('POST', '/emails/raw', { body: { from: 'a@simulator.test', to: ['b@simulator.test'], rawMessage } })
    const rawId = (raw.body.data as { id: string }).id
    expect(await entryOf(raw)).toMatchObject({ email: { id: rawId, recipientCount: 1 }, request: { body: { rawMessage: '[redacted]' } } })
    const seen = await entryOf(await ask('GET', `/emails/${firstId}`))
    expect(seen).toMatchObject({ endpoint: 'emails.retrieve', email: { id: firstId, recipientCount: null }, tenantId: service.tenantId })
    expect(seen.request).toEqual({ body: null, bodySize: null })
    expect(await entryOf(await ask('GET', '/emails'))).toMatchObject({ endpoint: 'emails.list', email: null, tenantId: null })
  })

  test('is there for a refused request, and for a route that does not exist', async () => {
    const limited = await service.makeKey({ permissions: ['emails:read'] })
    const cases: [Answer, object][] = [
      [await ask('POST', '/emails', { key: limited, body: letter() }), { statusCode: 403, error: { code: 'permission_denied' } }],
      [
        await ask('GET', '/no/such/route?a=1', { headers: { 'user-agent': 'Mozilla/5.0 (X11)' } }),
        { statusCode: 404, endpoint: 'unknown', path: '/v1/no/such/route', error: { code: 'not_found' }, email: null, sdk: null },
      ],
      [await ask('PUT', '/emails', { body: {} }), { statusCode: 404, endpoint: 'unknown', method: 'PUT' }],
      [
        await ask('POST', '/emails', { body: letter({ to: [] }) }),
        {
          statusCode: 400,
          error: { code: 'validation_error', message: expect.stringContaining('to') },
          email: null,
          request: { body: letter({ to: [] }) },
        },
      ],
      [
        await ask('POST', '/emails', { raw: '{"subject":"s","secret":"s3krit", ' }),
        { statusCode: 400, error: { code: 'invalid_json' }, request: { body: '{"subject":"s","secret":"[redacted]", ', bodySize: 34 } },
      ],
      [await ask('POST', '/emails', { raw: '[1]' }), { statusCode: 400, request: { body: '[1]', bodySize: 3 } }],
      [
        await ask('POST', '/tenants', { raw: 'x'.repeat(1_100_000) }),
        { statusCode: 400, error: { code: 'payload_too_large' }, request: { body: null, bodySize: 1_100_000 } },
      ],
      [await ask('GET', '/logs?perPage=0'), { statusCode: 400, endpoint: 'logs.list' }],
    ]
    for (const [answer, expected] of cases) {
      expect(await entryOf(answer)).toMatchObject({ ...expected, response: { body: answer.body, bodySize: answer.text.length } })
    }
  })

  test('is there for a request over the limit, and not without authentication', async () => {
    await using strict = await startService({ rateLimit: 2 })
    const answers = await Promise.all([1, 2, 3].map(() => strict.call('GET', '/limits', { key: strict.testKey })))
    for (const key of [undefined, 'svc_test_x', `svc_test_${'a'.repeat(32)}`])
      expect((await strict.call('GET', '/limits', key === undefined ? {} : { key })).status).toBe(401)
    const refused = answers.find(({ status }) => status === 429) as Answer
    const passed = answers.find(({ status }) => status === 200) as Answer
    const wait = async (answer: Answer) => {
      let seen: Answer | undefined
      const status = async () => {
        seen = await strict.call('GET', `/logs/${idOf(answer)}`, { key: strict.liveKey })
        return seen.status
      }
      await expect.poll(status, { interval: 600 }).toBe(200)
      return seen?.body.data as Entry
    }
    expect(await wait(refused)).toMatchObject({
      statusCode: 429,
      rateLimit: { limit: 2, remaining: 0, reset: Number(refused.headers.get('x-ratelimit-reset')), limited: true },
      error: { code: 'rate_limit_exceeded' },
    })
    expect(await wait(passed)).toMatchObject({ rateLimit: { limit: 2, limited: false }, error: null })
    // Entries are written in the order of their requests: entries for the 401s would exist by now.
    for (const { text } of await strict.db.rows(everything)) expect(text).not.toMatch(/_required|_api_key/)
  })

  test('is there for reading the log itself', async () => {
    const entry = await entryOf(await ask('GET', '/logs?perPage=1'))
    expect(entry).toMatchObject({ endpoint: 'logs.list', context: { queryParams: { perPage: '1' } } })
  })

  test('keeps no secret, sealed or not, and nothing of bodies that the database could read', async () => {
    const made = await ask('POST', '/credentials', { body: { name: 'one', type: 'api' } })
    const { key } = made.body.data as { key: string }
    const entry = await entryOf(made)
    expect(entry.response.body).toMatchObject({ data: { name: 'one', key: '[redacted]' } })
    const hook = await ask('POST', '/webhooks', { body: { name: 'One', url: 'https://hooks.example.com/x', events: ['MessageSent'] } })
    expect(JSON.stringify(await entryOf(hook))).not.toContain((hook.body.data as { secret?: string }).secret ?? 'none')
    await entryOf(await ask('POST', '/tenants', { body: { name: 'Quuxotic' } }))
    for (const { text } of await service.db.rows(everything)) {
      expect(text).not.toContain(key)
      expect(text).not.toContain(Buffer.from('Quuxotic').toString('hex'))
    }
  })

  test('cuts long bodies with a mark, and takes any characters', async () => {
    const long = await ask('POST', '/emails', { body: letter({ text: 'ä'.repeat(40_000) }) })
    const { request } = await entryOf(long)
    expect(request.bodySize).toBeGreaterThan(80_000)
    expect(request.body).toMatch(/ä\.\.\. \[truncated\]$/)
    expect(Buffer.byteLength(request.body as string)).toBeLessThanOrEqual(25_600 + 15)
    const odd = await ask('GET', '/nowhere/%00?a%00b=%00&key=s3krit&c=%ed%a0%80', { headers: { 'user-agent': `x${'y'.repeat(5000)}` } })
    const entry = await entryOf(odd)
    expect(entry.context.queryParams).toMatchObject({ key: '[redacted]', 'a\ufffdb': '\ufffd' })
    expect((entry.context.userAgent as string).length).toBe(1000)
    const surrogate = await ask('POST', '/tenants', { raw: '{"name":"\\ud800\\u0000"}' })
    expect((await entryOf(surrogate)).request.bodySize).toBe(23)
  })
})

describe('the list of request logs', () => {
  test('is newest first, in pages, without bodies', async () => {
    const asked: string[] = []
    for (let n = 0; n < 3; n++) asked.unshift(idOf(await ask('GET', '/domains')))
    await expect.poll(() => idsIn('endpoint=domains.list'), { interval: 20 }).toEqual(asked)
    const second = await list('endpoint=domains.list&page=2&perPage=2')
    expect(second).toMatchObject({ page: 2, perPage: 2, total: 3, totalPages: 2, data: [{ requestId: asked[2] }] })
    expect(second.data).not.toContainEqual(expect.objectContaining({ request: expect.anything() }))
  })

  test('is filtered by status, code, endpoint, credential, a part of the id, and time', async () => {
    const key = await service.makeKey({})
    const good = await ask('GET', '/tenants', { key })
    const bad = await ask('GET', '/tenants?perPage=1000', { key })
    const { credential, timestamp } = await entryOf(bad)
    const [goodId, badId] = [idOf(good), idOf(bad)]
    const own = (more: string) => idsIn(`credentialId=${credential.id}&endpoint=tenants.list${more}`)
    expect(await own('')).toEqual([badId, goodId])
    expect(await own('&status=success')).toEqual([goodId])
    expect(await own('&status=error')).toEqual([badId])
    expect(await own('&statusCode=400')).toEqual([badId])
    expect(await own('&statusCode=400&status=success')).toEqual([])
    expect(await idsIn(`requestId=${badId.slice(6, -2)}`)).toEqual([badId])
    expect(await idsIn(`requestId=${badId}`)).toEqual([badId])
    expect(await idsIn('requestId=%25')).toEqual([])
    expect(await own(`&endDate=${timestamp}`)).toContain(badId)
    expect(await own(`&startDate=${timestamp}&endDate=${timestamp}`)).toContain(badId)
    expect(await own(`&startDate=${new Date(new Date(timestamp).getTime() + 1).toISOString()}`)).toEqual([])
    expect(await idsIn('credentialId=x')).toEqual([])
    expect(await idsIn('credentialId=0')).toEqual([])
    expect(await idsIn('endpoint=tenants')).toEqual([])
    for (const wrong of ['status=ok', 'statusCode=99', 'statusCode=600', 'startDate=soon', 'page=0', 'perPage=101'])
      expect(await ask('GET', `/logs?${wrong}`), wrong).toMatchObject({ status: 400, body: { error: { code: 'validation_error' } } })
  })

  test('of a tenant has the requests by its keys and about it, and no others', async () => {
    const [one, other] = [await service.makeTenant('One'), await service.makeTenant('Other')]
    const key = await service.makeKey({ tenantId: one })
    const asked = [
      await ask('GET', '/emails', { key }),
      await ask('GET', '/no/route', { key }),
      await ask('GET', `/emails?tenantId=${other}`, { key }),
      await ask('GET', `/tenants/${one}/suppressions`),
      await ask('GET', `/emails?tenant_id=${one}`),
      await ask('POST', '/suppressions', { body: { address: 'a@example.com', tenantId: one } }),
      await ask('POST', '/suppressions', { body: { address: 'nobody', tenantId: one } }),
    ]
    const foreign = [await ask('GET', `/tenants/${other}/suppressions`), await ask('GET', '/emails'), await ask('GET', '/limits')]
    await entryOf(foreign[2] as Answer)
    const seen = (await list('perPage=100', key)).data as Entry[]
    expect(new Set(seen.map(({ tenantId }) => tenantId))).toEqual(new Set([one]))
    expect(seen.map(({ requestId }) => requestId).filter((id) => asked.some((answer) => idOf(answer) === id))).toHaveLength(asked.length)
    const about = await idsIn(`perPage=100&tenantId=${one}`)
    expect(about).toEqual(expect.arrayContaining(asked.map(idOf)))
    for (const answer of foreign) {
      const hidden = await service.call('GET', `/logs/${idOf(answer)}`, { key })
      const absent = await service.call('GET', `/logs/req_${'0'.repeat(20)}`, { key })
      expect(hidden).toMatchObject({ status: 404, body: { error: { ...absent.body.error } } })
    }
    expect(await service.call('GET', `/logs?tenantId=${other}`, { key })).toMatchObject({
      status: 403,
      body: { error: { code: 'tenant_mismatch' } },
    })
    expect(await ask('GET', '/logs?tenantId=nobody')).toMatchObject({ status: 404 })
    for (const id of ['x', '%00', `req_${'0'.repeat(20)}`]) expect((await ask('GET', `/logs/${id}`)).status).toBe(404)
  })
})
