/** Forwarding by routes: the copy that another server gets, its bounces, loops, and repetitions by the sender. */
import { sealMessage } from 'mailauth/lib/arc/index.js'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { systemClock } from '#base'
import { sql } from '#db'
import { dnsText, makeRsaKey } from '#dkim'
import { openReturnPaths } from '#emails'
import { eraseAddress } from '#housekeeping'
import { forwardedSince } from '../../src/received-mail/stored-messages.ts'
import { txtResolver } from '../support/authentication-samples.ts'
import { arcVerdict, signatureVerdicts } from '../support/captured.ts'
import { type FakeMx, startFakeMx } from '../support/fake-mx.ts'
import { type Service, startService } from '../support/in-process-service.ts'
import { greetedClient, sendIncoming } from '../support/send-incoming.ts'
import { type MxDns, startMxDns } from '../support/simple-dns.ts'
import type { SmtpClient } from '../support/smtp-client.ts'

let service: Service
let mx: FakeMx
let dns: MxDns
let client: SmtpClient
let routeId: string
const published = new Map<string, string>()
const sealerKey = await makeRsaKey()

beforeAll(async () => {
  mx = await startFakeMx()
  dns = await startMxDns({
    txt: { 's._domainkey.list.test': dnsText('rsa', sealerKey.publicKey), '_dmarc.house.test': 'v=DMARC1; p=none' },
    mx: { 'target.test': ['mx.target.test'], 'away.test': ['mx.away.test'] },
    a: { 'mx.target.test': ['127.0.0.1'], 'mx.away.test': ['127.0.0.2'] }, // where no server listens
  })
  service = await startService({
    rateLimit: null,
    sendLimit: null,
    roles: ['inbound', 'delivery'],
    settings: { POSTRIDER_DNS: dns.address, POSTRIDER_MX_PORT: String(mx.port), POSTRIDER_ALLOWED_NETWORKS: '127.0.0.0/8' },
  })
  await service.addDomain(service.tenantId, 'shop.test')
  const ask = async <T>(method: string, path: string, body?: object) =>
    (await service.call(method, path, { key: service.liveKey, body })).body.data as T
  const { domains } = await ask<{ domains: { id: number; name: string }[] }>('GET', '/domains')
  const domainId = domains.find(({ name }) => name === 'shop.test')?.id
  const { dnsRecords } = await ask<{ dnsRecords: Record<string, { fullName: string; value: string }> }>('GET', `/domains/${domainId}`)
  for (const record of [dnsRecords.dkim, dnsRecords.dkimEd25519]) if (record) published.set(record.fullName, record.value)
  await ask('POST', '/routes', { address: 'away@shop.test', forwardTo: 'bob@away.test' })
  routeId = (await ask<{ id: string }>('POST', '/routes', { address: 'sales@shop.test', forwardTo: 'ann@target.test' })).id
  client = await greetedClient(service.ports.smtp)
})
afterAll(async () => {
  client.destroy()
  await service.stop()
  await dns[Symbol.asyncDispose]()
  await mx[Symbol.asyncDispose]()
})

interface Received {
  id: string
  subject: string
  forwarded: { to: string; emailId: string }[]
}

const received = async (subject: string) =>
  ((await service.call('GET', '/received', { key: service.liveKey })).body.data as Received[]).find((one) => one.subject === subject)
const message = (subject: string, more = '') =>
  `From: Reader <reader@example.net>\r\nDate: Sat, 21 Nov 2026 08:00:00 +0000\r\nMessage-ID: <${subject}@example.net>\r\nMIME-Version: 1.0\r\nSubject: ${subject}\r\n${more}\r\nHello\r\n.dot`
const send = (octets: string, from = 'reader@example.net') => sendIncoming(client, { from, to: ['sales@shop.test'], octets })

test('a copy arrives unchanged below a trace, signed by the domain, with a return path of its own', async () => {
  const octets = message('first')
  expect(await send(octets)).toMatch(/^250/)
  const [copy] = await mx.waitFor(1, 15_000)
  const text = copy?.octets.toString() ?? ''
  expect(copy?.recipients).toEqual(['ann@target.test'])
  expect(text.endsWith(`X-Postrider-Route: ${routeId}\r\n${octets}\r\n`)).toBe(true)
  const kept = await received('first')
  expect(text).toContain(`Received: from [127.0.0.1] by house.test (Postrider) with ESMTP id ${kept?.id};`)
  expect(await signatureVerdicts(copy?.octets ?? Buffer.alloc(0), published)).toEqual(['ed25519-sha256 pass', 'rsa-sha256 pass'])
  expect(kept?.forwarded).toEqual([{ to: 'ann@target.test', emailId: expect.stringMatching(/^\w{22}$/) }])
  expect(openReturnPaths(service.secrets).read(copy?.from ?? '', systemClock.nowMs())).toBe(kept?.forwarded[0]?.emailId)
  await vi.waitFor(
    async () => {
      const { body } = await service.call('GET', `/emails/${kept?.forwarded[0]?.emailId}`, { key: service.liveKey })
      expect(body.data).toMatchObject({ status: 'sent', to: 'ann@target.test', from: 'reader@example.net' })
    },
    { timeout: 10_000 },
  )
})

