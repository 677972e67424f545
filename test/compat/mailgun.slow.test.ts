/** The unmodified npm package `mailgun.js` against the service: each served method, its errors, Ghost's calls, and generated requests. */
import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import Mailgun from 'mailgun.js'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { type Service, startService } from '../support/in-process-service.ts'

type Client = ReturnType<InstanceType<typeof Mailgun>['client']>
type Message = Parameters<Client['messages']['create']>[1]

let service: Service
let key: string
let client: Client
const domain = 'shop.test'
const urlOf = ({ port } = service, path = '') => `http://127.0.0.1:${port}${path}`
const clientOf = (secret: string, url = urlOf()): Client => new Mailgun(FormData).client({ username: 'api', key: secret, url })

beforeAll(async () => {
  vi.spyOn(console, 'warn').mockReturnValue()
  service = await startService({ rateLimit: null, sendLimit: null, roles: ['delivery'] })
  await service.addDomain(service.tenantId, domain)
  key = await service.makeKey({ tenantId: service.tenantId })
  client = clientOf(key)
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
  rawMessage: string
  scheduledAt: string | null
  messageId: string
  attachments: { filename: string; contentType: string; size: number }[]
}

const shownAt = async (path: string) => (await service.call('GET', path, { key: service.testKey })).body.data
const emailOf = async (id: string) => (await shownAt(`/emails/${id}?expand=raw,content,attachments`)) as Shown
const emailsTo = async (address: string) => (await shownAt(`/emails?to=${encodeURIComponent(address)}`)) as Shown[]
async function emailTo(address: string): Promise<Shown & { raw: string }> {
  const [found] = await emailsTo(address)
  const shown = await emailOf(found?.id ?? '')
  return { ...shown, raw: Buffer.from(shown.rawMessage, 'base64').toString() }
}

async function send(changed: object, by = client): Promise<string> {
  const answer = await by.messages.create(domain, { ...mail, ...changed } as Message)
  expect(answer).toEqual({ status: 200, id: expect.stringMatching(/^<.+@.+>$/), message: 'Queued. Thank you.' })
  return answer.id as string
}

/** The status and the message of a refused request, as the SDK's typed error has them. */
async function refusalOf(asked: Promise<unknown>): Promise<{ status: number; details: string }> {
  const failure = await asked.then(
    (answer) => ({ answer }),
    (error: unknown) => error,
  )
  expect(failure).toMatchObject({ type: 'MailgunAPIError', status: expect.any(Number), details: expect.any(String) })
  const { status, details } = failure as { status: number; details: string }
  return { status, details }
}

async function eventually<T>(read: () => Promise<T>, isDone: (value: T) => boolean): Promise<T> {
  for (;;) {
    const value = await read()
    if (isDone(value)) return value
    await service.wait(20)
  }
}

describe('a message', () => {
  test('is queued with its Message-ID, its headers, tags and variables', async () => {
    const id = await send({
      to: ['Ann <ann@one.example>', '"Bob, B" <bob@one.example>, cy@one.example'],
      cc: 'cat@one.example',
      bcc: 'eve@one.example',
      text: 'Hi',
      'h:Reply-To': 'Help <help@shop.test>, desk@shop.test',
      'h:X-Order': '4711',
      'h:Sender': 'orders@shop.test',
      'o:tag': ['order', 'new', 'shoes', 'new'],
      'o:dkim': true,
      'o:tracking': false,
      'v:order-id': '4711',
    })
    const shown = await emailTo('bob@one.example')
    expect(shown).toMatchObject({ subject: 'Hello', tag: 'order', metadata: { 'order-id': '4711', tag_2: 'new', tag_3: 'shoes' } })
    expect(shown.raw).toContain(`Message-ID: ${id}\r\n`)
    expect(shown.raw).toContain('From: Shop <orders@shop.test>\r\n')
    expect(shown.raw).toMatch(/To: Ann <ann@one.example>, "Bob, B" <bob@one.example>,\s+cy@one.example\r\n/)
    expect(shown.raw).toContain('Reply-To: Help <help@shop.test>,\r\n desk@shop.test\r\n')
    expect(shown.raw).toContain('X-Order: 4711\r\n')
    expect(shown.raw).not.toMatch(/^Sender:/m)
    expect(shown.raw).not.toContain('eve@one.example')
    expect(await emailsTo('eve@one.example')).toHaveLength(1)
  })

  test('has attachments, inline ones with their file name as content id', async () => {
    await send({
      to: 'files@one.example',
      html: '<img src="cid:logo.png">',
      attachment: [
        { filename: 'Rechnung "ü".pdf', data: Buffer.from('Hello\r\n--x') },
        { filename: 'b.bin', data: Buffer.from([0, 13, 10, 255]) },
      ],
      inline: { filename: 'logo.png', data: Buffer.from('PNG') },
    })
    const shown = await emailTo('files@one.example')
    expect(shown.attachments).toMatchObject([
      { filename: 'Rechnung "ü".pdf', contentType: 'application/pdf', size: 10 },
      { filename: 'b.bin', contentType: 'application/octet-stream', size: 4 },
      { filename: 'logo.png', contentType: 'image/png', size: 3 },
    ])
    expect(shown.raw).toContain('Content-ID: <logo.png>')
  })

  test('may have a thousand recipients who see each other, and one more is refused', async () => {
    const to = Array.from({ length: 1000 }, (_, n) => `many${n}@one.example`)
    await send({ to })
    expect((await emailTo('many999@one.example')).raw).toContain('many0@one.example')
    expect(await refusalOf(send({ to, cc: 'one@more.example' }))).toMatchObject({ status: 400 })
  })

  test('in test mode of a live key is for the simulator', async () => {
    const live = clientOf(service.liveKey)
    await send({ to: 'hardfail+mode@simulator.test', 'o:testmode': true }, live)
    const [found] = await eventually(
      () => emailsTo('hardfail+mode@simulator.test'),
      ([one]) => one?.status === 'hardfail',
    )
    expect(found?.status).toBe('hardfail')
  })

  test('with a delivery time is scheduled, and one that has passed leaves at once', async () => {
    const at = new Date(Date.now() + 3_600_000)
    await send({ to: 'later@one.example', 'o:deliverytime': at.toUTCString() })
    expect(await emailTo('later@one.example')).toMatchObject({ scheduledAt: `${at.toISOString().slice(0, 19)}.000Z` })
    await send({ to: 'past@one.example', 'o:deliverytime': 'Fri, 14 Oct 2011 23:10:10 -0500' })
    expect(await emailTo('past@one.example')).toMatchObject({ scheduledAt: null })
    expect(await refusalOf(send({ 'o:deliverytime': 'tomorrow' }))).toMatchObject({
      status: 400,
      details: expect.stringContaining('o:deliverytime'),
    })
  })

  test('that is complete is sent as it is', async () => {
    const raw = 'From: Shop <orders@shop.test>\r\nTo: mime@one.example\r\nSubject: Own\r\nX-Own: 1\r\n\r\nHi\r\n'
    const answer = await client.messages.create(domain, {
      to: ['Mime <mime@one.example>', 'hidden@one.example'],
      message: raw,
      'o:tag': 'raw',
      'v:order-id': '4711',
    } as unknown as Message)
    expect(answer).toMatchObject({ status: 200, message: 'Queued. Thank you.' })
    const shown = await emailTo('hidden@one.example')
    expect(shown).toMatchObject({ subject: 'Own', tag: 'raw', metadata: { 'order-id': '4711' } })
    expect(shown.raw).toContain('X-Own: 1\r\n')
    for (const message of ['no message', 'Subject: a\r\n\r\nb'])
      expect(await refusalOf(client.messages.create(domain, { to: 'a@one.example', message } as unknown as Message))).toMatchObject({
        status: 400,
        details: expect.stringContaining('message'),
      })
  })

  test('may be urlencoded, with repeated parameters', async () => {
    const body = new URLSearchParams([...Object.entries(mail), ['to', 'form@one.example'], ['o:tag', 'ä & b'], ['v:x', '1+1=2']])
    const response = await fetch(urlOf(service, `/v3/${domain}/messages`), {
      method: 'POST',
      headers: { authorization: `Basic ${Buffer.from(`api:${key}`).toString('base64')}` },
      body,
    })
    expect(await response.json()).toMatchObject({ message: 'Queued. Thank you.' })
    expect(await emailTo('form@one.example')).toMatchObject({ tag: 'ä & b', metadata: { x: '1+1=2' } })
  })
})

describe('recipient variables', () => {
  test('make one message for each recipient, replaced as text', async () => {
    const id = await send({
      to: ['V One <v1@one.example>', 'V2@one.example', 'v3@one.example', 'v1@one.example'],
      subject: 'Order %recipient.n%',
      html: '<p>%recipient.name% %recipient.nam% %recipient% %recipient_fname% %recipient_email% 100% %recipient.n%</p>',
      'h:Reply-To': 'r%recipient.n%@shop.test',
      'h:X-N': '%recipient.n%',
      'v:n': '%recipient.v:n%',
      'recipient-variables': JSON.stringify({
        'v1@one.example': { name: '%recipient.n% & <b>$&', n: 1, 'v:n': 'one' },
        'v2@one.example': { name: 'Bob', n: true, 'v:n': null },
      }),
    })
    const [one, two, three] = await Promise.all(['v1@one.example', 'V2@one.example', 'v3@one.example'].map(emailTo))
    expect(one).toMatchObject({
      subject: 'Order 1',
      htmlBody: '<p>%recipient.n% & <b>$& %recipient.nam% V One <v1@one.example> V v1@one.example 100% 1</p>',
      metadata: { n: 'one', 'mailgun-message-id': id.slice(1, -1) },
    })
    expect(one?.raw).toContain('Reply-To: r1@shop.test\r\n')
    expect(one?.raw).toContain('X-N: 1\r\n')
    expect(one?.raw).not.toContain('V2@one.example')
    expect(two).toMatchObject({ subject: 'Order true', metadata: { n: '' } })
    expect(three).toMatchObject({ subject: 'Order %recipient.n%' })
    expect(await emailsTo('v1@one.example')).toHaveLength(1)
  })

  test('are accepted all or none', async () => {
    const refused = send({
      to: ['all1@one.example', 'all2@one.example'],
      'h:X-N': '%recipient.n%',
      'recipient-variables': JSON.stringify({ 'all1@one.example': { n: '1' }, 'all2@one.example': { n: 'a\r\nBcc: b@c.example' } }),
    })
    expect(await refusalOf(refused)).toMatchObject({ status: 400, details: expect.stringContaining('h:X-N') })
    expect(await emailsTo('all1@one.example')).toEqual([])
  })

  test('whose messages are too large together are refused, however short the request is', async () => {
    const to = Array.from({ length: 1000 }, (_, n) => `large${n}@one.example`)
    const large = { to, 'recipient-variables': '{}' }
    expect(await refusalOf(send({ ...large, html: 'x'.repeat(100_000) }))).toMatchObject({ status: 413 })
    expect(await refusalOf(send({ ...large, html: '%recipient.a%'.repeat(20_000) }))).toMatchObject({ status: 413 })
    expect(await emailsTo('large0@one.example')).toEqual([])
  })

  test.each(['[]', '{"a@one.example":1}', '{"a@one.example":{"b":{}}}', '{', '1', '{"a":{"b":[]}}'])(
    'that are wrong are refused: %s',
    async (text) => {
      expect(await refusalOf(send({ 'recipient-variables': text }))).toMatchObject({
        status: 400,
        details: expect.stringContaining('recipient-variables'),
      })
    },
  )
})

describe('refusals', () => {
  test.each([
    ['from', { from: '' }],
    ['from', { from: 'orders' }],
    ['to', { to: '' }],
    ['to', { to: 'ann' }],
    ["Need at least one of 'text' or 'html'", { html: '' }],
    ['template', { template: 'welcome' }],
    ['t:version', { 't:version': 'a' }],
    ['amp-html', { 'amp-html': 'a' }],
    ['o:tracking-opens', { 'o:tracking-opens': 'perhaps' }],
    ['track domain', { 'o:tracking-opens': true }],
    ['o:dkim', { 'o:dkim': false }],
    ['o:require-tls', { 'o:require-tls': true }],
    ['o:skip-verification', { 'o:skip-verification': true }],
    ['o:sending-ip', { 'o:sending-ip': '192.0.2.1' }],
    ['o:deliver-within', { 'o:deliver-within': '1h' }],
    ['h:X-A', { 'h:X-A': 'a\r\nBcc: b@c.example' }],
    ['h:Sender', { 'h:Sender': 'other@shop.test' }],
    ['h:Message-ID', { 'h:Message-ID': '<a@b>' }],
    ['h:x-mailgun-variables', { 'h:X-Mailgun-Variables': '{}' }],
    ['v:tag_2', { 'v:tag_2': 'a' }],
    ['v:mailgun-message-id', { 'v:mailgun-message-id': 'a' }],
    ['%unsubscribe_url%', { html: '<a href="%unsubscribe_url%">' }],
    ['attachment[0]', { attachment: undefined, 'attachment[0]': 'x' }],
    ['other', { other: 'x' }],
  ])('name %s', async (named, changed) => {
    expect(await refusalOf(send(changed))).toMatchObject({ status: 400, details: expect.stringContaining(named) })
  })

  test('of the key have 401 and 403, of the domain 403 and 404', async () => {
    expect(await refusalOf(send({}, clientOf('svc_test_wrong')))).toEqual({ status: 401, details: 'Forbidden' })
    const reader = clientOf(await service.makeKey({ permissions: ['emails:read'] }))
    expect(await refusalOf(send({}, reader))).toMatchObject({ status: 403 })
    expect(await refusalOf(send({ from: 'a@elsewhere.test' }))).toMatchObject({
      status: 403,
      details: expect.stringContaining('elsewhere.test'),
    })
    for (const asked of [
      client.messages.create('elsewhere.test', mail as Message),
      client.events.get('elsewhere.test'),
      client.suppressions.list('elsewhere.test', 'bounces'),
      client.domains.get('elsewhere.test'),
      client.webhooks.list('elsewhere.test', {}),
    ])
      expect(await refusalOf(asked)).toEqual({ status: 404, details: 'Domain not found: elsewhere.test' })
  })

  test('of one key too fast have 429', async () => {
    await using slow = await startService({ rateLimit: 1 })
    const fast = clientOf(slow.testKey, urlOf(slow))
    const asked = await Promise.allSettled(Array.from({ length: 8 }, () => fast.domains.list()))
    const [refused] = asked.flatMap((one) => (one.status === 'rejected' ? [one.reason as { status: number; details: string }] : []))
    expect(refused).toMatchObject({ status: 429, details: expect.any(String) })
  })

  test('of a message that is too large have 413', async () => {
    expect(await refusalOf(send({ text: 'x'.repeat(14_680_000), html: 'y'.repeat(100) }))).toMatchObject({ status: 413 })
  })

  test('of paths that are not served have 404', async () => {
    for (const asked of [
      client.stats.getDomain(domain, {}),
      client.routes.list({}),
      client.ips.list({}),
      client.domains.domainTemplates.list(domain),
    ])
      expect(await refusalOf(asked)).toMatchObject({ status: 404, details: expect.stringContaining('docs/mailgun-api.md') })
  })
})
