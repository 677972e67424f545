/** Postal's API over HTTP, as its callers use it: keys made by Postal, its envelope, its errors. */
import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openIds, systemRandom } from '#base'
import { importCredential } from '#credentials'
import { type Service, startService } from '../support/in-process-service.ts'

const postalKey = 'Ab3dEf6hIj9lMn2pQr5tUv8x'
const otherKey = 'Zb3dEf6hIj9lMn2pQr5tUv8x'
const ids = openIds(systemRandom)

interface Envelope {
  status: string
  time: number
  flags: object
  data: Record<string, unknown>
}

let service: Service
let tenantId: string
beforeAll(async () => {
  service = await startService({ rateLimit: null, sendLimit: null })
  tenantId = await service.makeTenant('Acme / Shop')
  await service.addDomain(tenantId, 'shop.test')
  await keep(postalKey, tenantId, 'api')
  await keep(otherKey, await service.makeTenant('Other'), 'api')
})
afterAll(() => service.stop())

const keep = (key: string, tenant: string, type: 'api' | 'smtp') =>
  service.db.transaction((tx) =>
    importCredential(
      tx,
      { type, name: 'Main key', tenantId: tenant, key, hold: false, lastUsedAt: null, createdAt: new Date(), from: 'postal' },
      { ids },
    ),
  )