test("a copy whose From is in the route's organisation without proof has neither its signature nor its return path", async () => {
  const forged = (name: string, from: string) => message(name).replace('Reader <reader@example.net>', from)
  for (const [name, from] of [
    ['forged', 'The boss <ceo@shop.test>'],
    ['forged below', 'The boss <ceo@office.shop.test>'],
    ['two authors', 'ceo@shop.test, reader@example.net'],
  ] as const) {
    expect(await send(forged(name, from))).toMatch(/^250/)
    const copy = await copyOf(name)
    expect([name, copy.toString().match(/^DKIM-Signature:/gim)]).toEqual([name, null])
  }
  expect(mx.messages.find(({ octets }) => octets.includes('Subject: forged'))?.from).toMatch(/@rp\.house\.test$/)
})

test("a message whose From is in the server's own organisation without proof is stored and not forwarded", async () => {
  const octets = message('own name').replace('Reader <reader@example.net>', 'The operator <root@house.test>')
  expect(await send(octets)).toMatch(/^250/)
  expect((await received('own name'))?.forwarded).toEqual([])
})

const copyOf = async (subject: string): Promise<Buffer> => {
  const find = () => mx.messages.find(({ octets }) => octets.includes(`Subject: ${subject}`))?.octets
  await vi.waitFor(() => expect(find()).toBeDefined(), { timeout: 15_000 })
  return find() ?? Buffer.alloc(0)
}
/** As a mailing list does. */
const sealedByOther = async (octets: string) => {
  const by = {
    signingDomain: 'list.test',
    selector: 's',
    privateKey: sealerKey.privateKey,
    authResults: 'list.test; spf=none',
    cv: 'none' as const,
  }
  return `${await sealMessage(Buffer.from(octets), by)}${octets}`
}

test('a copy has an ARC set of the checks, which a verifier passes until the message changes', async () => {
  expect(await send(message('sealed'))).toMatch(/^250/)
  const copy = await copyOf('sealed')
  expect(await arcVerdict(copy, published)).toBe('pass i=1')
  expect(await arcVerdict(Buffer.from(copy.toString().replace('Hello', 'hello')), published)).toBe('fail i=1')
  expect(copy.toString()).toContain(
    'ARC-Authentication-Results: i=1; house.test;\r\n\tspf=none smtp.mailfrom=example.net;\r\n\tdkim=none;\r\n\tdmarc=none header.from=example.net;\r\n\tarc=none\r\n',
  )
})

test('a copy continues the chain of its message, and records one that does not verify', async () => {
  const all = new Map([...published, ['s._domainkey.list.test', dnsText('rsa', sealerKey.publicKey)]])
  const whole = await sealedByOther(message('chained'))
  expect(await send(whole)).toMatch(/^250/)
  expect(await send(whole.replaceAll('chained', 'broken'))).toMatch(/^250/)
  const chained = await copyOf('chained')
  expect(chained.toString()).toContain('arc=pass\r\n')
  expect(await arcVerdict(chained, all)).toBe('pass i=2')
  expect((await copyOf('broken')).toString()).toMatch(/ARC-Seal: i=2; a=rsa-sha256; cv=fail;/)
})

test('a message that delivery has to change is sealed as it is sent', async () => {
  const long = `Subject: reencoded\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n${'ä'.repeat(2_000)}`
  expect(await send(`From: Reader <reader@example.net>\r\nBcc: eve@example.net\r\n${long}`)).toMatch(/^250/)
  expect(await arcVerdict(await copyOf('reencoded'), published)).toBe('pass i=1')
})

test('a message whose header has no room for the fields of a copy is stored and not forwarded', async () => {
  expect(await send(message('full', 'X: y\r\n'.repeat(994)))).toMatch(/^250/)
  expect(await send(message('roomy', 'X: y\r\n'.repeat(990)))).toMatch(/^250/)
  expect((await copyOf('roomy')).toString()).toContain('X: y')
  expect((await received('full'))?.forwarded).toEqual([])
})

