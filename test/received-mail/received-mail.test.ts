/** Mail in, from the SMTP port to the API and the event: routes, refusals, storing, bounds, threads of replies, retention and erasure. */
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { systemClock } from '#base'
import { sql } from '#db'
import { openReplyNames, openReturnPaths } from '#emails'
import { eraseAddress } from '#housekeeping'
import { deleteOldReceived, listReceived } from '#received-mail'
import { txtResolver } from '../support/authentication-samples.ts'
import { testDatabase } from '../support/database.ts'
import { openEventStream } from '../support/event-stream.ts'
import { type Service, startService } from '../support/in-process-service.ts'
import { oddMessages } from '../support/odd-messages.ts'
import { greetedClient, sendIncoming } from '../support/send-incoming.ts'
import type { SmtpClient } from '../support/smtp-client.ts'
import { handMovedDurations } from '../support/test-clock.ts'

const dayMs = 86_400_000

let service: Service
let client: SmtpClient
beforeAll(async () => {
  service = await startService({
    rateLimit: null,
    sendLimit: null,
    roles: ['inbound', 'delivery', 'housekeeping'],
    smtpBounds: { errors: 10_000 },
    receiving: {
      resolver: txtResolver(new Map()),
      limits: { network: { messages: 5_000, octets: 200_000_000 }, tenant: { messages: 1_500, octets: 100_000_000 } },
    },
  })
  client = await greetedClient(service.ports.smtp)
})
afterAll(async () => {
  client.destroy()
  await service.stop()
})

interface Received {
  id: string
  recipients: { address: string; routeId: string }[]
  subject: string
  inReplyTo: string | null
  inReplyToProven: boolean
  size: number
}

let count = 0
/** A tenant with a verified domain and a key. */
async function makeOwner() {
  const tenantId = await service.makeTenant(`owner ${++count}`)
  const domain = `in${count}.test`
  await service.addDomain(tenantId, domain)
  const key = await service.makeKey({ tenantId })
  const ask = async (method: string, path: string, body?: object) => service.call(method, path, { key, body })
  const addRoute = async (address: string, more: object = {}) => {
    const answer = await ask('POST', '/routes', { address, ...more })
    if (answer.status !== 201) throw new Error(answer.text)
    return answer.body.data as { id: string; mx: { fullName: string; value: string } }
  }
  const received = async () => (await ask('GET', '/received?perPage=100')).body.data as Received[]
  return { tenantId, domain, key, ask, addRoute, received }
}

const message = (subject: string, more = '') =>
  `From: Ann <ann@example.net>\r\nTo: x\r\nSubject: ${subject}\r\nMessage-ID: <${subject}@example.net>\r\n${more}\r\nHello ${subject}`
const send = (to: string | string[], octets: string | Buffer, from?: string) =>
  sendIncoming(client, { to: [to].flat(), octets, ...(from === undefined ? {} : { from }) })

const eventsOf = sql<{ count: number }>`
  select count(*)::integer as count
  from events
  where tenant_id = $1 and kind = 'MessageReceived'`

const rowsOf = sql<{ count: number }>`
  select count(*)::integer as count
  from received_messages
  where tenant_id = $1`

const leave = sql`
  insert into received_erasures (tenant_id)
  values ($1)`

const fill = sql`
  insert into received_messages (tenant_id, id, key, sender, recipients, client, size_octets, facts, raw, received_at)
  select $1, lpad(nth::text, 22, '0'), nth::text::bytea, '', '[]', '127.0.0.1', 1, '{}', '', '2026-01-01'
  from generate_series(1, $2::integer) as nth`

const waiters = sql<{ count: number }>`
  select count(*)::integer as count
  from pg_stat_activity
  where datname = current_database() and wait_event_type = 'Lock'`

const countOf = async (statement: typeof rowsOf, tenantId: string) => (await service.db.first(statement, [tenantId]))?.count

