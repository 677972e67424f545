/** The simulated world for a user: the behaviour of each address, the inbox, and the clock that makes days pass in seconds. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openEventStream } from '../support/event-stream.ts'
import { type Service, startService } from '../support/in-process-service.ts'

let service: Service
beforeAll(async () => {
  service = await startService({ rateLimit: null, sendLimit: null, roles: ['delivery', 'housekeeping'] })
})
afterAll(() => service.stop())

interface Details {
  status: string
  timestampIso: string
  deliveries: { status: string; timestampIso: string; classification: string | null; smtpEnhancedCode: string | null }[]
  activity: Record<'opens' | 'clicks', { url?: string; source: string; reason: string; timestampIso: string }[]>
  explanation: { nextAt: string | null }
}
interface Received {
  id: string
  emailId: string
  to: string
  from: string
  subject: string
  html: string | null
  text: string
  links: string[]
  receivedAt: string
}

const dayMs = 86_400_000
const hoursOf = (from: string, to: string) => (Date.parse(to) - Date.parse(from)) / 3_600_000

/** Makes a tenant with a test key of its own, so that one test's clock does not affect another's. */
async function tenant() {
  const tenantId = await service.makeTenant('Rehearsal')
  const key = await service.makeKey({ tenantId })
  await service.addDomain(tenantId, `d${tenantId}.example`)
  const from = `shop@d${tenantId}.example`
  const call = async <T>(method: string, path: string, body?: object) => {
    const answer = await service.call(method, path, { key, body })
    if (answer.status !== 200) throw new Error(answer.text)
    return { ...answer.body, data: answer.body.data as T }
  }
  return {
    tenantId,
    key,
    from,
    call,
    send: async (to: string, more: object = {}) =>
      (await call<{ id: string }>('POST', '/emails', { from, to: [to], subject: 'Hello', text: 'Hello.', ...more })).data.id,
    read: async (id: string) => (await call<Details>('GET', `/emails/${id}?expand=deliveries,activity`)).data,
    advance: async (seconds: number) => (await call<{ now: string }>('POST', '/test/advance', { seconds })).data.now,
    inbox: async (query = '') => (await call<Received[]>('GET', `/test/inbox${query}`)).data,
    suppressed: async (address: string) =>
      (await call<{ reason: string | null }>('GET', `/suppressions/${encodeURIComponent(address)}`)).data.reason,
  }
}
type Tenant = Awaited<ReturnType<typeof tenant>>

describe('an address of the simulator', () => {
  let own: Tenant
  beforeAll(async () => {
    own = await tenant()
  })

  test.each([
    ['delivered', ['sent'], 'sent', null],
    ['softfail', ['softfail', 'sent'], 'sent', null],
    ['hardfail', ['hardfail'], 'hardfail', 'hard fail'],
    ['mailbox-full', ['hardfail'], 'hardfail', null],
    ['spam-block', ['hardfail'], 'hardfail', null],
    ['bounce', ['sent', 'bounced'], 'bounced', 'bounce'],
    ['complaint', ['sent'], 'sent', 'complaint'],
    ['suppressed', ['held'], 'held', null],
    ['opened', ['sent'], 'sent', null],
    ['clicked', ['sent'], 'sent', null],
    ['timeout', ['softfail', 'softfail'], 'softfail', null],
  ])('%s: its attempts are %j', async (local, attempts, status, suppression) => {
    const to = `${local}+world@simulator.test`
    const id = await own.send(to)
    await own.advance(600)
    const read = await own.read(id)
    expect(read.deliveries.map((one) => one.status)).toEqual(attempts)
    expect(read.status).toBe(status)
    expect(await own.suppressed(to)).toBe(suppression)
  })

  test('opened reads, clicked follows the first link too, and a person did it', async () => {
    const html = '<p><a href="https://shop.example/orders?id=1&amp;x=2">Your order</a> <a href="https://shop.example/2">2</a></p>'
    const [opened, clicked] = [await own.send('opened@simulator.test'), await own.send('clicked@simulator.test', { html })]
    await own.advance(60)
    const byPerson = { source: 'human', reason: 'reader' }
    expect((await own.read(opened)).activity).toMatchObject({ opens: [byPerson], clicks: [] })
    expect((await own.read(clicked)).activity).toMatchObject({
      opens: [byPerson],
      clicks: [{ ...byPerson, url: 'https://shop.example/orders?id=1&x=2' }],
    })
  })

  test('does so without an advance, a moment after delivery', async () => {
    const id = await own.send('clicked+patience@simulator.test')
    await expect.poll(async () => (await own.read(id)).activity.clicks.length, { timeout: 15_000, interval: 100 }).toBe(1)
  })

  test('suppressed is sent to when it is retried by hand, as any suppressed recipient', async () => {
    const id = await own.send('suppressed+again@simulator.test')
    await own.advance(1)
    await own.call('POST', `/emails/${id}/retry`)
    await expect.poll(async () => (await own.read(id)).status, { timeout: 10_000, interval: 50 }).toBe('sent')
  })
})

