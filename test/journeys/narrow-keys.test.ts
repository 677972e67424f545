/** Narrow keys for a user: bound to senders, networks, an expiry and a send limit, on every way in. */
import { createTransport } from 'nodemailer'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type Answer, type Service, startService } from '../support/in-process-service.ts'
import { halfPastTwelve } from '../support/test-clock.ts'

const hourMs = 3_600_000
let aheadMs = 0
const clock = { ...halfPastTwelve, nowMs: () => halfPastTwelve.nowMs() + aheadMs }

let service: Service
let tenantId: string
beforeAll(async () => {
  service = await startService({
    rateLimit: null,
    sendLimit: null,
    roles: ['inbound', 'housekeeping'],
    clock,
    settings: { POSTRIDER_TRUSTED_PROXIES: '127.0.0.1/32', POSTRIDER_REVEAL_KEYS: 'on', POSTRIDER_COMPAT: 'all' },
  })
  tenantId = await service.makeTenant('Shop')
  for (const name of ['shop.example', 'other.example']) await service.addDomain(tenantId, name)
})
beforeEach(() => {
  aheadMs = 0
})
afterAll(() => service.stop())

interface Key {
  id: number
  key: string
  smtpUsername: string
}

const asOwner = (method: string, path: string, body?: object) =>
  service.call(method, path, { key: service.liveKey, ...(body ? { body } : {}) })

async function makeKey(bounds: object, more: object = {}): Promise<Key> {
  const answer = await asOwner('POST', `/tenants/${tenantId}/credentials`, {
    name: 'narrow',
    type: 'api',
    mode: 'test',
    ...bounds,
    ...more,
  })
  expect(answer.status, answer.text).toBe(201)
  expect(answer.body.data).toMatchObject(bounds)
  return answer.body.data as Key
}

const mail = { from: 'hello@shop.example', to: ['delivered@simulator.test'], subject: 'Narrow', text: 'Hello.' }
const rawOf = (from: string, sender = '') =>
  Buffer.from(`From: ${from}\r\n${sender}To: delivered@simulator.test\r\nSubject: Raw\r\n\r\nHello.\r\n`).toString('base64')
const codeOf = ({ status, body }: Answer) => (status === 200 ? status : [status, body.error?.code, body.error?.field])

describe('a key bound to senders', () => {
  const refused = [403, 'permission_denied', 'from']
  let narrow: Key
  beforeAll(async () => {
    narrow = await makeKey({ allowedFrom: ['shop.example', 'billing@other.example'] })
  })
  const ask = (path: string, body: object) => service.call('POST', path, { key: narrow.key, body })

  test.each([
    ['hello@shop.example', 200],
    ['Billing <BILLING@other.example>', 200],
    ['hello@other.example', refused],
    ['hello@mail.shop.example', refused],
    ['hello@simulator.test', refused],
  ])('sends from %s: %j', async (from, expected) => {
    expect(codeOf(await ask('/emails', { ...mail, from }))).toEqual(expected)
    const { from: _, ...element } = mail
    expect(codeOf(await ask('/emails/batch', { from, emails: [element] }))).toEqual(expected)
    expect(codeOf(await ask('/emails/raw', { from, to: mail.to, rawMessage: rawOf(from) }))).toEqual(expected)
  })

  test('sends no raw message with another sender in its header', async () => {
    const raw = (rawMessage: string) => ask('/emails/raw', { from: mail.from, to: mail.to, rawMessage })
    expect(codeOf(await raw(rawOf('hello@other.example')))).toEqual([403, 'permission_denied', 'rawMessage'])
    expect(codeOf(await raw(rawOf(mail.from, 'Sender: hello@other.example\r\n')))).toEqual([403, 'permission_denied', 'rawMessage'])
    // An address of the same domain, for which the key is not bound to the domain.
    const billing = 'billing@other.example'
    const beside = (field: string) =>
      ask('/emails/raw', { from: billing, to: mail.to, rawMessage: rawOf(billing, `${field}: hello@other.example\r\n`) })
    expect(codeOf(await beside('X-Sender'))).toBe(200)
    expect(codeOf(await beside('Sender'))).toEqual([403, 'permission_denied', 'rawMessage'])
  })

  test('is refused in the form of another vendor', async () => {
    const send = (from: string) =>
      fetch(`http://127.0.0.1:${service.port}/compat/resend/emails`, {
        method: 'POST',
        headers: { authorization: `Bearer ${narrow.key}`, 'content-type': 'application/json' },
        body: JSON.stringify({ ...mail, from }),
      })
    expect((await send(mail.from)).status).toBe(200)
    const refusedThere = await send('hello@other.example')
    expect([refusedThere.status, await refusedThere.text()]).toEqual([
      401,
      expect.stringContaining('may not send from hello@other.example'),
    ])
  })

  test('changes no email of another sender', async () => {
    const wide = await makeKey({})
    const at = new Date(clock.nowMs() + hourMs).toISOString()
    const sent = await service.call('POST', '/emails', { key: wide.key, body: { ...mail, from: 'hello@other.example', scheduledAt: at } })
    const { id } = sent.body.data as { id: string }
    expect(codeOf(await ask(`/emails/${id}/cancel`, {}))).toEqual(refused)
    expect(codeOf(await ask(`/emails/${id}/retry`, {}))).toEqual(refused)
    expect(codeOf(await service.call('PATCH', `/emails/${id}`, { key: narrow.key, body: { scheduledAt: at } }))).toEqual(refused)
    expect(codeOf(await service.call('POST', `/emails/${id}/cancel`, { key: wide.key, body: {} }))).toBe(200)
  })
})

