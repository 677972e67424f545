/** Mail of a domain with a tracking domain, from the API to the server that accepts it. */
import PostalMime from 'postal-mime'
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { sql } from '#db'
import { openTokens, type Tokens } from '#tracking'
import { bothPass, lineFaults, publishedOf, signatureVerdicts } from '../support/captured.ts'
import { type FakeMx, type MxMessage, startFakeMx } from '../support/fake-mx.ts'
import { type Service, startService } from '../support/in-process-service.ts'
import { startTestDns, type TestDns } from '../support/test-dns.ts'

const domainByName = sql<{ id: number }>`
  select id
  from domains
  where name = $1`

const origin = 'https://click.shop.example'
const from = 'Shop <orders@shop.example>'
let dns: TestDns
let mx: FakeMx
let service: Service
let tokens: Tokens
let domainId: number
let trackId: string
let published: ReadonlyMap<string, string>

const call = (method: string, path: string, body?: object) =>
  service.call(method, path, { key: service.liveKey, ...(body ? { body } : {}) })

async function newTrack(domainId: number, fullName: string, settings: object = {}): Promise<string> {
  dns.set(fullName, 'CNAME', ['track.house.test'])
  const made = await call('POST', '/tracking', { domainId, name: fullName.split('.')[0], ...settings })
  const { id } = made.body.data as { id: string }
  expect((await call('POST', `/tracking/${id}/verify`)).body.data).toMatchObject({ dnsOk: true })
  return id
}

async function newDomain(name: string): Promise<number> {
  await service.addDomain(service.tenantId, name)
  return (await service.db.first(domainByName, [name]))?.id as number
}

beforeAll(async () => {
  dns = await startTestDns()
  mx = await startFakeMx()
  service = await startService({
    rateLimit: null,
    sendLimit: null,
    roles: ['delivery'],
    settings: {
      POSTRIDER_DNS: dns.address,
      POSTRIDER_RELAY: `smtp://127.0.0.1:${mx.port}`,
      POSTRIDER_PUBLIC_URL: 'https://post.house.test',
    },
  })
  tokens = openTokens(service.secrets)
  domainId = await newDomain('shop.example')
  trackId = await newTrack(domainId, 'click.shop.example', { excludedClickDomains: 'own.example' })
  published = publishedOf((await call('GET', `/domains/${domainId}`)).body.data as Record<string, unknown>)
})
afterAll(async () => {
  await service.stop()
  await mx.close()
  await dns.close()
})
beforeEach(() => {
  mx.messages.length = 0
})

const sent = async (path: string, body: object) => {
  const answer = await call('POST', path, body)
  expect(answer.status, answer.text).toBe(200)
  return answer.body.data as { id: string; messages: Record<string, { id: string }> }
}
const arrived = (recipients: number): Promise<MxMessage[]> =>
  vi.waitUntil(() => mx.messages.flatMap((one) => one.recipients).length >= recipients && mx.messages, { timeout: 10_000, interval: 10 })
const withoutMark = ({ octets }: MxMessage) => octets.toString('latin1').replace(/^X-Message-Mark: \w+\r\n/, '')
const different = (messages: readonly MxMessage[]) => new Set(messages.map(withoutMark)).size
const htmlOf = async (message: MxMessage | undefined) => (await PostalMime.parse(message?.octets ?? Buffer.alloc(0))).html ?? ''
const clickTokens = (html: string) =>
  [...html.matchAll(/"https:\/\/click\.shop\.example\/c\/([\w-]+)"/g)].map((found) => found[1] as string)
const details = async (id: string) =>
  (await call('GET', `/emails/${id}?expand=full`)).body.data as {
    rawMessage: string
    htmlBody: string
    plainBody: string
    headers: Record<string, string>
  }

const html =
  '<html><body>\n<p>Grüße</p><a href="https://a.example/x?y=1&amp;z=%20#ö">A</a>\n<a href="https://own.example/">B</a></body></html>'