async function call(
  path: string,
  body: unknown,
  {
    key = postalKey,
    prefix = '',
    method = 'POST',
    headers = {},
  }: { key?: string; prefix?: string; method?: string; headers?: object } = {},
) {
  const response = await fetch(`http://127.0.0.1:${service.port}${prefix}/api/v1${path}`, {
    method,
    headers: { ...(key === '' ? {} : { 'x-server-api-key': key }), 'content-type': 'application/json', ...headers },
    ...(method === 'GET' ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  })
  const text = await response.text()
  return { http: response.status, ...(text.startsWith('{"status"') ? (JSON.parse(text) as Envelope) : ({ text } as unknown as Envelope)) }
}

const mail = { to: ['Ann <ann@one.example>'], from: 'Shop <orders@shop.test>', subject: 'Hello', plain_body: 'Hi' }

describe('send/message', () => {
  test('answers an id and a token for each recipient, and the message shows the names of its recipients', async () => {
    const sent = await call('/send/message', {
      ...mail,
      cc: 'Bob B. <bob@one.example>, "C, D" <cd@one.example>',
      bcc: ['eve@one.example'],
      reply_to: 'Help <help@shop.test>, desk@shop.test',
      html_body: '<p>Hi</p>',
      tag: 'order',
      headers: { 'X-Order': 4711, From: 'other@evil.test', 'Message-ID': '<x@y>' },
      attachments: [{ name: 'a/b.txt', content_type: 'text/plain', data: 'SGVs\nbG8=\n' }],
    })
    expect(sent).toMatchObject({ http: 200, status: 'success', flags: {}, time: expect.any(Number) })
    const messages = sent.data.messages as Record<string, { id: number; token: string }>
    expect(Object.keys(messages)).toEqual(['ann@one.example', 'bob@one.example', 'cd@one.example', 'eve@one.example'])
    const { id, token } = messages['ann@one.example'] as { id: number; token: string }
    expect(id).toBeGreaterThan(0)
    expect(token).toMatch(/^\w{22}$/)
    expect(sent.data.message_id).toMatch(/^\w{22}@shop\.test$/)

    const shown = await call('/messages/message', { id, _expansions: true })
    expect(shown).toMatchObject({
      status: 'success',
      data: {
        id,
        token,
        status: { status: 'Pending', held: false, hold_expiry: null, last_delivery_attempt: null },
        details: { rcpt_to: 'ann@one.example', mail_from: 'orders@shop.test', subject: 'Hello', direction: 'outgoing', tag: 'order' },
        plain_body: 'Hi',
        html_body: '<p>Hi</p>',
        attachments: [{ filename: 'a_b.txt', content_type: 'text/plain', data: 'SGVsbG8=\n', size: 5 }],
        headers: {
          from: ['Shop <orders@shop.test>'],
          to: ['Ann <ann@one.example>'],
          cc: ['"Bob B." <bob@one.example>, "C, D" <cd@one.example>'],
          'reply-to': ['Help <help@shop.test>, desk@shop.test'],
          'x-order': ['4711'],
        },
        activity_entries: { loads: [], clicks: [] },
      },
    })
    const raw = Buffer.from(shown.data.raw_message as string, 'base64').toString()
    expect(raw).not.toContain('evil.test')
    expect(raw).not.toContain('eve@one.example')
    expect((await call('/messages/message', { id: token })).data).toEqual({ id, token })
    expect((await call('/messages/deliveries', { id: String(id) })).data).toEqual([])
  })

  test('takes a message without subject or To, for hidden recipients only', async () => {
    const sent = await call('/send/message', {
      bcc: ['eve@one.example'],
      from: 'orders@shop.test',
      html_body: '<p>x</p>',
      subject: null,
      cc: [],
    })
    expect(sent.status).toBe('success')
  })

  test('takes parameters as a form with JSON, and by GET', async () => {
    const form = await fetch(`http://127.0.0.1:${service.port}/api/v1/send/message`, {
      method: 'POST',
      headers: { 'x-server-api-key': postalKey },
      body: new URLSearchParams({ params: JSON.stringify(mail) }),
    })
    expect(await form.json()).toMatchObject({ status: 'success' })
    expect(await call('/messages/message?id=999999999', null, { method: 'GET' })).toMatchObject({ data: { code: 'MessageNotFound' } })
  })

  test.each([
    ['NoRecipients', { to: [] }],
    ['NoContent', { plain_body: ' ' }],
    ['FromAddressMissing', { from: '' }],
    ['UnauthenticatedFromAddress', { from: 'a@elsewhere.test' }],
    ['TooManyToAddresses', { to: Array.from({ length: 51 }, (_, n) => `a${n}@one.example`) }],
    ['TooManyCCAddresses', { cc: Array.from({ length: 51 }, (_, n) => `a${n}@one.example`) }],
    ['TooManyBCCAddresses', { bcc: Array.from({ length: 51 }, (_, n) => `a${n}@one.example`) }],
    ['AttachmentMissingName', { attachments: [{ data: 'eA==' }] }],
    ['AttachmentMissingData', { attachments: [{ name: 'a.txt' }] }],
  ])('refuses with %s and HTTP status 200', async (code, changed) => {
    expect(await call('/send/message', { ...mail, ...changed })).toMatchObject({
      http: 200,
      status: 'error',
      data: { code, message: expect.any(String) },
    })
  })

  test.each([
    ['an address that is none', { to: ['ann'] }],
    ['another sender', { sender: 'other@shop.test' }],
    ['a header with a line end', { headers: { 'X-A': 'a\r\nBcc: b@c.example' } }],
    ['a tag that is an object', { tag: {} }],
    ['data that is not base64', { attachments: [{ name: 'a', data: '%%%' }] }],
  ])('refuses %s as a parameter error', async (_, changed) => {
    expect(await call('/send/message', { ...mail, ...changed })).toMatchObject({
      http: 200,
      status: 'parameter-error',
      data: { message: expect.any(String) },
    })
  })
})

describe('send/raw', () => {
  const raw = (from: string) =>
    Buffer.from(`From: ${from}\r\nTo: Ann <ann@one.example>\r\nSubject: Raw\r\nX-Postal-Tag: news\r\n\r\nHi\r\n`)

  test('decides by the From field, with any mail_from', async () => {
    const wanted = {
      rcpt_to: ['ann@one.example', 'ann@one.example'],
      mail_from: 'bounces@elsewhere.test',
      data: raw('orders@shop.test').toString('base64'),
    }
    const sent = await call('/send/raw', wanted)
    expect(sent).toMatchObject({ status: 'success', data: { messages: { 'ann@one.example': { id: expect.any(Number) } } } })
    const { id } = (sent.data.messages as Record<string, { id: number }>)['ann@one.example'] as { id: number }
    const shown = await call('/messages/message', { id, _expansions: ['details', 'nonsense'] })
    expect(shown.data.details).toMatchObject({ mail_from: 'orders@shop.test', tag: 'news', subject: 'Raw' })
  })

  test('refuses a From field of another owner, and missing parameters', async () => {
    const data = raw('a@elsewhere.test').toString('base64')
    expect(await call('/send/raw', { rcpt_to: ['ann@one.example'], mail_from: 'a@shop.test', data })).toMatchObject({
      status: 'error',
      data: { code: 'UnauthenticatedFromAddress' },
    })
    for (const name of ['rcpt_to', 'mail_from', 'data']) {
      const { [name]: _, ...rest } = { rcpt_to: ['ann@one.example'], mail_from: 'a@shop.test', data } as Record<string, unknown>
      expect(await call('/send/raw', rest)).toMatchObject({
        http: 200,
        status: 'parameter-error',
        data: { message: `\`${name}\` parameter is required but is missing` },
      })
    }
  })
})

describe('access', () => {
  test('a key of Postal is also a Bearer key of /v1, and no key opens another tenant', async () => {
    expect(await service.call('GET', '/emails', { key: postalKey })).toMatchObject({ status: 200 })
    const sent = await call('/send/message', mail)
    const { id } = Object.values(sent.data.messages as Record<string, { id: number }>)[0] as { id: number }
    expect(await call('/messages/message', { id }, { key: otherKey })).toMatchObject({
      status: 'error',
      data: { code: 'MessageNotFound', id },
    })
  })

  test('under /compat/postal a missing key is refused; at the root such a request is not of Postal', async () => {
    expect(await call('/send/message', mail, { prefix: '/compat/postal', key: '' })).toMatchObject({
      http: 200,
      status: 'error',
      data: { code: 'AccessDenied', message: 'Must be authenticated as a server.' },
    })
    expect((await call('/send/message', mail, { key: '' })).http).toBe(404)
    expect(await call('/send/message', mail, { prefix: '/compat/postal' })).toMatchObject({ http: 200, status: 'success' })
  })

  test('an unknown key, an SMTP key and a malformed one are refused with the key', async () => {
    await keep('Sb3dEf6hIj9lMn2pQr5tUv8x', tenantId, 'smtp')
    for (const key of ['Sb3dEf6hIj9lMn2pQr5tUv8x', 'Xb3dEf6hIj9lMn2pQr5tUv8x', 'short', service.testKey.slice(0, -1)])
      expect(await call('/send/message', mail, { key })).toMatchObject({
        http: 200,
        status: 'error',
        data: { code: 'InvalidServerAPIKey', token: key },
      })
  })

  test('an own key works too, and unknown paths are refused in the same form', async () => {
    expect(await call('/messages/message', {}, { key: service.liveKey })).toMatchObject({ status: 'parameter-error' })
    expect(await call('/domains/list', {})).toMatchObject({ http: 200, status: 'error', data: { code: 'NotServed' } })
  })

  test('hostile bodies are refused in the same form, never with 500', async () => {
    const deep = `${'['.repeat(50_000)}${']'.repeat(50_000)}`
    for (const body of [
      '',
      '[]',
      'null',
      '"x"',
      '{',
      deep,
      `{"to":${deep}}`,
      '{"to":{"a":1},"from":1}',
      '{"_expansions":{"x":[]},"id":{}}',
      '{"id":"9".}',
    ])
      for (const path of ['/send/message', '/send/raw', '/messages/message', '/messages/deliveries']) {
        const answer = await call(path, body)
        expect(answer, `${path} ${body.slice(0, 40)}`).toMatchObject({ http: 200, status: expect.stringMatching(/error$/) })
      }
  })

  test('with the setting off, nothing is served', async () => {
    await using plain = await startService({ settings: { POSTRIDER_POSTAL_API: 'off' } })
    const response = await fetch(`http://127.0.0.1:${plain.port}/compat/postal/api/v1/send/message`, {
      method: 'POST',
      headers: { 'x-server-api-key': plain.testKey },
    })
    expect(response.status).toBe(404)
  })

  test('the documented table names every endpoint', () => {
    const page = readFileSync('docs/postal-api.md', 'utf8')
    for (const path of ['send/message', 'send/raw', 'messages/message', 'messages/deliveries']) expect(page).toContain(`/api/v1/${path}`)
  })
})

describe('the request log', () => {
  interface Entry {
    requestId: string
    endpoint: string
    statusCode: number
    email: { id: string; recipientCount: number } | null
  }
  const list = async (query: string) =>
    (await service.call('GET', `/logs?tenantId=${tenantId}&${query}`, { key: service.liveKey })).body.data as Entry[]
  const newest = async (endpoint: string, isIt: (entry: Entry) => boolean = () => true) => {
    const find = async () => (await list(`endpoint=${endpoint}&perPage=1`)).find(isIt)
    await expect.poll(find, { interval: 20 }).toBeDefined()
    return (await find()) as Entry
  }
  const bodiesOf = async ({ requestId }: Entry) =>
    JSON.stringify((await service.call('GET', `/logs/${requestId}`, { key: service.liveKey })).body.data)

  test('shows a form as its JSON, without the content of attachments, and the email that was sent', async () => {
    const attachments = [{ name: 'a.txt', content_type: 'text/plain', data: 'c2VjcmV0IHRleHQ=' }]
    const form = new URLSearchParams({ params: JSON.stringify({ ...mail, to: ['zoe@one.example'], attachments }) })
    await fetch(`http://127.0.0.1:${service.port}/api/v1/send/message`, {
      method: 'POST',
      headers: { 'x-server-api-key': postalKey },
      body: form,
    })
    const zoe = await service.call('GET', '/emails?search=zoe@one.example', { key: postalKey })
    const [{ id }] = zoe.body.data as [{ id: string }]
    const entry = await newest('postal.send.message', ({ email }) => email?.id === id)
    expect(entry.email).toEqual({ id, recipientCount: 1 })
    const bodies = await bodiesOf(entry)
    expect(bodies).toContain('zoe@one.example')
    expect(bodies).toContain('[redacted]')
    expect(bodies).not.toContain('c2VjcmV0')
  })

  test('finds a refusal among the errors, though its status is 200', async () => {
    await call('/send/raw', { mail_from: 'x' })
    const { requestId, statusCode } = await newest('postal.send.raw')
    expect(statusCode).toBe(200)
    const idsIn = async (status: string) => (await list(`status=${status}&perPage=100`)).map((one) => one.requestId)
    expect(await idsIn('error')).toContain(requestId)
    expect(await idsIn('success')).not.toContain(requestId)
  })

  test('does not keep the raw message of an answer', async () => {
    const sent = await call('/send/message', { ...mail, plain_body: 'words only in this message' })
    const { id } = Object.values(sent.data.messages as Record<string, { id: number }>)[0] as { id: number }
    const shown = await call('/messages/message', { id, _expansions: ['raw_message'] })
    const raw = String(shown.data.raw_message)
    expect(raw.length).toBeGreaterThan(100)
    const bodies = async () => bodiesOf(await newest('postal.messages.message'))
    await expect.poll(bodies, { interval: 20 }).toContain('"raw_message":"[redacted]"')
    expect(await bodies()).not.toContain(raw.slice(0, 40))
  })
})