describe('a route', () => {
  test('receives a message: it is stored as it came, read, and told in an event with links', async () => {
    const owner = await makeOwner()
    const { id, mx } = await owner.addRoute(`help@${owner.domain}`)
    expect(mx).toEqual({ fullName: owner.domain, value: '10 house.test' })
    await using stream = await openEventStream(service.port, '/events/stream?events=MessageReceived', owner.key)
    await vi.waitFor(() => expect(stream.lastId()).not.toBe(''), 10_000)
    const octets = message('first', 'Content-Type: text/plain; charset=utf-8\r\n')
    expect(await send(`HELP@${owner.domain}`, octets)).toBe('250 2.6.0 Ok')
    const [one] = await owner.received()
    expect(one).toMatchObject({
      recipients: [{ address: `help@${owner.domain}`, routeId: id }],
      envelopeFrom: 'reader@example.net',
      clientAddress: '127.0.0.1',
      from: 'ann@example.net',
      fromName: 'Ann',
      subject: 'first',
      messageId: 'first@example.net',
      inReplyTo: null,
      size: octets.length + 2,
    })
    const whole = await owner.ask('GET', `/received/${one?.id}`)
    expect(whole.body.data).toMatchObject({ text: 'Hello first\r\n', html: null, truncated: false, attachments: [] })
    const { rawMessage } = (await owner.ask('GET', `/received/${one?.id}/raw`)).body.data as { rawMessage: string }
    expect(Buffer.from(rawMessage, 'base64').toString()).toBe(`${octets}\r\n`)
    await vi.waitFor(() => expect(stream.told()).toHaveLength(1), { timeout: 10_000 })
    expect(stream.told()[0]?.data).toMatchObject({
      event: 'MessageReceived',
      tenant_id: owner.tenantId,
      payload: {
        id: one?.id,
        recipients: [{ address: `help@${owner.domain}`, route_id: id }],
        subject: 'first',
        text: 'Hello first\r\n',
        raw_url: expect.stringMatching(new RegExp(`^https?://.+/v1/received/${one?.id}/raw$`)),
      },
    })
  })

  test('stores a message that the sender repeats once, and one for several of its addresses once', async () => {
    const owner = await makeOwner()
    await owner.addRoute(`*@${owner.domain}`)
    const to = [`a@${owner.domain}`, `b@${owner.domain}`]
    for (const _ of [1, 2, 3]) expect(await send(to, message('again'))).toMatch(/^250/)
    expect(await countOf(rowsOf, owner.tenantId)).toBe(1)
    expect(await countOf(eventsOf, owner.tenantId)).toBe(1)
    expect((await owner.received())[0]?.recipients.map(({ address }) => address)).toEqual(to)
    await send(to, message('again'), 'other@example.net')
    expect(await countOf(rowsOf, owner.tenantId)).toBe(2)
  })

  test('of a domain is the most exact one, and a disabled or deleted one refuses', async () => {
    const owner = await makeOwner()
    const exact = await owner.addRoute(`orders+1@${owner.domain}`)
    const wild = await owner.addRoute(`orders+*@${owner.domain}`)
    const routeOf = async (local: string) => {
      expect(await send(`${local}@${owner.domain}`, message(`to ${local}`))).toMatch(/^250/)
      return (await owner.received())[0]?.recipients[0]?.routeId
    }
    expect([await routeOf('orders+1'), await routeOf('orders+2')]).toEqual([exact.id, wild.id])
    expect(await send(`help@${owner.domain}`, message('none'))).toBe('550 5.1.1 No such address here')
    await owner.ask('PATCH', `/routes/${wild.id}`, { enabled: false })
    await vi.waitFor(async () => expect(await send(`orders+3@${owner.domain}`, message('off'))).toMatch(/^550 5\.1\.1/), {
      timeout: 15_000,
    })
    expect((await owner.ask('DELETE', `/routes/${exact.id}`)).status).toBe(200)
    await vi.waitFor(async () => expect(await send(`orders+1@${owner.domain}`, message('gone'))).toMatch(/^550 5\.1\.1/), {
      timeout: 15_000,
    })
    expect(await owner.received()).toHaveLength(2)
  })

  test('needs a verified domain of its tenant, and no other tenant receives mail for the name', async () => {
    const owner = await makeOwner()
    const other = await makeOwner()
    const refusal = async (from: typeof owner, address: string) => (await from.ask('POST', '/routes', { address })).body.error
    expect(await refusal(owner, `help@${other.domain}`)).toMatchObject({ code: 'domain_not_verified', field: 'address' })
    await owner.ask('POST', '/domains', { name: 'unverified.test' })
    expect(await refusal(owner, 'help@unverified.test')).toMatchObject({ code: 'domain_not_verified' })
    expect(await refusal(owner, 'help')).toMatchObject({ code: 'validation_error', field: 'address' })
    await owner.addRoute(`help@${owner.domain}`)
    expect(await refusal(owner, `Help@${owner.domain}`)).toMatchObject({
      code: 'validation_error',
      message: expect.stringContaining('another route'),
    })
    await service.addDomain(other.tenantId, owner.domain)
    expect(await refusal(other, `sales@${owner.domain}`)).toMatchObject({ message: expect.stringContaining('routes of another tenant') })
    const forwarded = await owner.ask('POST', '/routes', { address: `f@${owner.domain}`, forwardTo: 'nobody' })
    expect(forwarded.body.error).toMatchObject({ code: 'invalid_email_format', field: 'forwardTo' })
  })

  test('of a tenant whose domain is no longer verified does not keep the mail from its owner', async () => {
    const former = await makeOwner()
    const owner = await makeOwner()
    await former.addRoute(`help@${former.domain}`)
    await service.addDomain(owner.tenantId, former.domain)
    const wish = { address: `help@${former.domain}` }
    expect((await owner.ask('POST', '/routes', wish)).body.error).toMatchObject({ message: expect.stringContaining('another tenant') })
    const unverify = sql`
      update domains
      set verified = false, trusted = false
      where name = $1 and tenant_id = $2`
    await service.db.run(unverify, [former.domain, former.tenantId])
    await vi.waitFor(async () => expect((await owner.ask('POST', '/routes', wish)).status).toBe(201), { timeout: 15_000 })
    expect((await former.ask('GET', '/routes')).body.data).toEqual([])
    await vi.waitFor(async () => expect(await send(`help@${former.domain}`, message('owned'))).toMatch(/^250/), { timeout: 15_000 })
    expect(await owner.received()).toHaveLength(1)
  })

  test('whose domain is no longer verified, or whose tenant is suspended, asks the sender to retry', async () => {
    const owner = await makeOwner()
    await owner.addRoute(`help@${owner.domain}`)
    const unverify = sql`
      update domains
      set verified = $2, trusted = $2
      where name = $1`
    const laterReply = '450 4.2.1 Mailbox disabled for now, try again later'
    const reply = (subject: string) => send(`help@${owner.domain}`, message(subject))
    await service.db.run(unverify, [owner.domain, false])
    await vi.waitFor(async () => expect(await reply('unverified')).toBe(laterReply), { timeout: 15_000 })
    await service.db.run(unverify, [owner.domain, true])
    await vi.waitFor(async () => expect(await reply('verified')).toMatch(/^250/), { timeout: 15_000 })
    await service.call('PATCH', `/tenants/${owner.tenantId}`, { key: service.liveKey, body: { status: 'suspended' } })
    await vi.waitFor(async () => expect(await reply('suspended')).toBe(laterReply), { timeout: 15_000 })
  })
})

