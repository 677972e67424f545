/** The unmodified npm package `mailgun.js` against the service: each served method, its errors, and Ghost's calls. */
import { createHmac } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { pauseTenant, resumeTenant } from '#delivery'
import { mailgunApi } from '../../src/http/mailgun-endpoints.ts'
import { type Service, startService } from '../support/in-process-service.ts'
import { recordSdkCalls } from '../support/record-sdk-calls.ts'
import { type MailgunClient as Client, mailgunClient } from '../support/sdk-clients.ts'
import { startReceiver } from '../support/webhook-receiver.ts'

type Message = Parameters<Client['messages']['create']>[1]

recordSdkCalls()
let service: Service
let key: string
let client: Client
const domain = 'shop.test'
const urlOf = ({ port } = service, path = '') => `http://127.0.0.1:${port}${path}`
const clientOf = (secret: string, url = urlOf()): Client => mailgunClient(secret, url)

beforeAll(async () => {
  vi.spyOn(console, 'warn').mockReturnValue()
  service = await startService({
    rateLimit: null,
    sendLimit: null,
    roles: ['delivery'],
    settings: { POSTRIDER_ALLOWED_NETWORKS: '127.0.0.0/8' },
  })
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

  test('in test mode of a live key is for the simulator, and its events are marked', async () => {
    const live = clientOf(service.liveKey)
    await send({ to: 'hardfail+mode@simulator.test', 'o:testmode': true }, live)
    const [found] = await eventually(
      () => emailsTo('hardfail+mode@simulator.test'),
      ([one]) => one?.status === 'hardfail',
    )
    expect(found?.status).toBe('hardfail')
    // A suppressed recipient, so that the live mail does not leave.
    await live.suppressions.create(domain, 'bounces', { address: 'live@one.example' } as never)
    await send({ to: 'live@one.example' }, live)
    for (const [recipient, isTest] of [
      ['hardfail+mode@simulator.test', true],
      ['live@one.example', false],
    ] as const) {
      const { items } = await eventually(
        () => eventsOf({ recipient }, live),
        (one) => one.items.length > 0,
      )
      expect(items).toMatchObject([{ event: 'failed', flags: { 'is-test-mode': isTest } }])
    }
  })

  test('with a delivery time is scheduled, and one that has passed leaves at once', async () => {
    const at = new Date(Date.now() + 3_600_000)
    await send({ to: 'later@one.example', 'o:deliverytime': at.toUTCString() })
    expect(await emailTo('later@one.example')).toMatchObject({ scheduledAt: `${at.toISOString().slice(0, 19)}.000Z` })
    await send({ to: 'past@one.example', 'o:deliverytime': 'Fri, 14 Oct 2011 23:10:10 -0500' })
    expect(await emailTo('past@one.example')).not.toHaveProperty('scheduledAt')
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

  test("that is complete has Mailgun's own fields as parameters, which are not sent", async () => {
    const mimeOf = (...own: string[]) =>
      ['From: orders@shop.test', 'To: own@one.example', 'Subject: Own', ...own, 'X-Other: 1', '', 'Hi', ''].join('\r\n')
    const sendOwn = (to: string, own: string[], changed: object = {}) =>
      client.messages.create(domain, { to, message: mimeOf(...own), ...changed } as unknown as Message)
    const later = new Date(Date.now() + 3_600_000).toUTCString().replace('GMT', '+0000')
    await sendOwn('own@one.example', [
      'X-Mailgun-Tag: order',
      'x-mailgun-tag: =?utf-8?q?f=C3=BCr?=',
      'X-Mailgun-Variables: {"order": "4711",',
      ' "lines": [1, 2], "n": 3}',
      `X-Mailgun-Deliver-By: ${later}`,
      'X-Mailgun-Track: no',
      'X-Mailgun-Dkim: yes',
      'X-Mailgun-Require-TLS: no',
      'X-Mailgun-Skip-Verification: no',
      // Mailgun writes these into mail that passes through it, each time.
      'X-Mailgun-Incoming: Yes',
      'X-Mailgun-Spf: Pass',
      'X-Mailgun-Dkim-Check-Result: Pass',
      'X-Mailgun-Sid: WyI0=',
      'X-Mailgun-Batch-Id: 1',
      'X-Mailgun-Sending-Ip: 192.0.2.1',
      'X-Mailgun-Sending-Ip: 192.0.2.2',
    ])
    const shown = await emailTo('own@one.example')
    expect(shown).toMatchObject({
      tag: 'order',
      metadata: { order: '4711', lines: '[1,2]', n: '3', tag_2: 'für' },
      scheduledAt: new Date(later).toISOString(),
    })
    expect(shown.raw).toContain('Subject: Own\r\nX-Other: 1\r\n')
    expect(shown.raw.toLowerCase()).not.toContain('x-mailgun')
    const own = ['X-Mailgun-Tag: order', 'X-Mailgun-Variables: {"a": "own", "b": "own"}', 'X-Mailgun-Drop-Message: yes']
    await sendOwn('given@one.example', own, { 'o:tag': 'given', 'v:a': 'given' })
    expect(await emailTo('given@one.example')).toMatchObject({ tag: 'given', metadata: { a: 'given', b: 'own' } })
    for (const [field, problem] of [
      ['X-Mailgun-Recipient-Variables: {}', 'x-mailgun-recipient-variables is not served'],
      ['X-Mailgun-Deliver-Within: 1h', 'x-mailgun-deliver-within is not served'],
      ['X-Mailgun-Template-Name: order', 'x-mailgun-template-name is not served'],
      ['X-Mailgun-Secondary-DKIM: shop.test/s1', 'x-mailgun-secondary-dkim is not served'],
      ['X-Mailgun-Dkim: no', 'x-mailgun-dkim is served only as yes'],
      ['X-Mailgun-Require-TLS: yes', 'x-mailgun-require-tls is served only as no'],
      ['X-Mailgun-Skip-Verification: yes', 'x-mailgun-skip-verification is served only as no'],
      ['X-Mailgun-Variables: [1]', 'x-mailgun-variables must be a JSON object'],
      ['X-Mailgun-Variables: {', 'x-mailgun-variables is not JSON'],
      ['X-Mailgun-Deliver-By: tomorrow', 'x-mailgun-deliver-by must be a date'],
      ['X-Mailgun-Track: maybe', 'x-mailgun-track must be yes or no'],
      ['X-Mailgun-Track: no\r\nX-Mailgun-Track: no', 'x-mailgun-track occurs more than once'],
    ] as const)
      expect(await refusalOf(sendOwn('own@one.example', [field]))).toMatchObject({ status: 400, details: expect.stringContaining(problem) })
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
    ['attachment[0]', { 'attachment[0]': 'x' }],
    ['other[0]', { 'other[0]': 'x' }],
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
    for (const ask of [
      () => client.messages.create('elsewhere.test', mail as Message),
      () => client.events.get('elsewhere.test'),
      () => client.suppressions.list('elsewhere.test', 'bounces'),
      () => client.domains.get('elsewhere.test'),
      () => client.webhooks.list('elsewhere.test', {}),
    ])
      expect(await refusalOf(ask())).toEqual({ status: 404, details: 'Domain not found: elsewhere.test' })
  })

  type Ask = (by: Client) => Promise<unknown>
  test.each<[string, Ask]>([
    ['messages.create', (by) => by.messages.create(domain, mail as Message)],
    ['messages.create (MIME)', (by) => by.messages.create(domain, { to: 'a@one.example', message: 'a' } as unknown as Message)],
    ['events.get', (by) => by.events.get(domain)],
    ...(['bounces', 'complaints', 'unsubscribes'] as const).flatMap((list): [string, Ask][] => [
      [`suppressions.list (${list})`, (by) => by.suppressions.list(domain, list)],
      [`suppressions.get (${list})`, (by) => by.suppressions.get(domain, list, 'a@one.example')],
      [`suppressions.create (${list})`, (by) => by.suppressions.create(domain, list, { address: 'a@one.example' } as never)],
      [`suppressions.destroy (${list})`, (by) => by.suppressions.destroy(domain, list, 'a@one.example')],
      [`suppressions.destroyAll (${list})`, (by) => by.suppressions.destroyAll(domain, list)],
    ]),
    ['domains.list', (by) => by.domains.list()],
    ['domains.get', (by) => by.domains.get(domain)],
    ['webhooks.list', (by) => by.webhooks.list(domain, {})],
    ['webhooks.get', (by) => by.webhooks.get(domain, 'delivered' as never)],
    ['webhooks.create', (by) => by.webhooks.create(domain, 'delivered' as never, 'https://one.example', false)],
    ['webhooks.update', (by) => by.webhooks.update(domain, 'delivered' as never, 'https://one.example' as never)],
    ['webhooks.destroy', (by) => by.webhooks.destroy(domain, 'delivered' as never)],
  ])('of a wrong key: %s', async (_, ask) => {
    expect(await refusalOf(ask(clientOf('svc_test_wrong')))).toEqual({ status: 401, details: 'Forbidden' })
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
    for (const ask of [
      () => client.stats.getDomain(domain, { event: 'delivered' }),
      () => client.routes.list({ limit: 1 }),
      () => client.domains.domainTemplates.list(domain),
      () => client.suppressions.list(domain, 'whitelists'),
    ])
      expect(await refusalOf(ask())).toMatchObject({ status: 404, details: expect.stringContaining('docs/mailgun-api.md') })
  })

  test.each([
    ['no boundary', 'multipart/form-data', '--a--'],
    ['no last boundary', 'multipart/form-data; boundary=a', '--a\r\nContent-Disposition: form-data; name="to"\r\n\r\nx'],
    ['no header', 'multipart/form-data; boundary=a', '--a\r\n\r\n\r\nx\r\n--a--'],
    ['no name', 'multipart/form-data; boundary=a', '--a\r\nContent-Disposition: form-data\r\n\r\nx\r\n--a--'],
    ['too many fields', 'application/x-www-form-urlencoded', 'to=a&'.repeat(2501)],
    ['Latin-1', 'application/x-www-form-urlencoded', 'to=%FC'],
    ['JSON that is deep', 'application/json', '['.repeat(50_000)],
    ['an unknown type', 'text/plain', 'to=a'],
    ['nothing', 'application/json', ''],
  ])("of a body with %s have Mailgun's form", async (_, type, body) => {
    for (const path of ['messages', 'messages.mime', 'bounces']) {
      const response = await post(`/v3/${domain}/${path}`, body, type)
      expect([response.status, await response.json()]).toEqual([400, { message: expect.any(String) }])
    }
  })
})

const authorization = (secret = key) => `Basic ${Buffer.from(`api:${secret}`).toString('base64')}`
const post = (path: string, body: string | Buffer | FormData | URLSearchParams, type?: string) =>
  fetch(urlOf(service, path), {
    method: 'POST',
    headers: { authorization: authorization(), ...(type === undefined ? {} : { 'content-type': type }) },
    body: body as string,
  })

interface MailgunEvent {
  id: string
  event: string
  timestamp: number
  recipient: string
  severity?: string
  reason?: string
  tags: string[]
  'user-variables': Record<string, string>
  message: { headers: Record<string, string> }
  'delivery-status'?: { code: number; message: string }
}
type Asked = Parameters<Client['events']['get']>[1]
const eventsOf = async (asked: object, by = client) => {
  const { items, pages } = await by.events.get(domain, asked as Asked)
  return { items: items as unknown as MailgunEvent[], pages }
}

test('Ghost sends a newsletter to 1,000 members, polls its events in pages and deletes a suppression', { timeout: 60_000 }, async () => {
  const tenantId = await service.makeTenant('Ghost')
  await service.addDomain(tenantId, 'news.test')
  const ghost = clientOf(await service.makeKey({ tenantId }))
  const begin = Date.now() / 1000 - 1
  const members = ['hardfail+ghost@simulator.test', ...Array.from({ length: 999 }, (_, n) => `member${n}@one.example`)]
  const variables = members.map((one, n) => [one, { name: `Member ${n}`, list_unsubscribe: `https://news.test/unsubscribe/?uuid=${n}` }])
  const { id } = await ghost.messages.create('news.test', {
    to: members,
    from: 'News <noreply@news.test>',
    'h:Reply-To': 'noreply@news.test',
    'h:Sender': 'News <noreply@news.test>',
    'h:Auto-Submitted': 'auto-generated',
    'h:List-Unsubscribe': '<%recipient.list_unsubscribe%>, <%tag_unsubscribe_email%>',
    'h:List-Unsubscribe-Post': 'List-Unsubscribe=One-Click',
    subject: 'News',
    html: '<p>Hello %recipient.name%</p>',
    text: 'Hello %recipient.name%',
    'recipient-variables': JSON.stringify(Object.fromEntries(variables)),
    'v:email-id': '65e8a1',
    'o:tag': ['bulk-email', 'ghost-email'],
  } as Message)
  const shown = await emailTo('member998@one.example')
  expect(shown.raw).toContain('List-Unsubscribe: <https://news.test/unsubscribe/?uuid=999>\r\n')
  expect(shown.htmlBody).toBe('<p>Hello Member 999</p>')

  const options = {
    limit: 300,
    event: 'delivered OR opened OR failed OR unsubscribed OR complained',
    tags: 'bulk-email AND ghost-email',
    begin,
    ascending: 'yes',
  }
  const found = new Map<string, MailgunEvent>()
  let page: string | undefined
  let pageCount = 0
  while (found.size < members.length) {
    const { items, pages } = (await ghost.events.get('news.test', {
      ...options,
      ...(page ? { page } : {}),
    } as unknown as Asked)) as unknown as {
      items: MailgunEvent[]
      pages: { next: { page: string } }
    }
    for (const one of items) {
      expect(found.has(one.id)).toBe(false)
      found.set(one.id, one)
    }
    if (items.length === 0) await service.wait(50)
    pageCount++
    page = pages.next.page
  }
  expect(pageCount).toBeGreaterThan(3)
  const events = [...found.values()]
  expect(new Set(events.map(({ recipient }) => recipient))).toEqual(new Set(members))
  for (const one of events)
    expect(one).toMatchObject({
      tags: ['bulk-email', 'ghost-email'],
      'user-variables': { 'email-id': '65e8a1' },
      message: { headers: { 'message-id': id?.slice(1, -1) } },
    })
  const [failed] = events.filter((one) => one.event === 'failed')
  expect(failed).toMatchObject({
    recipient: members[0],
    severity: 'permanent',
    'delivery-status': { code: 550, message: expect.any(String) },
  })
  const removed = await ghost.suppressions.destroy('news.test', 'bounces', members[0] ?? '')
  expect(removed).toMatchObject({ status: 200, address: members[0] })
  expect(await refusalOf(ghost.suppressions.destroy('news.test', 'bounces', members[0] ?? ''))).toMatchObject({ status: 404 })
  // Another tenant does not see them.
  expect((await eventsOf({ recipient: members[0] })).items).toEqual([])
})

test('held mail of a paused tenant is a temporary failure, and that of suppressed recipients a permanent one', async () => {
  const tenantId = await service.makeTenant('Paused')
  await service.addDomain(tenantId, 'paused.test')
  const paused = clientOf(await service.makeKey({ tenantId }))
  await paused.suppressions.create('paused.test', 'bounces', { address: 'listed@simulator.test' } as never)
  const sendTo = (to: string) =>
    paused.messages.create('paused.test', { ...mail, from: 'a@paused.test', to, 'o:testmode': 'yes' } as Message)
  const failures = async (asked: object = {}) => {
    const { items } = await paused.events.get('paused.test', { event: 'failed', ...asked } as Asked)
    return items as unknown as MailgunEvent[]
  }
  await sendTo('listed@simulator.test')
  await eventually(failures, ({ length }) => length === 1)
  await pauseTenant(service.db, tenantId, { reason: 'too many complaints', by: 'operator' }, Date.now())
  // The delivery process may not have seen the pause yet, and then it sends.
  const sendOne = () => sendTo('delivered@simulator.test').then(() => failures())
  const failed = await eventually(sendOne, ({ length }) => length > 1)
  // Newest first; the poll may have held more than one.
  const [held, listed] = [failed[0], failed.at(-1)]
  expect([held, listed]).toMatchObject([
    { recipient: 'delivered@simulator.test', severity: 'temporary', reason: 'generic', 'delivery-status': { code: 0 } },
    { recipient: 'listed@simulator.test', severity: 'permanent', reason: 'suppress-bounce', 'delivery-status': { code: 605 } },
  ])
  expect(await failures({ severity: 'temporary' })).toContainEqual(held)
  expect(await failures({ severity: 'permanent' })).toEqual([listed])
  await resumeTenant(service.db, tenantId, Date.now())
})

describe('events', () => {
  const recipients = [0, 1, 2, 3].map((n) => `paged${n}@simulator.test`)
  const idsOf = ({ items }: { items: MailgunEvent[] }) => items.map(({ id }) => id)

  beforeAll(async () => {
    await send({ to: recipients, 'recipient-variables': '{}', 'o:tag': ['paged', 'second'] })
    await eventually(
      () => eventsOf({ tags: 'paged', event: 'delivered' }),
      ({ items }) => items.length === recipients.length,
    )
  })

  test('are in pages in both directions', async () => {
    const asked = { tags: 'paged', event: 'delivered' }
    const newest = idsOf(await eventsOf(asked))
    const oldest = idsOf(await eventsOf({ ...asked, ascending: 'yes' }))
    expect(newest).toEqual(oldest.toReversed())
    const first = await eventsOf({ ...asked, limit: 3, ascending: 'yes' })
    expect(idsOf(first)).toEqual(oldest.slice(0, 3))
    const pageOf = (name: string) => ({ page: (first.pages as unknown as Record<string, { page: string }>)[name]?.page })
    const second = await eventsOf(pageOf('next'))
    expect(idsOf(second)).toEqual(oldest.slice(3))
    expect(idsOf(await eventsOf(pageOf('first')))).toEqual(oldest.slice(0, 3))
    expect(idsOf(await eventsOf(pageOf('last')))).toEqual(oldest.slice(1))
    const back = (second.pages as unknown as Record<string, { page: string }>).previous?.page
    expect(idsOf(await eventsOf({ page: back }))).toEqual(oldest.slice(0, 3))
    const end = await eventsOf({ page: (second.pages as unknown as Record<string, { page: string }>).next?.page })
    expect(end.items).toEqual([])
    const again = await eventsOf({ page: (end.pages as unknown as Record<string, { page: string }>).previous?.page })
    expect(idsOf(again)).toEqual(oldest.slice(1))
  })

  test.each([
    [{ recipient: recipients[0], event: 'delivered' }, 1],
    [{ recipient: `"${recipients[0]}" OR ${recipients[1]}`, event: 'delivered' }, 2],
    [{ tags: 'paged AND second', event: '(delivered OR failed)' }, 4],
    [{ tags: 'paged AND other' }, 0],
    [{ tags: 'other OR second', event: 'delivered' }, 4],
    [{ tags: 'paged', event: 'accepted' }, 0],
    [{ tags: 'paged', severity: 'permanent' }, 0],
    [{ tags: 'paged', 'message-id': 'other@shop.test' }, 0],
    [{ tags: 'paged', event: 'delivered', begin: 'Fri, 3 May 2013 09:00:00 -0000', ascending: 'yes', pretty: 'yes' }, 4],
    [{ tags: 'paged', begin: 'Fri, 3 May 2013 09:00:00 -0000', end: '1367575200' }, 0],
    [{ tags: 'paged', begin: 'Fri, 3 May 2013 09:00:00 -0000', ascending: 'no' }, 0],
  ])('match %j', async (asked, count) => {
    expect((await eventsOf(asked)).items).toHaveLength(count)
  })

  test.each([
    { limit: 301 },
    { limit: 0 },
    { begin: 'now' },
    { ascending: 'maybe' },
    { event: 'sent' },
    { event: 'opened AND clicked' },
    { tags: 'a AND b OR c' },
    { tags: 'NOT a' },
    { severity: 'mild' },
    { subject: 'a' },
    { page: Buffer.from('limit=1&other=2').toString('base64url') },
    { page: Buffer.from('back=yes&cursor=1-99999999999999999').toString('base64url') },
  ])('refuse %j', async (asked) => {
    expect((await refusalOf(eventsOf(asked))).status).toBeOneOf([400, 404])
  })
})

describe('suppressions', () => {
  test('of bounces are listed with the reply, and removed', async () => {
    const address = 'hardfail+mg@simulator.test'
    await send({ to: address })
    const found = await eventually(
      () => client.suppressions.get(domain, 'bounces', address).catch(() => undefined),
      (one) => one !== undefined,
    )
    expect(found).toMatchObject({
      type: 'bounces',
      address,
      code: 550,
      error: expect.stringContaining('5.1.1'),
      created_at: expect.any(Date),
    })
    expect((await client.suppressions.list(domain, 'bounces')).items).toContainEqual(found)
    expect(await refusalOf(client.suppressions.get(domain, 'complaints', address))).toMatchObject({
      status: 404,
      details: 'Address not found in complaints table',
    })
    expect(await client.suppressions.destroy(domain, 'bounces', address)).toMatchObject({ status: 200, address })
    expect((await client.suppressions.list(domain, 'bounces')).items).not.toContainEqual(found)
    await client.suppressions.destroyAll(domain, 'bounces')
  })

  test.each(['bounces', 'complaints', 'unsubscribes'] as const)('of %s are added, listed in pages and removed', async (list) => {
    const addresses = ['a', 'b', 'c', 'd'].map((name) => `${name}-${list}@one.example`)
    const many = addresses.slice(0, 3).map((address) => ({ address }))
    expect(await client.suppressions.create(domain, list, many as never)).toMatchObject({
      status: 200,
      message: `3 addresses have been added to the ${list} table`,
    })
    expect(await client.suppressions.create(domain, list, { address: addresses[3] } as never)).toMatchObject({ status: 200 })
    const pageOf = async (asked: object) => {
      const { items, pages } = await client.suppressions.list(domain, list, asked as never)
      return { addresses: items.map((one) => (one as unknown as { address: string }).address), pages }
    }
    expect(await client.suppressions.get(domain, list, addresses[0] as string)).toMatchObject({ type: list, address: addresses[0] })
    const first = await pageOf({ limit: 3 })
    expect(first.addresses).toEqual(addresses.slice(0, 3))
    // The entry that the next page follows may be removed meanwhile.
    await client.suppressions.destroy(domain, list, addresses[2] as string)
    const second = await pageOf({ page: first.pages.next?.page })
    expect(second.addresses).toEqual(addresses.slice(3))
    expect((await pageOf({ page: second.pages.previous?.page })).addresses).toEqual(addresses.slice(0, 2))
    expect((await pageOf({ page: first.pages.last?.page })).addresses).toEqual([addresses[0], addresses[1], addresses[3]])
    expect((await pageOf({ page: first.pages.first?.page })).addresses).toEqual([addresses[0], addresses[1], addresses[3]])
    expect((await client.suppressions.destroyAll(domain, list)).message).toContain('have been removed')
    expect((await pageOf({})).addresses).toEqual([])
  })

  test('keep the code and the text of a bounce, and its time', async () => {
    const address = 'old@one.example'
    const created_at = 'Fri, 21 Oct 2011 11:02:55 GMT'
    await client.suppressions.create(domain, 'bounces', { address, code: 552, error: 'Mailbox is full', created_at } as never)
    expect(await client.suppressions.get(domain, 'bounces', address)).toMatchObject({
      code: 552,
      error: 'Mailbox is full',
      created_at: new Date(created_at),
    })
    await send({ to: address })
    const [held] = await eventually(
      () => emailsTo(address),
      ([one]) => one?.status === 'held',
    )
    expect(held?.status).toBe('held')
    const { items } = await eventually(
      () => eventsOf({ recipient: address }),
      (found) => found.items.length > 0,
    )
    expect(items).toMatchObject([{ event: 'failed', severity: 'permanent', reason: 'suppress-bounce', 'delivery-status': { code: 605 } }])
  })

  test('that are wrong are refused whole', async () => {
    const create = (list: 'bounces' | 'unsubscribes', data: object) => client.suppressions.create(domain, list, data as never)
    expect(await refusalOf(create('bounces', [{ address: 'x@one.example' }, { address: 'ann' }]))).toMatchObject({
      status: 400,
      details: expect.stringContaining('[1].address'),
    })
    expect(await refusalOf(create('bounces', { address: 'x@one.example', code: 'a' }))).toMatchObject({ status: 400 })
    expect(await refusalOf(create('bounces', { address: 'x@one.example', other: 'a' }))).toMatchObject({ status: 400 })
    expect(await refusalOf(create('unsubscribes', { address: 'x@one.example', tag: 'news' }))).toMatchObject({ status: 400 })
    expect(await refusalOf(client.suppressions.get(domain, 'bounces', 'x@one.example'))).toMatchObject({ status: 404 })
    expect(await refusalOf(client.suppressions.list(domain, 'bounces', { limit: 1001 } as never))).toMatchObject({ status: 400 })
    expect(await refusalOf(client.suppressions.list(domain, 'bounces', { term: 'a' } as never))).toMatchObject({ status: 400 })
  })
})

test('domains are listed and shown with their records', async () => {
  const reader = clientOf(await service.makeKey({ tenantId: service.tenantId }))
  expect(await reader.domains.list({ limit: 10, skip: 0 } as never)).toContainEqual(
    expect.objectContaining({ name: domain, state: 'active' }),
  )
  const shown = await reader.domains.get(domain)
  expect(shown).toMatchObject({ name: domain, created_at: expect.any(Date), receiving_dns_records: [] })
  expect(shown.sending_dns_records).toContainEqual(expect.objectContaining({ record_type: 'TXT', valid: 'unknown' }))
  expect(await refusalOf(reader.domains.list({ search: 'a' } as never))).toMatchObject({ status: 400 })
})

test('webhooks have up to three URLs for each event', async () => {
  const urls = ['https://hooks.one.example/a', 'https://hooks.one.example/b']
  const { webhooks } = client
  type Id = Parameters<typeof webhooks.create>[1]
  const create = (id: string, url: string | string[]) => webhooks.create(domain, id as Id, url as string, false)
  const get = (id: string) => webhooks.get(domain, id as never)
  expect(await create('delivered', urls[0] as string)).toMatchObject({ id: 'delivered', urls: [urls[0]] })
  expect(await create('permanent_fail', urls)).toMatchObject({ urls })
  expect(await webhooks.list(domain, {})).toEqual({ delivered: { urls: [urls[0]] }, permanent_fail: { urls } })
  expect(await refusalOf(create('delivered', urls[0] as string))).toMatchObject({ status: 400 })
  expect(await webhooks.update(domain, 'delivered' as never, urls[1] as never)).toMatchObject({ urls: [urls[1]] })
  expect(await get('permanent_fail')).toMatchObject({ urls })
  const shown = (await service.call('GET', '/webhooks', { key })).body.data
  const failures = ['MessageDeliveryFailed', 'MessageBounced', 'MessageHeld']
  expect(shown).toMatchObject({
    webhooks: [
      { url: urls[0], events: failures },
      { url: urls[1], events: [...failures, 'MessageSent'] },
    ],
  })
  expect(await webhooks.destroy(domain, 'permanent_fail' as never)).toMatchObject({ urls })
  expect(await webhooks.list(domain, {})).toEqual({ delivered: { urls: [urls[1]] } })
  // If a URL is refused, no webhook is created.
  expect(await refusalOf(create('opened', ['https://hooks.one.example/c', 'ftp://one.example']))).toMatchObject({ status: 400 })
  expect(await refusalOf(get('opened'))).toMatchObject({ status: 404 })
  expect(await refusalOf(create('accepted', urls[0] as string))).toMatchObject({ status: 400 })
  await webhooks.destroy(domain, 'delivered' as never)
  expect(await webhooks.list(domain, {})).toEqual({})
})

test("a webhook's requests are signed as Mailgun signs, with the key that its creation shows", async () => {
  await using receiver = await startReceiver()
  const form = new FormData()
  form.append('id', 'clicked')
  form.append('url', `${receiver.url}/mailgun`)
  const made = (await (await post(`/v3/domains/${domain}/webhooks`, form)).json()) as { signing_keys: Record<string, string> }
  const signingKey = made.signing_keys[`${receiver.url}/mailgun`] ?? ''
  const [webhook] = ((await service.call('GET', '/webhooks', { key })).body.data as { webhooks: { id: string }[] }).webhooks
  const tell = (event: string) => service.call('POST', `/webhooks/${webhook?.id}/test`, { key, body: { event } })
  for (const event of [
    'MessageLinkClicked',
    'MessageDelayed',
    'MessageBounced',
    'ComplaintReceived',
    'RecipientUnsubscribed',
    'MessageLoaded',
  ])
    expect((await tell(event)).status).toBe(200)
  interface Body {
    signature: { timestamp: string; token: string; signature: string }
    'event-data': MailgunEvent & { url?: string; ip?: string }
  }
  const bodies = receiver.received.map(({ body }) => JSON.parse(body.toString()) as Body)
  for (const { signature, 'event-data': event } of bodies) {
    const { timestamp, token } = signature
    expect(signature.signature).toBe(
      createHmac('sha256', signingKey)
        .update(timestamp + token)
        .digest('hex'),
    )
    expect([timestamp, token]).toEqual([expect.stringMatching(/^\d{10}$/), expect.stringMatching(/^[0-9a-f]{50}$/)])
    expect(event).toMatchObject({ recipient: 'ann@example.org', tags: ['order'], 'user-variables': { order_id: '4711' } })
  }
  expect(bodies.map(({ 'event-data': { event, severity } }) => [event, severity])).toEqual([
    ['clicked', undefined],
    ['failed', 'temporary'],
    ['failed', 'permanent'],
    ['complained', undefined],
    ['unsubscribed', undefined],
    ['opened', undefined],
  ])
  expect(bodies[0]?.['event-data']).toMatchObject({ url: 'https://www.example.com/orders/4711', ip: '203.0.113.45' })
  expect(bodies[1]?.['event-data']).toMatchObject({ 'delivery-status': { code: 451, 'enhanced-code': '4.7.1' } })
})

test('the API is also below /compat/mailgun, needs a key there, and is off with the setting', async () => {
  const below = clientOf(service.testKey, urlOf(service, '/compat/mailgun'))
  expect(await below.messages.create('simulator.test', { ...mail, from: 'a@simulator.test' } as Message)).toMatchObject({ status: 200 })
  const { paging } = (await (
    await fetch(urlOf(service, '/compat/mailgun/v3/simulator.test/events'), { headers: { authorization: authorization(service.testKey) } })
  ).json()) as { paging: { next: string } }
  expect(new URL(paging.next).pathname).toMatch(/^\/compat\/mailgun\/v3\/simulator.test\/events\/[\w-]+$/)
  const response = await fetch(urlOf(service, '/compat/mailgun/v3/shop.test/messages'), { method: 'POST' })
  expect([response.status, await response.json()]).toEqual([401, { message: 'Forbidden' }])
  await using plain = await startService({ settings: { POSTRIDER_MAILGUN_API: 'off' } })
  await expect(clientOf(plain.testKey, urlOf(plain)).domains.list()).rejects.toMatchObject({ status: 404 })
})

test('the documented table names every endpoint', () => {
  const page = readFileSync('docs/mailgun-api.md', 'utf8')
  for (const { path } of mailgunApi.endpoints) expect(page).toContain(path)
})