describe('the test clock', () => {
  test('makes three days of retries happen at once, each at its time', async () => {
    const own = await tenant()
    const id = await own.send('timeout@simulator.test')
    const before = (await own.read(id)).timestampIso
    const now = await own.advance(3 * 86_400)
    expect(hoursOf(before, now)).toBeCloseTo(72, 0)
    const { deliveries, status, explanation } = await own.read(id)
    expect(status).toBe('softfail')
    const times = deliveries.map((one) => Date.parse(one.timestampIso))
    expect(times).toEqual(times.toSorted((one, other) => one - other))
    // The retry delay is 1.3^n × 5 min, at most 6 h.
    expect(times.length).toBeGreaterThan(18)
    expect(times.length).toBeLessThan(30)
    const gaps = times.slice(1).map((at, index) => (at - (times[index] as number)) / 60_000)
    for (const [index, gap] of gaps.entries()) {
      const minutes = Math.min(1.3 ** (index + 1) * 5, 360)
      expect(gap).toBeGreaterThan(minutes * 0.9 - 0.1)
      expect(gap).toBeLessThan(minutes * 1.1 + 1)
    }
    expect(Date.parse(explanation.nextAt ?? '')).toBeGreaterThan(Date.parse(now))
    expect(Date.parse(explanation.nextAt ?? '')).toBeLessThan(Date.parse(now) + 7 * 3_600_000)
  }, 60_000)

  test('gives up after four days, and suppresses', async () => {
    const own = await tenant()
    const id = await own.send('timeout@simulator.test')
    await own.advance(10 * 86_400)
    const { deliveries, status } = await own.read(id)
    expect(status).toBe('hardfail')
    expect(deliveries).toHaveLength(30)
    expect(await own.suppressed('timeout@simulator.test')).toBe('too many soft fails')
  }, 60_000)

  test('lets held mail expire after seven days', async () => {
    const own = await tenant()
    const id = await own.send('suppressed@simulator.test')
    await own.advance(6 * 86_400)
    expect((await own.read(id)).status).toBe('held')
    await own.advance(2 * 86_400)
    expect((await own.read(id)).status).toBe('hardfail')
  }, 60_000)

  test('is moved by one request of a tenant at a time', async () => {
    const own = await tenant()
    await own.send('timeout@simulator.test')
    await own.advance(5)
    const days = 2
    const [first = 0, second = 0] = (await Promise.all([own.advance(days * 86_400), own.advance(days * 86_400)]))
      .map(Date.parse)
      .sort((a, b) => a - b)
    expect(first - Date.now()).toBeLessThan(days * dayMs + 60_000)
    expect(second - first).toBeGreaterThan(days * dayMs - 60_000)
  }, 60_000)

  test('goes on from where it was moved to: later mail is accepted, delivered and received at its time', async () => {
    const own = await tenant()
    const moved = Date.parse(await own.advance(20 * 86_400))
    expect(moved - Date.now()).toBeGreaterThan(20 * dayMs - 60_000)
    const id = await own.send('bounce@simulator.test')
    await own.advance(10)
    const { timestampIso, deliveries } = await own.read(id)
    const [received] = await own.inbox()
    for (const at of [timestampIso, received?.receivedAt, ...deliveries.map((one) => one.timestampIso)])
      expect(Math.abs(Date.parse(at ?? '') - moved)).toBeLessThan(60_000)
    expect(deliveries.map((one) => one.status)).toEqual(['sent', 'bounced'])
    const again = Date.parse(await own.advance(30 * 86_400))
    expect(again - moved).toBeGreaterThan(30 * dayMs - 60_000)
  }, 60_000)

  test('happens in order for several emails, and is nothing to another tenant or to live mail', async () => {
    const [own, other] = [await tenant(), await tenant()]
    const theirs = await other.send('timeout@simulator.test')
    const live = async () => {
      const body = { from: own.from, to: ['timeout@simulator.test'], subject: 's', text: 't' }
      return (
        (
          await service.call('POST', `/emails?tenantId=${own.tenantId}`, {
            key: service.liveKey,
            body: { ...body, tenantId: own.tenantId },
          })
        ).body.data as { id: string }
      ).id
    }
    const liveId = await live()
    const mine = await Promise.all(Array.from({ length: 6 }, () => own.send('softfail@simulator.test')))
    await own.advance(86_400)
    for (const id of mine) expect((await own.read(id)).deliveries.map((one) => one.status)).toEqual(['softfail', 'sent'])
    const order = (await own.inbox()).map((one) => Date.parse(one.receivedAt))
    expect(order).toHaveLength(6)
    // Emails that are delivered at the same time may be recorded in another order.
    for (const [nth, at] of order.entries()) expect(at).toBeLessThan((order[nth - 1] ?? at) + 1000)
    await expect.poll(async () => (await other.read(theirs)).deliveries.length, { timeout: 10_000, interval: 50 }).toBe(1)
    const ofLive = async () =>
      (await service.call('GET', `/emails/${liveId}?expand=deliveries`, { key: service.liveKey })).body.data as Details
    await expect.poll(ofLive, { timeout: 10_000, interval: 50 }).toMatchObject({ test: false, status: 'softfail' })
    expect((await ofLive()).deliveries).toHaveLength(1)
  }, 60_000)

  test('is the time of the events too, in webhooks and in the stream', async () => {
    const own = await tenant()
    const moved = Date.parse(await own.advance(5 * 86_400))
    await using stream = await openEventStream(service.port, '/events/stream?after=0-0', own.key)
    await own.send('softfail@simulator.test')
    await own.send('clicked@simulator.test')
    await own.send('bounce@simulator.test')
    await own.advance(3600)
    await expect.poll(() => stream.told().length, { timeout: 15_000, interval: 50 }).toBe(7)
    const told = stream.told().map(({ event, data }) => [event, data.timestamp * 1000] as const)
    expect(told.at(-1)?.[0]).toBe('MessageSent')
    const order = told.map(([, atMs]) => atMs)
    expect(Math.min(...order)).toBeGreaterThan(moved - 1000)
    // The second attempt of the deferred email comes last.
    expect(order.at(-1)).toBe(Math.max(...order))
    expect(Math.max(...order) - Math.min(...order)).toBeGreaterThan(5 * 60_000)
  }, 60_000)

  test.each([0, -1, 1.5, 2_592_001, '60', null])('refuses %j seconds', async (seconds) => {
    const answer = await service.call('POST', '/test/advance', { key: service.testKey, body: { seconds } })
    expect(answer).toMatchObject({ status: 400, body: { error: { code: 'validation_error', field: 'seconds' } } })
  })
})