test('an address outside the routes is refused in every form: nothing is relayed', async () => {
  const owner = await makeOwner()
  await owner.addRoute(`help@${owner.domain}`)
  const ours = owner.domain
  const forms = [
    'victim@example.net',
    `victim%example.net@${ours}`,
    `example.net!victim@${ours}`,
    `"victim@example.net"@${ours}`,
    `"help"@${ours}`,
    `@${ours}:victim@example.net`,
    `@${ours},@example.net:victim@example.net`,
    `help@${ours}@example.net`,
    `help%${ours}@example.net`,
    `${ours}!help@example.net`,
    `help@${ours}.example.net`,
    `help@sub.${ours}`,
    `help@x${ours}`,
    'victim@[127.0.0.1]',
    'victim@[IPv6:::1]',
    'victim@localhost',
    'victim@127.0.0.1',
    'help',
    '*',
    `*@${ours}`,
    `help*@${ours}`,
    `help @${ours}`,
    `help@${ours} ORCPT=rfc822;victim@example.net`,
    `help@ ${ours}`,
    `help@${ours}\u0000`,
    `postmaster@${ours}`,
  ]
  for (const from of ['', 'victim@example.net', `help@${ours}`]) {
    for (const form of forms) {
      expect(await client.say(`MAIL FROM:<${from}>`), from).toMatch(/^250/)
      const reply = await client.say(`RCPT TO:<${form}>`)
      expect(reply, form).toMatch(/^(?:550 5\.1\.1|553 5\.1\.3|501|555) /)
      await client.say('RSET')
    }
  }
  expect(await owner.received()).toEqual([])
})