describe('an email to several recipients', () => {
  const to = ['ann@one.example', 'bob@one.example', 'eve@one.example']
  let ids: Record<string, { id: string }>
  beforeEach(async () => {
    ids = (await sent('/emails', { from, to, subject: 'Three', html })).messages
    await arrived(3)
  })

  test('reaches each with links of its own that lead to exactly their targets', async () => {
    expect(mx.messages.map((one) => one.recipients.length)).toEqual([1, 1, 1])
    for (const message of mx.messages) {
      const emailId = ids[message.recipients[0] as string]?.id as string
      const arrivedHtml = await htmlOf(message)
      const [token = '', ...others] = clickTokens(arrivedHtml)
      expect(others).toEqual([])
      expect(tokens.read(token, 'click')).toEqual({
        kind: 'click',
        tenantId: service.tenantId,
        emailId,
        url: 'https://a.example/x?y=1&z=%20#ö',
      })
      const [pixel = '', open = ''] = /<img src="https:\/\/click\.shop\.example\/o\/([\w-]+)"[^>]*>(?=<\/body>)/.exec(arrivedHtml) ?? []
      expect(tokens.read(open, 'open')).toEqual({ kind: 'open', tenantId: service.tenantId, emailId, url: '' })
      expect(arrivedHtml.replace(pixel, '').replace(`${origin}/c/${token}`, 'https://a.example/x?y=1&amp;z=%20#ö').trimEnd()).toBe(html)
    }
  })

  test('is signed as it arrives, and no line is too long', async () => {
    for (const { octets } of mx.messages) {
      expect(await signatureVerdicts(octets, published)).toEqual(bothPass)
      expect(lineFaults(octets)).toEqual([])
    }
  })

  test('is shown raw as it was sent, and its html as it was given, even when the track domain has changed since', async () => {
    const compare = async () => {
      for (const { recipients, octets } of mx.messages) {
        const email = await details(ids[recipients[0] as string]?.id as string)
        expect(email.rawMessage).toBe(octets.toString('base64'))
        expect(email.htmlBody).toBe(html)
        expect(email.plainBody).toContain('https://a.example/x?y=1&z=%20#ö')
      }
    }
    await compare()
    await call('PATCH', `/tracking/${trackId}`, { trackClicks: false })
    await compare()
    await call('PATCH', `/tracking/${trackId}`, { trackClicks: true })
  })
})

describe('recipients get the same octets but for their marks', () => {
  const to = ['ann@one.example', 'bob@one.example']
  test('of an email without html', async () => {
    await sent('/emails', { from, to, subject: 'x', text: 'https://a.example/' })
    expect(different(await arrived(2))).toBe(1)
    expect(mx.messages[0]?.octets.includes('https://a.example/')).toBe(true)
  })

  test('when opens are not counted and no link is', async () => {
    await call('PATCH', `/tracking/${trackId}`, { trackOpens: false })
    await sent('/emails', { from, to, subject: 'x', html: '<a href="https://own.example/">x</a>' })
    expect(different(await arrived(2))).toBe(1)
    await call('PATCH', `/tracking/${trackId}`, { trackOpens: true })
  })

  test('of a domain without a track domain, or with one whose DNS is not right', async () => {
    const id = await newDomain('plain.example')
    await call('POST', '/tracking', { domainId: id, name: 'click' })
    await sent('/emails', { from: 'a@plain.example', to, subject: 'x', html })
    expect(different(await arrived(2))).toBe(1)
    expect((await htmlOf(mx.messages[0])).trimEnd()).toBe(html)
  })
})

test('a large email to several recipients is split as well', async () => {
  const large = `${html}${'<!-- padding -->'.repeat(20_000)}`
  await sent('/emails', { from, to: ['ann@one.example', 'bob@one.example'], subject: 'x', html: large })
  await arrived(2)
  expect(mx.messages.map((one) => one.recipients.length)).toEqual([1, 1])
  const [first, second] = await Promise.all(mx.messages.map(htmlOf))
  expect(clickTokens(first ?? '')).not.toEqual(clickTokens(second ?? ''))
})