describe('a key bound to networks', () => {
  const from = (address: string): Record<string, string> => ({ 'x-forwarded-for': address })

  test('works from them only, for reading too, and strangers do not use up its rate limit', async () => {
    const { key } = await makeKey({ allowedNetworks: ['203.0.113.0/24', '2001:db8::/32'] })
    for (const address of ['203.0.113.9', '2001:db8:1::5', '::ffff:203.0.113.9'])
      expect(codeOf(await service.call('GET', '/limits', { key, headers: from(address) }))).toBe(200)
    for (const [method, path] of [
      ['GET', '/limits'],
      ['GET', '/emails'],
      ['POST', '/emails'],
    ] as const) {
      const answer = await service.call(method, path, { key, headers: from('203.0.114.9'), ...(method === 'POST' ? { body: mail } : {}) })
      expect(codeOf(answer)).toEqual([403, 'permission_denied', undefined])
      expect(answer.body.error?.message).toContain('203.0.114.9')
    }
    expect(codeOf(await service.call('GET', '/limits', { key }))).toEqual([403, 'permission_denied', undefined])
  })
})

test('an expired key is refused as a revoked one, until it gets another expiry', async () => {
  const { id, key } = await makeKey({ expiresAt: new Date(clock.nowMs() + hourMs).toISOString() })
  const read = () => service.call('GET', '/limits', { key })
  expect(codeOf(await read())).toBe(200)
  aheadMs = hourMs
  expect(codeOf(await read())).toEqual([401, 'expired_api_key', undefined])
  const later = new Date(clock.nowMs() + hourMs).toISOString()
  expect(await asOwner('PATCH', `/credentials/${id}`, { expiresAt: later })).toMatchObject({
    status: 200,
    body: { data: { expiresAt: later } },
  })
  expect(codeOf(await read())).toBe(200)
  expect(codeOf(await asOwner('PATCH', `/credentials/${id}`, { expiresAt: new Date(clock.nowMs() - 1).toISOString() }))).toEqual([
    400,
    'validation_error',
    'expiresAt',
  ])
})

describe('a key with a send limit', () => {
  interface Details {
    explanation: { blockedBy: string | null }
  }
  const send = async (key: string) => {
    const answer = await service.call('POST', '/emails', { key, body: mail })
    return (answer.body.data as { id: string }).id
  }
  const waits = async (key: string, id: string) =>
    ((await service.call('GET', `/emails/${id}`, { key })).body.data as Details).explanation.blockedBy === 'send_limit'

  test('delays only its own mail, which leaves when the limit allows it', async () => {
    const narrow = await makeKey({ sendLimit: 2 })
    const ids = [await send(narrow.key), await send(narrow.key), await send(narrow.key), await send(narrow.key)]
    const waiting = () => Promise.all(ids.map((id) => waits(narrow.key, id)))
    expect(await waiting()).toEqual([false, false, true, true])
    const wide = await makeKey({})
    expect(await waits(wide.key, await send(wide.key))).toBe(false)
    await asOwner('PATCH', `/credentials/${narrow.id}`, { sendLimit: 3 })
    await expect.poll(waiting, { timeout: 15_000 }).toEqual([false, false, false, true])
    await asOwner('PATCH', `/credentials/${narrow.id}`, { sendLimit: null })
    await expect.poll(waiting, { timeout: 15_000 }).toEqual([false, false, false, false])
  })

  test('may not make, change or reveal keys, nor may a key with another bound', async () => {
    for (const bounds of [{ sendLimit: 5 }, { allowedFrom: ['shop.example'] }]) {
      const { id, key } = await makeKey(bounds)
      const attempts = [
        service.call('POST', `/tenants/${tenantId}/credentials`, { key, body: { name: 'wide', type: 'api' } }),
        service.call('PATCH', `/tenants/${tenantId}/credentials/${id}`, { key, body: { sendLimit: null, allowedFrom: null } }),
        service.call('GET', `/tenants/${tenantId}/credentials/${id}?reveal=true`, { key }),
      ]
      for (const answer of await Promise.all(attempts)) expect(codeOf(answer)).toEqual([403, 'permission_denied', undefined])
    }
  })
})