test('a catch-all takes every local part of its domain for its tenant, and sends none of them on', async () => {
  const owner = await makeOwner()
  await owner.addRoute(`*@${owner.domain}`)
  for (const local of ['victim%example.net', 'example.net!victim', 'a/b', 'very.long+tag'])
    expect(await send(`${local}@${owner.domain}`, message(local)), local).toMatch(/^250/)
  expect((await owner.received()).map(({ recipients }) => recipients[0]?.address)).toEqual(
    ['very.long+tag', 'a/b', 'example.net!victim', 'victim%example.net'].map((local) => `${local}@${owner.domain}`),
  )
  const { body } = await service.call('GET', `/emails?tenantId=${owner.tenantId}`, { key: service.liveKey })
  expect(body.data).toEqual([])
})

test('of five hundred odd messages each is one event or one refusal, and the API shows each', async () => {
  const owner = await makeOwner()
  await owner.addRoute(`odd@${owner.domain}`)
  const messages = oddMessages(500)
  const replies: string[] = []
  const work = messages.entries()
  const sending = Array.from({ length: 4 }, async () => {
    let own: SmtpClient | undefined
    for (const [nth, octets] of work) {
      own ??= await greetedClient(service.ports.smtp)
      const reply = await sendIncoming(own, { to: [`odd@${owner.domain}`], octets })
      replies[nth] = reply
      if (!reply.includes('bare CR or LF') && reply !== 'closed') continue
      // This fault ends the session.
      own.destroy()
      own = undefined
    }
    own?.destroy()
  })
  await Promise.all(sending)
  const taken = replies.filter((reply) => reply.startsWith('250')).length
  const refused = replies.filter((reply) => /^5[05]0 5\.[56]\./.test(reply)).length
  expect(taken + refused).toBe(messages.length)
  expect(Math.min(taken, refused)).toBeGreaterThan(50)
  expect(await countOf(rowsOf, owner.tenantId)).toBe(taken)
  expect(await countOf(eventsOf, owner.tenantId)).toBe(taken)
  const known = new Set(messages.map((octets) => octets.toString('latin1')))
  for (const { id } of (await owner.received()).slice(0, 40)) {
    expect((await owner.ask('GET', `/received/${id}`)).status).toBe(200)
    const { rawMessage } = (await owner.ask('GET', `/received/${id}/raw`)).body.data as { rawMessage: string }
    const raw = Buffer.from(rawMessage, 'base64').toString('latin1')
    expect(known.has(raw.replace(/\r\n$/, '')) || known.has(raw)).toBe(true)
  }
}, 60_000)

test('a reply names the email of the tenant that it answers, by the whole Message-ID', async () => {
  const owner = await makeOwner()
  await owner.addRoute(`help@${owner.domain}`)
  const sent = (
    await owner.ask('POST', '/emails', { from: `help@${owner.domain}`, to: ['delivered@simulator.test'], subject: 'Order', text: 'x' })
  ).body.data as { id: string; messageId: string }
  const messageId = sent.messageId.replace(/^<|>$/g, '')
  const replied = async (name: string, field: string) => {
    await send(`help@${owner.domain}`, message(name, field))
    return (await owner.received()).find(({ subject }) => subject === name)?.inReplyTo
  }
  expect(await replied('r1', `In-Reply-To: <${messageId}>\r\n`)).toBe(sent.id)
  expect(await replied('r2', `References: <x@y.test> <${messageId}>\r\n`)).toBe(sent.id)
  expect(await replied('r3', `In-Reply-To: <${sent.id}@elsewhere.test>\r\n`)).toBeNull()
  const other = await makeOwner()
  await other.addRoute(`help@${other.domain}`)
  await send(`help@${other.domain}`, message('r4', `In-Reply-To: <${messageId}>\r\n`))
  expect((await other.received())[0]?.inReplyTo).toBeNull()
})