test('a message that the sender repeats is forwarded once', async () => {
  const before = mx.messages.length
  for (const _ of [1, 2]) expect(await send(message('twice'))).toMatch(/^250/)
  expect(await send(message('after'))).toMatch(/^250/)
  await vi.waitFor(() => expect(mx.messages.some(({ octets }) => octets.includes('Subject: after'))).toBe(true), { timeout: 15_000 })
  const copies = mx.messages.slice(before).filter(({ octets }) => octets.includes('Subject: twice'))
  expect(copies).toHaveLength(1)
  expect((await received('twice'))?.forwarded).toHaveLength(1)
})

test('a bounce is forwarded with the null reverse-path, so that its copy cannot bounce', async () => {
  expect(await send(message('bounce', 'Auto-Submitted: auto-replied\r\n'), '')).toMatch(/^250/)
  await vi.waitFor(() => expect(mx.messages.some(({ octets }) => octets.includes('Subject: bounce'))).toBe(true), { timeout: 15_000 })
  expect(mx.messages.find(({ octets }) => octets.includes('Subject: bounce'))?.from).toBe('')
})

test('a complaint about a copy is recorded, and the route forwards further mail', async () => {
  expect(await send(message('junk'))).toMatch(/^250/)
  await copyOf('junk')
  const returnPath = mx.messages.find(({ octets }) => octets.includes('Subject: junk'))?.from ?? ''
  const report = 'From: fbl@isp.example\r\nContent-Type: message/feedback-report\r\n\r\nFeedback-Type: abuse\r\n.dot'
  expect(await sendIncoming(client, { from: 'fbl@isp.example', to: [returnPath], octets: report })).toMatch(/^250/)
  const emailId = (await received('junk'))?.forwarded[0]?.emailId
  const { body } = await service.call('GET', `/emails/${emailId}?expand=activity`, { key: service.liveKey })
  expect(body.data).toMatchObject({ activity: { complaint: { timestamp: expect.any(Number) } } })
  const entry = await service.call('GET', `/tenants/${service.tenantId}/suppressions/ann@target.test`, { key: service.liveKey })
  expect(entry.body.data).toMatchObject({ suppressed: false })
  expect(await send(message('further'))).toMatch(/^250/)
  await copyOf('further')
})

test('a copy that comes back to its route is refused as a loop, and one of another route is not', async () => {
  expect(await send(`X-Postrider-Route: ${routeId}\r\n${message('loop')}`)).toBe('554 5.4.6 Mail loop detected')
  expect(await received('loop')).toBeUndefined()
  expect(await send(`X-Postrider-Route: route_other\r\n${message('other')}`)).toMatch(/^250/)
})

const contentsOf = sql<{ id: string }>`
  select id
  from contents
  where id = $1`

test('the erasure of the author blanks the copies, and fails one that waits', async () => {
  const author = 'nora@example.net'
  const write = (subject: string, to: string) =>
    sendIncoming(client, { from: author, to: [to], octets: message(subject).replace('Reader <reader@example.net>', `Nora <${author}>`) })
  const emailOf = async (id = '') =>
    (await service.call('GET', `/emails/${id}`, { key: service.liveKey })).body.data as Record<string, unknown>
  const emailIdOf = async (subject: string) => (await received(subject))?.forwarded[0]?.emailId
  expect(await write('private one', 'sales@shop.test')).toMatch(/^250/)
  const sent = await emailIdOf('private one')
  await vi.waitFor(async () => expect(await emailOf(sent)).toMatchObject({ status: 'sent', from: author }), { timeout: 10_000 })
  expect(await write('private two', 'away@shop.test')).toMatch(/^250/)
  const waiting = await emailIdOf('private two')
  await vi.waitFor(async () => expect(await emailOf(waiting)).toMatchObject({ status: 'softfail' }), { timeout: 10_000 })

  const erased = await eraseAddress(service, author, null, systemClock.nowMs(), () => undefined)
  expect(erased).toEqual({ emails: 2, contents: 2, kept: 0 })
  for (const [id, status] of [
    [sent, 'sent'],
    [waiting, 'hardfail'],
  ]) {
    const shown = await service.call('GET', `/emails/${id}?expand=full`, { key: service.liveKey })
    expect(shown.body.data).toMatchObject({ status, from: 'erased@erased.invalid', subject: '' })
    expect(shown.text).not.toMatch(/nora|private/i)
    expect(await service.db.rows(contentsOf, [id])).toEqual([])
  }
  expect(mx.messages.filter(({ octets }) => octets.includes('private two'))).toEqual([])
})