describe('the inbox', () => {
  test('shows the sent message as its reader has it, with the links that can be followed', async () => {
    const own = await tenant()
    const html =
      '<p>Hi</p><a href="https://shop.example/a?b=1&amp;c=2">a</a> <a name="x">b</a> <A HREF=\'mailto:help@shop.example\'>c</A><!-- <a href="https://no.example">'
    const text = 'See https://shop.example/text.'
    const id = await own.send('ann@customer.example', { html, text, subject: 'Grüße' })
    const [mail, ...others] = await own.inbox('?to=Ann@customer.example&wait=10')
    expect(others).toEqual([])
    expect(mail).toMatchObject({ id, emailId: id, to: 'ann@customer.example', from: own.from, subject: 'Grüße', html, text })
    expect(mail?.links).toEqual(['https://shop.example/a?b=1&c=2', 'mailto:help@shop.example', 'https://shop.example/text'])
  })

  test('waits for mail that comes, and not longer than requested', async () => {
    const own = await tenant()
    const waiting = own.inbox('?to=late@customer.example&wait=20')
    await service.wait(300)
    const id = await own.send('late@customer.example')
    expect((await waiting).map((one) => one.id)).toEqual([id])
    expect(await own.inbox('?to=nobody@customer.example&wait=1')).toEqual([])
    const tooLong = await service.call('GET', '/test/inbox?wait=26', { key: service.testKey })
    expect(tooLong).toMatchObject({ status: 400, body: { error: { field: 'wait' } } })
  })

  test('waits for mail that comes after the question, though there is older mail that matches', async () => {
    const own = await tenant()
    const older = await own.send('again@customer.example')
    await own.advance(1)
    const waiting = own.inbox('?to=again@customer.example&wait=20')
    await service.wait(500)
    const newer = await own.send('again@customer.example')
    expect((await waiting).map(({ id }) => id)).toEqual([newer, older])
    const beganMs = Date.now()
    expect((await own.inbox('?to=again@customer.example&wait=1')).map(({ id }) => id)).toEqual([newer, older])
    expect(Date.now() - beganMs).toBeGreaterThanOrEqual(1000)
  })

  test.each(['the id of an email', 'a time', 'unix seconds'])(
    'with since as %s shows mail from then on, at once when it is there already',
    async (how) => {
      const own = await tenant()
      const older = await own.send('since@customer.example')
      await own.advance(1)
      await service.wait(5)
      const now = new Date()
      const waited = how === 'the id of an email' ? undefined : how === 'a time' ? now.toISOString() : String(now.getTime() / 1000)
      const newer = await own.send('since@customer.example')
      const since = encodeURIComponent(waited ?? newer)
      expect((await own.inbox(`?to=since@customer.example&since=${since}&wait=20`)).map(({ id }) => id)).toEqual([newer])
      const beganMs = Date.now()
      expect((await own.inbox(`?to=since@customer.example&since=${since}&wait=20`)).map(({ id }) => id)).toEqual([newer])
      expect(Date.now() - beganMs).toBeLessThan(10_000)
      expect((await own.inbox(`?since=${older}`)).map(({ id }) => id)).toEqual([newer, older])
      const odd = await service.call('GET', '/test/inbox?since=yesterday', { key: service.testKey })
      expect(odd).toMatchObject({ status: 400, body: { error: { code: 'validation_error', field: 'since' } } })
    },
  )

  test('has pages, newest first, and nothing that was not received', async () => {
    const own = await tenant()
    await own.send('hardfail@simulator.test')
    for (const n of [1, 2, 3]) await own.send(`r${n}@customer.example`)
    await own.advance(1)
    const page = await own.call<Received[]>('GET', '/test/inbox?perPage=2&page=1')
    expect(page).toMatchObject({ total: 3, totalPages: 2, perPage: 2, page: 1 })
    expect(page.data).toHaveLength(2)
    expect(await own.inbox('?perPage=2&page=2')).toHaveLength(1)
    expect(await own.inbox('?perPage=2&page=3')).toEqual([])
  })

  test('is searched by a part of recipient, sender or subject, in any case, and no letter of it is a pattern', async () => {
    const own = await tenant()
    const percent = await own.send('ann%x@customer.example')
    await own.send('annex@customer.example')
    await own.advance(1)
    const found = async (search: string) => (await own.inbox(`?search=${encodeURIComponent(search)}`)).map(({ id }) => id)
    expect(await found('ANN%X')).toEqual([percent])
    expect(await found('customer.EXAMPLE')).toHaveLength(2)
    expect(await found(own.from.toUpperCase())).toHaveLength(2)
    expect(await found('a_n')).toEqual([])
  })

  test('is empty once it was cleared, until more comes; the emails stay', async () => {
    const own = await tenant()
    const id = await own.send('one@customer.example')
    await own.advance(1)
    expect((await own.call('DELETE', '/test/inbox')).data).toEqual({ deleted: 1 })
    expect((await own.call('DELETE', '/test/inbox')).data).toEqual({ deleted: 0 })
    expect(await own.inbox()).toEqual([])
    expect((await own.read(id)).status).toBe('sent')
    const second = await own.send('two@customer.example')
    expect((await own.inbox('?wait=10')).map((one) => one.id)).toEqual([second])
  })

  test('loses one email that was deleted, and keeps the others', async () => {
    const [own, other] = [await tenant(), await tenant()]
    const [first, second] = [await own.send('one@customer.example'), await own.send('two@customer.example')]
    await own.advance(1)
    const absent = { status: 404, body: { error: { code: 'not_found' } } }
    expect(await service.call('DELETE', `/test/inbox/${first}`, { key: other.key })).toMatchObject(absent)
    expect((await own.inbox()).map((one) => one.id).sort()).toEqual([first, second].sort())
    expect((await own.call('DELETE', `/test/inbox/${first}`)).data).toEqual({ deleted: 1 })
    expect(await service.call('DELETE', `/test/inbox/${first}`, { key: own.key })).toMatchObject(absent)
    expect((await own.inbox()).map((one) => one.id)).toEqual([second])
    expect((await own.read(first)).status).toBe('sent')
    expect((await own.call('DELETE', '/test/inbox')).data).toEqual({ deleted: 1 })
  })

  test("is the tenant's own: another's is neither shown nor cleared", async () => {
    const [own, other] = [await tenant(), await tenant()]
    const id = await own.send('mine@customer.example')
    await own.advance(1)
    expect(await other.inbox()).toEqual([])
    expect((await other.call('DELETE', '/test/inbox')).data).toEqual({ deleted: 0 })
    expect((await own.inbox()).map((one) => one.id)).toEqual([id])
    const named = await service.call('GET', `/test/inbox?tenantId=${own.tenantId}`, { key: other.key })
    expect(named).toMatchObject({ status: 403, body: { error: { code: 'tenant_mismatch' } } })
    const all = await service.call('GET', `/test/inbox?tenantId=${own.tenantId}`, { key: service.testKey })
    expect(all.body).toMatchObject({ total: 1, data: [{ id }] })
  })

  test('shows raw messages, and not live mail', async () => {
    const own = await tenant()
    const rawMessage = Buffer.from(
      `From: ${own.from}\r\nTo: a@b.example\r\nSubject: raw\r\nContent-Type: text/html\r\n\r\n<a href="https://raw.example/">x</a>`,
    ).toString('base64')
    await own.call('POST', '/emails/raw', { from: own.from, to: ['raw@customer.example'], rawMessage })
    const live = { from: own.from, to: ['delivered@simulator.test'], subject: 's', text: 't', tenantId: own.tenantId }
    await service.call('POST', '/emails', { key: service.liveKey, body: live })
    expect(await own.inbox('?wait=10&to=raw@customer.example')).toMatchObject([{ subject: 'raw', links: ['https://raw.example/'] }])
    await own.advance(5)
    expect((await own.inbox()).map((one) => one.to)).toEqual(['raw@customer.example'])
  })
})