describe('a route for replies', () => {
  interface Sent {
    id: string
    error?: { code: string; field?: string }
  }
  const makeReplyOwner = async () => {
    const owner = await makeOwner()
    const { id: replyRouteId } = await owner.addRoute(`reply-*@${owner.domain}`, { replies: true })
    const message = { from: `shop@${owner.domain}`, to: ['delivered@simulator.test'], subject: 'Order', text: 'x' }
    const post = (more: object = {}) => owner.ask('POST', '/emails', { ...message, replyRouteId, ...more })
    /** The address that the sent message asks for. */
    const replyToOf = async (id: string) => {
      const { rawMessage } = (await owner.ask('GET', `/emails/${id}?expand=full`)).body.data as { rawMessage: string }
      return /^Reply-To: <?([^>\r\n]+)>?\r$/m.exec(Buffer.from(rawMessage, 'base64').toString())?.[1] ?? ''
    }
    return { ...owner, replyRouteId, message, post, replyToOf }
  }
  const noAddress = '550 5.1.1 No such address here'

  test('gets replies to the address of an email, and names the email as proven', async () => {
    const owner = await makeReplyOwner()
    const { id } = (await owner.post()).body.data as Sent
    const address = await owner.replyToOf(id)
    expect(address).toMatch(new RegExp(`^reply-r[a-z2-7]{51}@${owner.domain}$`))
    expect(await send(address.toUpperCase(), message('reply'))).toMatch(/^250/)
    const [reply] = await owner.received()
    expect(reply).toMatchObject({ inReplyTo: id, inReplyToProven: true, recipients: [{ address, routeId: owner.replyRouteId }] })
    await owner.addRoute(`help@${owner.domain}`)
    await vi.waitFor(
      async () => expect(await send(`help@${owner.domain}`, message('claim', `In-Reply-To: <${id}@${owner.domain}>\r\n`))).toMatch(/^250/),
      { timeout: 15_000 },
    )
    expect((await owner.received())[0]).toMatchObject({ subject: 'claim', inReplyToProven: false })
  })

  test('refuses every other address of its form: forged, expired, of another tenant, of a return path', async () => {
    const [owner, other] = [await makeReplyOwner(), await makeReplyOwner()]
    const { id } = (await owner.post()).body.data as Sent
    const address = await owner.replyToOf(id)
    const names = openReplyNames(service.secrets)
    const nowMs = systemClock.nowMs()
    const at = (name: string) => `reply-${name}@${owner.domain}`
    const returnPath = openReturnPaths(service.secrets).make(id, owner.domain, nowMs)
    const forms = [
      'x',
      '',
      `r${'a'.repeat(51)}`,
      names.make(id, owner.tenantId, nowMs - 366 * dayMs),
      names.make(id, other.tenantId, nowMs),
      returnPath.slice(0, returnPath.indexOf('@')),
    ]
    for (const name of forms) expect(await send(at(name), message('forged')), name).toBe(noAddress)
    expect(await send(address.replace('reply-', 'reply-x'), message('forged'))).toBe(noAddress)
    expect(await send(address.replace(owner.domain, other.domain), message('forged'))).toBe(noAddress)
    expect(await send(at(names.make(id, owner.tenantId, nowMs - 364 * dayMs)), message('old'))).toMatch(/^250/)
    expect((await owner.received()).map(({ subject }) => subject)).toEqual(['old'])
  })

  test('is named in a batch and beside a template, and refused where it cannot be', async () => {
    const owner = await makeReplyOwner()
    const { from: _, ...element } = owner.message
    const batch = await owner.ask('POST', '/emails/batch', {
      from: owner.message.from,
      emails: [{ ...element, replyRouteId: owner.replyRouteId }, element, { ...element, replyRouteId: 'route_none' }],
    })
    const { results } = batch.body.data as { results: Sent[] }
    const [first, second, third] = results
    expect(await owner.replyToOf(first?.id ?? '')).toMatch(/^reply-r/)
    expect(await owner.replyToOf(second?.id ?? '')).toBe('')
    expect(third?.error).toMatchObject({ code: 'not_found', field: 'emails[2].replyRouteId' })
    const plain = await owner.addRoute(`plain-*@${owner.domain}`)
    const refusals = [
      [{ replyTo: 'ann@example.net' }, 'validation_error', 'replyRouteId'],
      [{ to: ['delivered@simulator.test', 'x@simulator.test'] }, 'validation_error', 'replyRouteId'],
      [{ replyRouteId: plain.id }, 'validation_error', 'replyRouteId'],
      [{ replyRouteId: 'route_none' }, 'not_found', 'replyRouteId'],
      [{ replyRouteId: 'a\0' }, 'not_found', 'replyRouteId'],
      [{ replyRouteId: 7 }, 'validation_error', 'replyRouteId'],
    ] as const
    for (const [more, code, field] of refusals) expect((await owner.post(more)).body.error, field).toMatchObject({ code, field })
    for (const address of ['help', 'thirteen-long*'])
      expect((await owner.ask('POST', '/routes', { address: `${address}@${owner.domain}`, replies: true })).body.error).toMatchObject({
        code: 'validation_error',
        field: 'address',
      })
    await owner.ask('PATCH', `/routes/${owner.replyRouteId}`, { enabled: false })
    expect((await owner.post()).body.error).toMatchObject({ code: 'validation_error', field: 'replyRouteId' })
  })
})