/** The id of the only copy, once it is sent: erasure leaves a message whose copy is being sent. */
async function sentCopyOf(subject: string): Promise<string> {
  return vi.waitFor(
    async () => {
      const emailId = (await received(subject))?.forwarded[0]?.emailId ?? ''
      const { body } = await service.call('GET', `/emails/${emailId}`, { key: service.liveKey })
      expect(body.data).toMatchObject({ status: 'sent' })
      return emailId
    },
    { timeout: 10_000 },
  )
}

test('the erasure of a person finds messages that name them as another recipient, and copies to them', async () => {
  const erase = (person: string) => eraseAddress(service, person, null, systemClock.nowMs(), () => undefined)
  expect(await send(message('to nora too', 'Cc: Reader <reader@example.net>, Nora <Nora@example.org>\r\n'))).toMatch(/^250/)
  expect(await send(message('to her sister', "Cc: eleanora@example.org, o'nora@example.org, nora@example.org.example\r\n"))).toMatch(/^250/)
  for (const subject of ['to nora too', 'to her sister']) await sentCopyOf(subject)
  await erase('nora@example.org')
  expect([await received('to nora too'), (await received('to her sister'))?.subject]).toEqual([undefined, 'to her sister'])
  await addRoute('olga@shop.test', 'olga@target.test')
  const deliver = () => sendIncoming(client, { to: ['olga@shop.test'], octets: message('for olga') })
  await vi.waitFor(async () => expect(await deliver()).toMatch(/^250/), { timeout: 15_000, interval: 250 })
  const emailId = await sentCopyOf('for olga')
  await erase('olga@target.test')
  // Repeated by its sender, it does not name her again.
  expect(await sendIncoming(client, { to: ['olga@shop.test'], octets: message('for olga') })).toMatch(/^250/)
  expect((await received('for olga'))?.forwarded).toEqual([{ to: '', emailId }])
})

const emailsOf = sql<{ id: string; contentId: string; recipient: string; sender: string }>`
  select id, content_id as "contentId", recipient, sender
  from emails
  where subject = $1
  order by recipient`

const addRoute = async (address: string, forwardTo: string | null, on = service, tenantId?: string) => {
  const answer = await on.call('POST', '/routes', { key: on.liveKey, body: { address, forwardTo, ...(tenantId ? { tenantId } : {}) } })
  if (answer.status !== 201) throw new Error(answer.text)
  return (answer.body.data as { id: string }).id
}

test('a copy counts for the domain that forwards it, not for the domain in From', async () => {
  expect(await send(message('booked'))).toMatch(/^250/)
  expect(await service.db.rows(emailsOf, ['booked'])).toMatchObject([{ sender: 'postmaster@shop.test' }])
})

test('a message that is delivered several times at once is forwarded once', async () => {
  const clients = await Promise.all(Array.from({ length: 6 }, () => greetedClient(service.ports.smtp)))
  const deliver = (one: SmtpClient) => sendIncoming(one, { to: ['sales@shop.test'], octets: message('at-once') })
  expect(await Promise.all(clients.map(deliver))).toEqual(Array.from({ length: 6 }, () => '250 2.6.0 Ok'))
  for (const one of clients) one.destroy()
  expect(await service.db.rows(emailsOf, ['at-once'])).toHaveLength(1)
  expect((await received('at-once'))?.forwarded).toHaveLength(1)
})

test('a message goes to at most five addresses, as one content, and a sixth one needs a message of its own', async () => {
  for (const nth of [1, 2, 3, 4, 5, 6]) await addRoute(`to${nth}@shop.test`, `to${nth}@target.test`)
  const to = [1, 2, 3, 4, 5].map((nth) => `to${nth}@shop.test`)
  await vi.waitFor(async () => expect(await sendIncoming(client, { to, octets: message('five') })).toMatch(/^250/), {
    timeout: 15_000,
    interval: 250,
  })
  const emails = await service.db.rows(emailsOf, ['five'])
  expect(emails.map(({ recipient }) => recipient)).toEqual([1, 2, 3, 4, 5].map((nth) => `to${nth}@target.test`))
  expect(new Set(emails.map(({ contentId }) => contentId)).size).toBe(1)
  const sixth = '452 4.5.3 Too many forwarded recipients, send another message for this one'
  expect(await sendIncoming(client, { to: [...to, 'to6@shop.test'], octets: message('six') })).toBe(sixth)
})