test.each([
  ['GET', '/test/inbox', undefined],
  ['DELETE', '/test/inbox', undefined],
  ['POST', '/test/advance', { seconds: 1 }],
])('%s %s is for test keys only', async (method, path, body) => {
  const answer = await service.call(method, path, { key: service.liveKey, body })
  expect(answer).toMatchObject({ status: 403, body: { error: { code: 'permission_denied' } } })
})

describe('promotion', () => {
  const promote = (id: string, key = service.liveKey, headers = {}) => service.call('POST', `/emails/${id}/promote`, { key, headers })

  test('sends a rehearsed email for real, once for an idempotency key, and the test email stays a test', async () => {
    const own = await tenant()
    const more = { html: '<b>Hi</b>', tag: 'promoted', metadata: { order: '1' }, headers: { 'X-Order': '1' }, cc: ['cc@simulator.test'] }
    const id = await own.send('delivered+promoted@simulator.test', more)
    const first = await promote(id, service.liveKey, { 'idempotency-key': 'promote-1' })
    expect(first).toMatchObject({ status: 200, body: { data: { tenantId: own.tenantId, to: ['delivered+promoted@simulator.test'] } } })
    const again = await promote(id, service.liveKey, { 'idempotency-key': 'promote-1' })
    expect(again.text).toBe(first.text)
    const liveId = (first.body.data as { id: string }).id
    const live = await service.call('GET', `/emails/${liveId}?expand=full`, { key: service.liveKey })
    expect(live.body.data).toMatchObject({
      test: false,
      subject: 'Hello',
      htmlBody: '<b>Hi</b>',
      tag: 'promoted',
      metadata: { order: '1' },
    })
    expect(live.body.data).toMatchObject({ headers: { 'X-Order': '1', To: 'delivered+promoted@simulator.test' } })
    expect((await service.call('GET', `/emails/${id}`, { key: own.key })).body.data).toMatchObject({ test: true })
  })

  test('keeps one-click unsubscription', async () => {
    const own = await tenant()
    const id = await own.send('delivered+news@simulator.test', { unsubscribe: true })
    const live = ((await promote(id)).body.data as { id: string }).id
    const headersOf = async (email: string) =>
      (await service.call('GET', `/emails/${email}?expand=full`, { key: service.liveKey })).body.data as { headers: Record<string, string> }
    expect((await headersOf(id)).headers).toMatchObject({ 'List-Unsubscribe-Post': 'List-Unsubscribe=One-Click' })
    expect((await headersOf(live)).headers).toMatchObject({ 'List-Unsubscribe-Post': 'List-Unsubscribe=One-Click' })
  })

  test('accepts mail that the API of another vendor accepted: names in reply-to, an empty subject, other metadata', async () => {
    const own = await tenant()
    const body = {
      From: own.from,
      To: 'delivered+reply@simulator.test',
      ReplyTo: '"Doe, Änne" <anne@shop.example>, Help desk <help@shop.example>, plain@shop.example',
      TextBody: 'Hello.',
      Metadata: { 'order number': '7' },
    }
    const sent = await fetch(`http://127.0.0.1:${service.port}/email`, {
      method: 'POST',
      headers: { 'x-postmark-server-token': own.key, 'content-type': 'application/json', accept: 'application/json' },
      body: JSON.stringify(body),
    })
    expect([sent.status, await sent.text()]).toEqual([200, expect.anything()])
    const [{ id } = { id: '' }] = (await service.call('GET', '/emails?perPage=1', { key: own.key })).body.data as { id: string }[]
    const answer = await promote(id)
    expect(answer).toMatchObject({ status: 200 })
    const replyTo = async (email: string) =>
      (
        (await service.call('GET', `/emails/${email}?expand=full`, { key: service.liveKey })).body.data as {
          headers: Record<string, string>
        }
      ).headers['Reply-To']
    expect(await replyTo((answer.body.data as { id: string }).id)).toBe(await replyTo(id))
    expect(await replyTo(id)).toContain('anne@shop.example')
  })

  test('is refused to a test key, for live mail, and from a domain that only test keys may use', async () => {
    const own = await tenant()
    const id = await own.send('delivered@simulator.test')
    expect(await promote(id, own.key)).toMatchObject({ status: 403, body: { error: { code: 'permission_denied' } } })
    const liveId = ((await promote(id)).body.data as { id: string }).id
    expect(await promote(liveId)).toMatchObject({ status: 400, body: { error: { code: 'validation_error', field: 'emailId' } } })
    const body = { from: 'hello@simulator.test', to: ['delivered@simulator.test'], subject: 's', text: 't' }
    const first = ((await service.call('POST', '/emails', { key: service.testKey, body })).body.data as { id: string }).id
    expect(await promote(first)).toMatchObject({ status: 400, body: { error: { code: 'domain_not_verified' } } })
  })
})