test('the total of a list counts at most a thousand messages after the page', async () => {
  const { tenantId } = await makeOwner()
  await service.db.run(fill, [tenantId, 1100])
  const totalOf = async (page: { number: number; size: number }) =>
    (await listReceived(service.db, { tenantId }, page, systemClock.nowMs())).total
  expect(await totalOf({ number: 1, size: 10 })).toBe(1010)
  expect(await totalOf({ number: 12, size: 10 })).toBe(1100)
  expect(await totalOf({ number: 200, size: 10 })).toBe(1100)
})

test('the list is filtered by route, addresses, the answered email and time', async () => {
  const owner = await makeOwner()
  const { id: routeId } = await owner.addRoute(`a@${owner.domain}`)
  await owner.addRoute(`b@${owner.domain}`)
  await send(`a@${owner.domain}`, message('one'), 'first@example.net')
  await send(`b@${owner.domain}`, message('two').replace('ann@', 'Carl@'), 'second@example.net')
  const found = async (query: string) => {
    const { data, total } = (await owner.ask('GET', `/received?${query}`)).body as unknown as { data: Received[]; total: number }
    expect(total).toBe(data.length)
    return data.map(({ subject }) => subject)
  }
  expect(await found('')).toEqual(['two', 'one'])
  expect(await found(`routeId=${routeId}`)).toEqual(['one'])
  expect(await found('from=carl@example.net')).toEqual(['two'])
  expect(await found('from=First@example.net')).toEqual(['one'])
  expect(await found(`to=B@${owner.domain}`)).toEqual(['two'])
  expect(await found(`to=b@${owner.domain}&from=ann@example.net`)).toEqual([])
  expect(await found('inReplyTo=0000000000000000000000')).toEqual([])
  const dayAgo = Math.floor((systemClock.nowMs() - dayMs) / 1000)
  expect(await found(`after=${dayAgo}`)).toEqual(['two', 'one'])
  for (const empty of [`before=${dayAgo}`, 'before=1960-01-01', 'after=2100-01-01']) expect(await found(empty), empty).toEqual([])
  expect((await owner.ask('GET', '/received?from=ann')).body.error).toMatchObject({ code: 'invalid_email_format', field: 'from' })
  expect((await owner.ask('GET', '/received?after=soon')).body.error).toMatchObject({ code: 'validation_error', field: 'after' })
})