test('a change is in force for the next email', async () => {
  const id = await newDomain('switch.example')
  const track = await newTrack(id, 'click.switch.example', { sslEnabled: false, trackOpens: false })
  const next = async () => {
    mx.messages.length = 0
    await sent('/emails', { from: 'a@switch.example', to: ['ann@one.example'], subject: 'x', html })
    return htmlOf((await arrived(1))[0])
  }
  expect(await next()).toMatch(/"http:\/\/click\.switch\.example\/c\//)
  await call('PATCH', `/tracking/${track}`, { trackOpens: true, trackClicks: false, sslEnabled: true })
  const opens = await next()
  expect(opens).toContain('"https://click.switch.example/o/')
  expect(opens).not.toContain('/c/')
  await call('DELETE', `/tracking/${track}`)
  expect((await next()).trimEnd()).toBe(html)
})

describe('a raw message', () => {
  const lines = (...text: string[]) => Buffer.from(text.join('\r\n'))
  const plain = lines('From: a@shop.example', 'Subject: Raw', 'Content-Type: text/html; charset=utf-8', '', html, '')
  const send = async (message: Buffer, more: object = {}) => {
    const { id } = await sent('/emails/raw', {
      from: 'a@shop.example',
      to: ['ann@one.example'],
      rawMessage: message.toString('base64'),
      ...more,
    })
    const [arrival] = await arrived(1)
    return { id, arrival, html: await htmlOf(arrival) }
  }

  test('has its html tracked, is shown raw as sent and its html as given', async () => {
    const { id, arrival, html: arrivedHtml } = await send(plain)
    expect(clickTokens(arrivedHtml).map((token) => tokens.read(token, 'click')?.url)).toEqual(['https://a.example/x?y=1&z=%20#ö'])
    expect(arrivedHtml).toContain(`<img src="${origin}/o/`)
    expect(await signatureVerdicts(arrival?.octets ?? Buffer.alloc(0), published)).toEqual(bothPass)
    const email = await details(id)
    expect(email.rawMessage).toBe(arrival?.octets.toString('base64'))
    expect(email.htmlBody.replaceAll('\r\n', '\n').trimEnd()).toBe(html)
  })

  test('with an empty return path is not tracked', async () => {
    expect((await send(plain, { bounce: true })).html.trimEnd()).toBe(html)
  })

  test('that another program has signed is not tracked', async () => {
    const signed = lines(
      'From: a@shop.example',
      'Content-Type: multipart/signed; protocol="application/pkcs7-signature"; boundary=s',
      '',
      '--s',
      'Content-Type: text/html; charset=utf-8',
      'Content-Transfer-Encoding: quoted-printable',
      '',
      '<a href=3D"https://a.example/">x</a>',
      '--s',
      'Content-Type: application/pkcs7-signature',
      '',
      'x',
      '--s--',
      '',
    )
    const { arrival } = await send(signed)
    expect(arrival?.octets.includes('<a href=3D"https://a.example/">x</a>\r\n--s\r\n')).toBe(true)
  })
})

describe('one-click unsubscribe', () => {
  const email = { from, to: ['ann@one.example'], subject: 'x', text: 'Hello', unsubscribe: true }

  test('is a pair of signed headers whose link identifies the sender of the mail', async () => {
    const { id } = await sent('/emails', email)
    const [message] = await arrived(1)
    const { headers } = await PostalMime.parse(message?.octets ?? Buffer.alloc(0))
    const valueOf = (key: string) => headers.filter((one) => one.key === key).map((one) => one.value)
    const [, token = ''] = /^<https:\/\/click\.shop\.example\/u\/([\w-]+)>$/.exec(valueOf('list-unsubscribe').join()) ?? []
    expect(tokens.read(token, 'unsubscribe')).toEqual({ kind: 'unsubscribe', tenantId: service.tenantId, emailId: id, url: '' })
    expect(valueOf('list-unsubscribe-post')).toEqual(['List-Unsubscribe=One-Click'])
    const head = message?.octets.toString('latin1', 0, message.octets.indexOf('\r\n\r\n')) ?? ''
    const signed = [...head.matchAll(/[;\s]h=([^;]*);/g)].map((found) => (found[1] ?? '').replace(/\s/g, '').split(':'))
    expect(signed).toHaveLength(2)
    for (const names of signed) expect(names).toEqual(expect.arrayContaining(['list-unsubscribe', 'list-unsubscribe-post']))
    expect(await signatureVerdicts(message?.octets ?? Buffer.alloc(0), published)).toEqual(bothPass)
    expect((await details(id)).rawMessage).toBe(message?.octets.toString('base64'))
  })

  test('leads to the public URL when the domain has no track domain, or one without https', async () => {
    const id = await newDomain('bare.example')
    await sent('/emails', { ...email, from: 'a@bare.example' })
    await newTrack(id, 'click.bare.example', { sslEnabled: false })
    await sent('/emails', { ...email, from: 'a@bare.example' })
    for (const { octets } of await arrived(2)) expect(octets.toString('latin1')).toContain('List-Unsubscribe: <https://post.house.test/u/')
  })

  test('is for an element of a batch too', async () => {
    const { from: _, ...element } = email
    await sent('/emails/batch', { from, emails: [element, { ...element, to: ['bob@one.example'], unsubscribe: null }] })
    const messages = await arrived(2)
    const [withHeader] = messages.filter((one) => one.octets.includes('List-Unsubscribe: <'))
    expect(withHeader?.recipients).toEqual(['ann@one.example'])
  })

  test.each([
    ['two recipients', { bcc: ['bob@one.example'] }],
    ['a List-Unsubscribe header of its own', { headers: { 'List-unsubscribe': '<https://a.example/>' } }],
    ['a List-Unsubscribe-Post header of its own', { headers: { 'List-Unsubscribe-Post': 'List-Unsubscribe=One-Click' } }],
    ['no boolean', { unsubscribe: 'yes' }],
  ])('is refused with %s', async (_, more) => {
    const answer = await call('POST', '/emails', { ...email, ...more })
    expect(answer).toMatchObject({ status: 400, body: { error: { code: 'validation_error', field: 'unsubscribe' } } })
  })

  test('may name its one recipient twice', async () => {
    await sent('/emails', { ...email, cc: ['Ann@one.example'] })
    expect((await arrived(1))[0]?.octets.includes('List-Unsubscribe: <')).toBe(true)
  })
})