test('a route that has forwarded a message does not forward it again, and others do', async () => {
  const passed = await addRoute('loop1@shop.test', 'loop1@target.test')
  await addRoute('loop2@shop.test', 'loop2@target.test')
  const deliver = () =>
    sendIncoming(client, { to: ['loop1@shop.test', 'loop2@shop.test'], octets: `X-Postrider-Route: ${passed}\r\n${message('half-loop')}` })
  await vi.waitFor(async () => expect(await deliver()).toMatch(/^250/), { timeout: 15_000, interval: 250 })
  expect(await service.db.rows(emailsOf, ['half-loop'])).toMatchObject([{ recipient: 'loop2@target.test' }])
})

test('a message that is repeated or not stored uses up no copy of the hour, and one network not those of all', async () => {
  await using own = await startService({
    rateLimit: null,
    roles: ['inbound'],
    receiving: { resolver: txtResolver(new Map()), limits: { forwards: 10, networkForwards: 2 } },
  })
  await own.addDomain(own.tenantId, 'one.test')
  await addRoute('fwd@one.test', 'ann@target.test', own, own.tenantId)
  await using sender = await greetedClient(own.ports.smtp)
  const say = (name: string) => sendIncoming(sender, { to: ['fwd@one.test'], octets: message(name) })
  for (let times = 0; times < 4; times++) expect(await say('again')).toMatch(/^250/)
  expect(await say('second')).toMatch(/^250/)
  expect(await say('third')).toBe('452 4.2.2 Mailbox forwards too much mail, try again in an hour')
  expect(await forwardedSince(own.db, own.tenantId, new Date(0))).toBe(2)
})

test('a message of which no copy can be made uses up no copy of the hour', async () => {
  const limits = { forwards: 2, networkForwards: 2 }
  await using own = await startService({ rateLimit: null, roles: ['inbound'], receiving: { resolver: txtResolver(new Map()), limits } })
  await own.addDomain(own.tenantId, 'one.test')
  await addRoute('fwd@one.test', 'ann@target.test', own, own.tenantId)
  await using sender = await greetedClient(own.ports.smtp)
  const say = (octets: string) => sendIncoming(sender, { to: ['fwd@one.test'], octets })
  const many = (name: string) => message(name).replace('From: ', `From: ${'x@evil.test '.repeat(101)}`)
  for (const name of ['omitted1', 'omitted2', 'omitted3']) expect(await say(many(name))).toMatch(/^250/)
  for (const name of ['made1', 'made2']) expect(await say(message(name))).toMatch(/^250/)
  expect(await say(message('made3'))).toBe('452 4.2.2 Mailbox forwards too much mail, try again in an hour')
})

test('a stranger cannot use up the send limit of a tenant: copies of an hour have a limit, for each recipient', async () => {
  await using own = await startService({
    rateLimit: null,
    roles: ['inbound'],
    receiving: { resolver: txtResolver(new Map()), limits: { forwards: 2, network: { messages: 1000, octets: message('h1').length * 3 } } },
  })
  await own.addDomain(own.tenantId, 'one.test')
  const second = await own.makeTenant('second')
  await own.addDomain(second, 'two.test')
  await addRoute('fwd@one.test', 'ann@target.test', own, own.tenantId)
  await addRoute('kept@one.test', null, own, own.tenantId)
  await addRoute('fwd@two.test', 'bob@target.test', own, second)
  await using sender = await greetedClient(own.ports.smtp)
  for (const name of ['h1', 'h2']) expect(await sendIncoming(sender, { to: ['fwd@one.test'], octets: message(name) })).toMatch(/^250/)
  await sender.say('MAIL FROM:<reader@example.net>')
  expect(await sender.say('RCPT TO:<fwd@one.test>')).toBe('452 4.2.2 Mailbox forwards too much mail, try again in an hour')
  expect(await sender.say('RCPT TO:<kept@one.test>')).toMatch(/^250/)
  expect(await sender.say('RCPT TO:<fwd@two.test>')).toMatch(/^250/)
  // As another process counts them.
  expect(await forwardedSince(own.db, own.tenantId, new Date(0))).toBe(2)
  // Two copies count as well as two messages.
  await sender.say('RSET')
  const overNetwork = '451 4.7.1 Too much mail from your network, try again in an hour'
  expect(await sendIncoming(sender, { to: ['kept@one.test'], octets: message('h3') })).toBe(overNetwork)
})