test('mail over the limit of the network or of the tenant stays with its sender', async () => {
  const limits = { network: { messages: 1_000, octets: 200_000 }, tenant: { messages: 2, octets: 1_000_000 } }
  await using own = await startService({ rateLimit: null, roles: ['inbound'], receiving: { resolver: txtResolver(new Map()), limits } })
  const addRoute = async (tenantId: string, name: string) => {
    await own.addDomain(tenantId, name)
    expect((await own.call('POST', '/routes', { key: own.liveKey, body: { address: `*@${name}`, tenantId } })).status).toBe(201)
  }
  await addRoute(own.tenantId, 'one.test')
  await addRoute(await own.makeTenant('second'), 'two.test')
  await using sender = await greetedClient(own.ports.smtp)
  const to = (address: string, octets: string) => sendIncoming(sender, { to: [address], octets })
  for (const name of ['n1', 'n2']) expect(await to('a@one.test', message(name))).toMatch(/^250/)
  const overTenant = '452 4.2.2 Mailbox is over its limit for a day, try again later'
  await vi.waitFor(async () => expect(await to('a@one.test', message('n3'))).toBe(overTenant), { timeout: 10_000, interval: 100 })
  await sender.say('MAIL FROM:<reader@example.net>')
  expect(await sender.say('RCPT TO:<a@two.test>')).toMatch(/^250/)
  expect(await sender.say('RCPT TO:<a@one.test>')).toBe(overTenant)
  await sender.say('RSET')
  expect(await to('a@two.test', `${message('large')}${'x'.repeat(200_000)}`)).toMatch(/^250/)
  expect(await to('a@two.test', message('more'))).toBe('451 4.7.1 Too much mail from your network, try again in an hour')
})

test('one network cannot use up the day of a tenant', async () => {
  const clock = handMovedDurations()
  const limits = { tenant: { messages: 8, octets: 1_000_000 } }
  await using own = await startService({
    rateLimit: null,
    clock,
    roles: ['inbound'],
    receiving: { resolver: txtResolver(new Map()), limits },
  })
  await own.addDomain(own.tenantId, 'one.test')
  expect((await own.call('POST', '/routes', { key: own.liveKey, body: { address: '*@one.test' } })).status).toBe(201)
  await using hostile = await greetedClient(own.ports.smtp)
  await using other = await greetedClient(own.ports.smtp, 'mx.example.org', '127.0.0.2')
  const sendBy = (client: SmtpClient, subject: string) => {
    // The use of a tenant is read at most once a second.
    clock.pass(1_000)
    return sendIncoming(client, { to: ['a@one.test'], octets: message(subject) })
  }
  for (let nth = 1; nth <= 6; nth++) expect(await sendBy(hostile, `share${nth}`)).toMatch(/^250/)
  const refusal = '452 4.2.2 Mailbox has most of its mail of a day from your network, try again later'
  expect(await sendBy(hostile, 'share7')).toBe(refusal)
  expect(await sendBy(other, 'other1')).toMatch(/^250/)
  expect(await sendBy(other, 'other2')).toMatch(/^250/)
  expect(await sendBy(other, 'other3')).toBe('452 4.2.2 Mailbox is over its limit for a day, try again later')
})

test('a message to several tenants counts for each with its octets', async () => {
  const limits = { network: { messages: 1_000, octets: 4 * message('m').length } }
  await using own = await startService({ rateLimit: null, roles: ['inbound'], receiving: { resolver: txtResolver(new Map()), limits } })
  const to: string[] = []
  for (const name of ['one.test', 'two.test', 'three.test', 'four.test']) {
    const tenantId = await own.makeTenant(name)
    await own.addDomain(tenantId, name)
    expect((await own.call('POST', '/routes', { key: own.liveKey, body: { address: `*@${name}`, tenantId } })).status).toBe(201)
    to.push(`a@${name}`)
  }
  await using sender = await greetedClient(own.ports.smtp)
  expect(await sendIncoming(sender, { to, octets: message('m') })).toMatch(/^250/)
  expect(await sendIncoming(sender, { to, octets: message('m') })).toBe('451 4.7.1 Too much mail from your network, try again in an hour')
})