test('an SMTP login has the same bounds', async () => {
  const sendAs = ({ key, smtpUsername }: Key, from: string) =>
    createTransport({
      host: '127.0.0.1',
      port: service.ports.submission,
      auth: { user: smtpUsername, pass: key },
      tls: { rejectUnauthorized: false },
    }).sendMail({ from, to: 'ada@example.org', subject: 'Narrow', text: 'Hello.' })
  const smtp = { type: 'smtp', mode: undefined }
  const narrow = await makeKey({ allowedFrom: ['shop.example'], allowedNetworks: ['127.0.0.1/32'] }, smtp)
  expect((await sendAs(narrow, mail.from)).response).toContain('queued as')
  await expect(sendAs(narrow, 'hello@other.example')).rejects.toMatchObject({ responseCode: 550 })
  const elsewhere = await makeKey({ allowedNetworks: ['203.0.113.0/24'] }, smtp)
  await expect(sendAs(elsewhere, mail.from)).rejects.toMatchObject({
    responseCode: 535,
    message: expect.stringContaining('cannot be used'),
  })
  const brief = await makeKey({ expiresAt: new Date(clock.nowMs() + hourMs).toISOString() }, smtp)
  aheadMs = hourMs
  await expect(sendAs(brief, mail.from)).rejects.toMatchObject({ responseCode: 535 })
})

test('a test key that expires, or has a send limit, has the same bounds over SMTP', async () => {
  const sendWith = (key: string) =>
    createTransport({
      host: '127.0.0.1',
      port: service.ports.submission,
      auth: { user: 'apikey', pass: key },
      tls: { rejectUnauthorized: false },
    }).sendMail({ from: mail.from, to: mail.to, subject: 'Narrow', text: 'Hello.' })
  const { key } = await makeKey({ sendLimit: 1, expiresAt: new Date(clock.nowMs() + hourMs).toISOString() })
  const blockedBy = async () => {
    const id = /queued as (\w{22})$/.exec((await sendWith(key)).response)?.[1]
    const { body } = await service.call('GET', `/emails/${id}`, { key })
    return (body.data as { explanation: { blockedBy: string | null } }).explanation.blockedBy
  }
  expect([await blockedBy(), await blockedBy()]).toEqual([null, 'send_limit'])
  aheadMs = hourMs
  await expect(sendWith(key)).rejects.toMatchObject({ responseCode: 535 })
})

test.each([
  [{ allowedFrom: [] }, 'allowedFrom'],
  [{ allowedFrom: ['not a domain'] }, 'allowedFrom[0]'],
  [{ allowedNetworks: ['10.0.0.0/8', '300.1.1.1'] }, 'allowedNetworks[1]'],
  [{ expiresAt: 'soon' }, 'expiresAt'],
  [{ sendLimit: 0 }, 'sendLimit'],
])('%j is refused', async (bounds, field) => {
  expect(codeOf(await asOwner('POST', '/credentials', { name: 'x', type: 'api', ...bounds }))).toEqual([400, 'validation_error', field])
})

test('the last four characters of a key are listed where they are asked for', async () => {
  const { id, key } = await makeKey({})
  const read = async (query: string) => (await asOwner('GET', `/credentials/${id}${query}`)).body.data as { keyEnd?: string }
  expect([(await read('?keyEnd=true')).keyEnd, (await read('')).keyEnd]).toEqual([key.slice(-4), undefined])
})