describe('received mail', () => {
  const boxOf = async () => {
    const owner = await makeOwner()
    await owner.addRoute(`*@${owner.domain}`)
    await send(`a@${owner.domain}`, message('one'), 'ann@example.net')
    await send(`bob@${owner.domain}`, message('two').replace('ann@', 'carl@'), 'dora@example.net')
    return owner
  }

  test('is deleted after its retention', async () => {
    const owner = await boxOf()
    await deleteOldReceived(service.db, systemClock.nowMs() - dayMs)
    expect(await countOf(rowsOf, owner.tenantId)).toBe(2)
    await deleteOldReceived(service.db, systemClock.nowMs() + 1000)
    expect(await countOf(rowsOf, owner.tenantId)).toBe(0)
    expect(await owner.received()).toEqual([])
  })

  test.each(['ann@example.net', 'carl@example.net', 'dora@example.net', 'bob@'])(
    'of or to an erased person is deleted: %s',
    async (who) => {
      const owner = await boxOf()
      const person = who === 'bob@' ? `bob@${owner.domain}` : who
      await eraseAddress(service, person, owner.tenantId, systemClock.nowMs(), () => {})
      expect(await owner.received()).toHaveLength(1)
      expect((await owner.ask('GET', '/received')).text).not.toContain(person)
    },
  )

  test('is deleted with its tenant, whose addresses refuse mail from then on', async () => {
    const owner = await boxOf()
    expect((await service.call('DELETE', `/tenants/${owner.tenantId}`, { key: service.liveKey })).status).toBe(200)
    await vi.waitFor(async () => expect(await send(`a@${owner.domain}`, message('late'))).toMatch(/^550 5\.1\.1/), { timeout: 15_000 })
    await deleteOldReceived(service.db, 0)
    expect(await countOf(rowsOf, owner.tenantId)).toBe(0)
  })

  test('of a deleted tenant is deleted completely although two processes delete it', async () => {
    await using database = await testDatabase()
    const { db } = database
    await db.run(leave, ['gone'])
    await db.run(fill, ['gone', 201])
    const other = await db.session()
    await other.script(`begin; delete from received_messages where id not like '%201'`)
    const deleting = deleteOldReceived(db, 0)
    await vi.waitFor(async () => expect((await db.first(waiters))?.count).toBe(1), { timeout: 15_000, interval: 20 })
    await other.script('commit')
    await other.close()
    await deleting
    await deleteOldReceived(db, 0)
    expect((await db.first(rowsOf, ['gone']))?.count).toBe(0)
  })

  test('whose domain is deleted is refused', async () => {
    const owner = await boxOf()
    const { domains } = (await owner.ask('GET', '/domains')).body.data as { domains: { id: number }[] }
    expect((await owner.ask('DELETE', `/domains/${domains[0]?.id}`)).status).toBe(200)
    await vi.waitFor(async () => expect(await send(`a@${owner.domain}`, message('late'))).toMatch(/^550 5\.1\.1/), { timeout: 15_000 })
    expect((await owner.ask('GET', '/routes')).body.data).toEqual([])
  })
})

test('a domain with routes shows the MX record that brings mail here, judged by its last check', async () => {
  const owner = await makeOwner()
  const domainId = ((await owner.ask('GET', '/domains')).body.data as { domains: { id: number }[] }).domains[0]?.id
  const shown = async () =>
    ((await owner.ask('GET', `/domains/${domainId}`)).body.data as { dnsRecords: Record<string, object> }).dnsRecords
  expect(await shown()).not.toHaveProperty('receiving')
  await owner.addRoute(`help@${owner.domain}`)
  const storeMx = sql`
    update domains
    set findings = jsonb_build_object('mx', jsonb_build_object('status', $2::text, 'found', $3::jsonb, 'problem', null, 'suggestion', null))
    where id = $1`
  const stateAfter = async (status: string, found: string[]) => {
    await service.db.run(storeMx, [domainId, status, JSON.stringify(found)])
    return (await shown()).receiving
  }
  expect((await shown()).receiving).toMatchObject({ type: 'MX', name: '@', fullName: owner.domain, value: '10 house.test', status: null })
  expect(await stateAfter('OK', ['20 other.test', '10 HOUSE.test.'])).toMatchObject({ status: 'OK', problem: null, suggestion: null })
  expect(await stateAfter('OK', ['10 nothouse.test'])).toMatchObject({
    status: 'Invalid',
    suggestion: expect.stringContaining('10 house.test'),
  })
  expect(await stateAfter('Missing', [])).toMatchObject({ status: 'Missing' })
})
