/** Responses to strangers who follow the links in mail, and the records kept of it. */
import { request } from 'node:http'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openIds, openSecrets, systemRandom } from '#base'
import { sql } from '#db'
import { eraseAddress } from '#housekeeping'
import { openTokens, type TokenKind } from '#tracking'
import { type Service, startService } from '../support/in-process-service.ts'
import { handMovedDurations, neverTwice } from '../support/test-clock.ts'

const reader = 'Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0'
const host = 'click.mail.tracker.example'
const othersHost = 'click.others.example'
const target = 'https://Shop.example/a//b?x=1&&y=%2F&z=ä#f?g'
const location = 'https://Shop.example/a//b?x=1&&y=%2F&z=%C3%A4#f?g'
const oneClick = 'List-Unsubscribe=One-Click'
const dayMs = 86_400_000

interface Answer {
  status: number
  headers: NodeJS.Dict<string | string[]>
  octets: Buffer
  text: string
}
interface Activity {
  opens: StoredTrackingEvent[]
  clicks: (StoredTrackingEvent & { url: string })[]
  counts: Record<'opens' | 'clicks', Record<'human' | 'machine' | 'unknown', number>>
}
interface StoredTrackingEvent {
  ipAddress: string
  userAgent: string
  timestamp: number
  timestampIso: string
  source: string
  reason: string
}

const domainByName = sql<{ id: number }>`
  select id
  from domains
  where name = $1`
const eventsOf = sql<{ kind: string; data: Record<string, unknown> }>`
  select kind, data
  from events
  where email_id = $1 and kind in ('MessageLoaded', 'MessageLinkClicked')
  order by id`
const logged = sql<{ count: number }>`
  select count(*) as count
  from request_logs
  where path !~ '^/v1/'`
const suppressionsOf = sql<{ reason: string; source: string; emailId: string | null }>`
  select reason, source, email_id as "emailId"
  from suppressions
  where tenant_id = $1 and address = $2`

let service: Service
beforeAll(async () => {
  service = await startService({ rateLimit: null, sendLimit: null, roles: ['delivery'], clock: neverTwice() })
  await track(service, service.tenantId, 'mail.tracker.example')
  await track(service, await service.makeTenant('Others'), 'others.example')
})
afterAll(() => service.stop())

async function track(at: Service, tenantId: string, domain: string): Promise<void> {
  await at.addDomain(tenantId, domain)
  const domainId = (await at.db.first(domainByName, [domain]))?.id as number
  const made = await at.call('POST', '/tracking', { key: at.liveKey, body: { domainId, name: 'click', tenantId } })
  expect(made.status, made.text).toBe(201)
}

const ids = openIds(systemRandom)
const tokens = openTokens(openSecrets('a secret for tests only', systemRandom))
const link = (kind: TokenKind, emailId: string, url = '', tenantId = service.tenantId) =>
  `/${{ open: 'o', click: 'c', unsubscribe: 'u' }[kind]}/${tokens.make({ kind, tenantId, emailId, url })}`

function ask(
  path: string,
  {
    method = 'GET',
    headers = {},
    body = '',
    port = service.port,
  }: { method?: string; headers?: Record<string, string>; body?: string; port?: number } = {},
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const given = { host, 'user-agent': reader, ...(method === 'POST' ? { 'content-length': Buffer.byteLength(body) } : {}), ...headers }
    const asked = request({ host: '127.0.0.1', port, path, method, headers: given }, (answer) => {
      const pieces: Buffer[] = []
      answer.on('data', (piece: Buffer) => pieces.push(piece))
      answer.on('end', () => {
        const octets = Buffer.concat(pieces)
        resolve({ status: answer.statusCode ?? 0, headers: answer.headers, octets, text: octets.toString() })
      })
    })
    asked.on('error', reject)
    asked.end(body)
  })
}

/** Sends an email to the simulator and waits for its delivery. */
async function delivered(to = 'delivered@simulator.test'): Promise<string> {
  const body = { from: 'a@simulator.test', to: [to], subject: 's', text: 't' }
  const sent = await service.call('POST', '/emails', { key: service.testKey, body })
  const { id } = (sent.body.data as { messages: Record<string, { id: string }> }).messages[to] as { id: string }
  const status = async () => ((await service.call('GET', `/emails/${id}`, { key: service.testKey })).body.data as { status: string }).status
  await expect.poll(status, { timeout: 15_000, interval: 50 }).toBe('sent')
  return id
}

async function activityOf(id: string, at = service): Promise<Activity> {
  const answer = await at.call('GET', `/emails/${id}?expand=activity`, { key: at.testKey })
  return (answer.body.data as { activity: Activity }).activity
}

const has = (id: string, opens: number, clicks: number, at = service) =>
  expect
    .poll(
      async () => {
        const { opens: o, clicks: c } = await activityOf(id, at)
        return [o.length, c.length]
      },
      { timeout: 10_000, interval: 50 },
    )
    .toEqual([opens, clicks])

describe('the host name of a request', () => {
  test('of a track domain serves links and no other pages of Postrider', async () => {
    for (const [method, path] of [
      ['GET', '/'],
      ['GET', '/v1/emails'],
      ['POST', '/v1/emails'],
      ['GET', '/v1/openapi.json'],
      ['GET', '/docs/'],
      ['GET', '/healthz'],
      ['GET', '/metrics'],
      ['GET', '/.well-known/jwks.json'],
      ['GET', `/tls/ask?domain=${host}`],
      ['GET', '/nothing'],
      ['DELETE', link('open', ids.emailId(0))],
    ] as const) {
      const answer = await ask(path, { method, headers: { authorization: `Bearer ${service.liveKey}`, host: `${host.toUpperCase()}:80` } })
      expect([path, answer.status, answer.text]).toEqual([path, 404, 'not found\n'])
    }
  })

  test('that is unknown, and that of the installation, serve no pixel and no redirect; the latter serves the unsubscribe page', async () => {
    const id = ids.emailId(new Date().getTime())
    for (const [where, path, status] of [
      ['nobody.example', link('open', id), 404],
      ['nobody.example', link('click', id, target), 404],
      ['nobody.example', link('unsubscribe', id), 404],
      ['localhost', link('open', id), 404],
      [`127.0.0.1:${service.port}`, link('click', id, target), 404],
      ['localhost', link('unsubscribe', id), 200],
      [`127.0.0.1:${service.port}`, link('unsubscribe', id), 200],
    ] as const) {
      const answer = await ask(path, { headers: { host: where } })
      expect([where, path[1], answer.status]).toEqual([where, path[1], status])
      if (status === 404) expect(answer.text).toBe('not found\n')
    }
  })

  test('that is no host name is the fault of the client', async () => {
    for (const path of [link('open', ids.emailId(0)), link('click', ids.emailId(0), target), link('unsubscribe', ids.emailId(0)), '/u/x'])
      expect(await ask(path, { headers: { host: 'a b' } })).toMatchObject({ status: 400, text: 'the request is unreadable\n' })
  })

  test("of one tenant serves no link of another's", async () => {
    const path = link('click', ids.emailId(new Date().getTime()), target)
    expect((await ask(path, { headers: { host: othersHost } })).status).toBe(404)
    expect((await ask(path)).status).toBe(302)
  })

  test('answers a proxy whether to get a certificate for it', async () => {
    const at = { headers: { host: 'localhost' } }
    expect((await ask(`/tls/ask?domain=${host}`, at)).status).toBe(200)
    expect((await ask(`/tls/ask?domain=${host.toUpperCase()}`, at)).status).toBe(200)
    for (const query of ['?domain=nobody.example', '?domain=', '', '?domain=a.b&domain=c.d', `?domain=${'a.'.repeat(500)}`])
      expect((await ask(`/tls/ask${query}`, at)).status).toBe(404)
  })

  test('is known within a second of its making, and forgotten within a second of its end', async () => {
    const clock = handMovedDurations()
    await using brief = await startService({ rateLimit: null, clock })
    const { tenantId, port } = brief
    const where = { port, headers: { host: 'click.brief.example' } }
    const path = link('click', ids.emailId(new Date().getTime()), target, tenantId)
    expect((await ask(path, where)).status).toBe(404)
    await track(brief, tenantId, 'brief.example')
    clock.pass(950)
    expect((await ask(path, where)).status).toBe(302)
    const tracks = (await brief.call('GET', `/tenants/${tenantId}/tracking`, { key: brief.liveKey })).body.data as {
      trackDomains: { id: string }[]
    }
    await brief.call('DELETE', `/tracking/${tracks.trackDomains[0]?.id}`, { key: brief.liveKey })
    clock.pass(950)
    expect((await ask(path, where)).status).toBe(404)
  })

  test('is taken from a proxy only when that is trusted, and so is the address of the reader', async () => {
    const forwarded = { host: 'upstream', 'x-forwarded-host': host, 'x-forwarded-for': '203.0.113.9', 'x-forwarded-proto': 'https' }
    const id = await delivered()
    expect((await ask(link('open', id), { headers: forwarded })).status).toBe(404)
    expect((await ask(link('open', id), { headers: { ...forwarded, host } })).status).toBe(200)
    expect((await ask('/v1/limits', { headers: { ...forwarded, host, 'x-forwarded-host': 'localhost' } })).text).toBe('not found\n')
    await has(id, 1, 0)
    expect((await activityOf(id)).opens).toMatchObject([{ ipAddress: '127.0.0.1' }])

    await using behind = await startService({
      rateLimit: null,
      settings: { POSTRIDER_TRUSTED_PROXIES: '127.0.0.0/8, 10.0.0.0/8' },
      roles: ['delivery'],
      clock: neverTwice(),
    })
    await track(behind, behind.tenantId, 'mail.tracker.example')
    const body = { from: 'a@simulator.test', to: ['delivered@simulator.test'], subject: 's', text: 't' }
    const sent = await behind.call('POST', '/emails', { key: behind.testKey, body })
    const mine = (sent.body.data as { messages: Record<string, { id: string }> }).messages['delivered@simulator.test']?.id as string
    const path = link('open', mine, '', behind.tenantId)
    const through = async (headers: Record<string, string>) =>
      (await ask(path, { port: behind.port, headers: { ...forwarded, ...headers } })).status
    expect(await through({})).toBe(200)
    // Only the address seen by the outermost trusted proxy counts, not the values that the reader put before it.
    expect(await through({ 'x-forwarded-for': '198.51.100.1, 203.0.113.10, 10.1.2.3' })).toBe(200)
    expect(await through({ 'x-forwarded-host': 'nobody.example' })).toBe(404)
    expect(await through({ 'x-forwarded-host': 'a b<script>' })).toBe(404)
    await has(mine, 2, 0, behind)
    expect((await activityOf(mine, behind)).opens.map((one) => one.ipAddress)).toEqual(['203.0.113.9', '203.0.113.10'])
  })
})

describe('an open', () => {
  test('is answered with one pixel that is not cached, to GET and HEAD, and recorded with its event', async () => {
    const id = await delivered()
    const path = link('open', id)
    const got = await ask(path)
    expect(got.status).toBe(200)
    expect(got.headers).toMatchObject({ 'content-type': 'image/gif', 'cache-control': 'no-store', 'content-length': '43' })
    expect(got.octets.toString('latin1', 0, 10)).toBe('GIF89a\x01\x00\x01\x00')
    expect(got.octets).toHaveLength(43)
    const head = await ask(path, { method: 'HEAD' })
    expect([head.status, head.headers['content-length'], head.octets.length]).toEqual([200, '43', 0])

    await has(id, 2, 0)
    const { opens, clicks, counts } = await activityOf(id)
    expect(clicks).toEqual([])
    expect(opens).toEqual([
      {
        ipAddress: '127.0.0.1',
        userAgent: reader,
        timestamp: expect.any(Number),
        timestampIso: expect.any(String),
        source: 'human',
        reason: 'reader',
      },
      expect.objectContaining({ source: 'machine', reason: 'head-request' }),
    ])
    expect(counts.opens).toEqual({ human: 1, machine: 1, unknown: 0 })
    expect(await service.db.rows(eventsOf, [id])).toEqual([
      { kind: 'MessageLoaded', data: { ipAddress: '127.0.0.1', userAgent: reader, source: 'human', reason: 'reader' } },
      { kind: 'MessageLoaded', data: expect.objectContaining({ source: 'machine' }) },
    ])
  })
})

describe('a click', () => {
  test('leads to exactly where the sender wrote, and is recorded with its event', async () => {
    const id = await delivered()
    const path = link('click', id, target)
    const got = await ask(`${path}?utm_source=scanner`)
    expect(got.status).toBe(302)
    expect(got.headers).toMatchObject({ location, 'cache-control': 'no-store' })
    await has(id, 0, 1)
    const { clicks, counts } = await activityOf(id)
    expect(clicks).toMatchObject([{ url: target, ipAddress: '127.0.0.1', userAgent: reader, source: 'human', reason: 'reader' }])
    expect(counts.clicks).toEqual({ human: 1, machine: 0, unknown: 0 })
    expect(await service.db.rows(eventsOf, [id])).toEqual([
      {
        kind: 'MessageLinkClicked',
        data: { url: target, token: path.slice(3), ipAddress: '127.0.0.1', userAgent: reader, source: 'human', reason: 'reader' },
      },
    ])
    expect((await service.db.first(logged))?.count).toBe(0)
  })

  test('with a token that was not made here, or for another kind of link, leads nowhere', async () => {
    const id = ids.emailId(new Date().getTime())
    const good = link('click', id, target)
    for (const path of [
      '/c/',
      '/c/x',
      `/c/${link('open', id).slice(3)}`,
      `${good}A`,
      good.slice(0, -1),
      `/c/${'A'.repeat(5000)}`,
      '/c/%00',
      '/c/%',
    ]) {
      const answer = await ask(path)
      expect([path, answer.status, answer.text, answer.headers.location]).toEqual([path, 404, 'not found\n', undefined])
    }
    expect((await ask(link('click', id, 'javascript:alert(1)'))).status).toBe(404)
  })

  test('of several links within a second, or after HEAD for the same, is a machine: also when another process had taken the first', async () => {
    const [many, headed, spread] = [await delivered(), await delivered(), await delivered()]
    for (const n of [1, 2, 3]) expect((await ask(link('click', many, `https://shop.example/${n}`))).status).toBe(302)
    expect((await ask(link('click', headed, target), { method: 'HEAD' })).headers.location).toBe(location)
    await has(headed, 0, 1)
    await ask(link('click', headed, target))
    await ask(link('click', spread, target))
    await ask(link('click', spread, target))
    await has(many, 0, 3)
    await has(headed, 0, 2)
    await has(spread, 0, 2)
    const reasons = async (id: string) => (await activityOf(id)).clicks.map((one) => `${one.source}: ${one.reason}`)
    expect(await reasons(many)).toEqual(Array.from({ length: 3 }, () => 'machine: several-links-within-a-second'))
    expect(await reasons(headed)).toEqual(['machine: head-request', 'machine: head-before-get'])
    expect(await reasons(spread)).toEqual(['human: reader', 'human: reader'])
  })

  test('of an email past its retention still leads there, and is not recorded; nor is one of an email that never was', async () => {
    const old = ids.emailId(new Date().getTime() - 91 * dayMs)
    const never = ids.emailId(new Date().getTime())
    for (const id of [old, never]) expect((await ask(link('click', id, target))).headers.location).toBe(location)
    const id = await delivered()
    await ask(link('click', id, target))
    await has(id, 0, 1)
    expect(await service.db.rows(eventsOf, [never])).toEqual([])
    expect(await service.db.rows(eventsOf, [old])).toEqual([])
  })

  test('is recorded a thousand times of one email at most', async () => {
    const id = await delivered()
    const path = link('click', id, target)
    for (let round = 0; round < 13; round++) await Promise.all(Array.from({ length: 80 }, () => ask(path)))
    const last = await delivered()
    await ask(link('open', last))
    await has(last, 1, 0)
    await has(id, 0, 1000)
  })
})

test('of an erased person stays that there was an open and a click, and nothing comes after', async () => {
  const address = 'delivered+erased@simulator.test'
  const id = await delivered(address)
  await ask(link('open', id))
  await ask(link('click', id, `https://shop.example/?to=${address}`))
  await has(id, 1, 1)
  await eraseAddress(service, address, null, new Date().getTime(), () => undefined)
  expect((await ask(link('click', id, target))).status).toBe(302)
  expect((await ask(link('unsubscribe', id), { method: 'POST', body: oneClick })).status).toBe(404)
  const later = await delivered()
  await ask(link('open', later))
  await has(later, 1, 0)
  const { opens, clicks } = await activityOf(id)
  expect(opens).toMatchObject([{ ipAddress: '', userAgent: '' }])
  expect(clicks).toMatchObject([{ url: '', ipAddress: '', userAgent: '' }])
  expect((await service.db.rows(eventsOf, [id])).map((one) => one.data)).toEqual(
    Array.from({ length: 2 }, () => ({ source: 'human', reason: 'reader' })),
  )
})

describe('an unsubscribe link', () => {
  const listed = (address: string) => service.db.rows(suppressionsOf, [service.tenantId, address])

  test('shows a page that runs and loads nothing, and changes nothing, to GET and HEAD', async () => {
    const id = await delivered('delivered+page@simulator.test')
    const got = await ask(link('unsubscribe', id))
    expect(got.status).toBe(200)
    expect(got.headers['content-type']).toBe('text/html; charset=utf-8')
    expect(got.headers['content-security-policy']).toContain("default-src 'none'")
    expect(got.text).toMatch(/<form method="post">.*<button type="submit">/)
    expect(got.text).not.toMatch(/<script|src=|href=|page@/i)
    expect((await ask(link('unsubscribe', id), { method: 'HEAD' })).status).toBe(200)
    expect(await listed('delivered+page@simulator.test')).toEqual([])
  })

  test.each(['', '{}', 'a=b'])('suppresses by POST with any body: %j', async (body) => {
    const address = `delivered+any${body.length}@simulator.test`
    const id = await delivered(address)
    const headers = { 'content-type': 'application/x-www-form-urlencoded' }
    expect((await ask(link('unsubscribe', id), { method: 'POST', body, headers })).status).toBe(200)
    expect(await listed(address)).toEqual([{ reason: 'unsubscribe', source: 'automatic', emailId: id }])
  })

  test.each(['x', '//', 'a/b; c'])('suppresses by POST with any type of body: %j', async (type) => {
    const address = `delivered+type${type.length}@simulator.test`
    const id = await delivered(address)
    const headers = { 'content-type': type }
    expect((await ask(link('unsubscribe', id), { method: 'POST', body: oneClick, headers })).status).toBe(200)
    expect(await listed(address)).toHaveLength(1)
  })

  test('refuses a body that is too long, and changes nothing', async () => {
    const id = await delivered('delivered+not@simulator.test')
    expect((await ask(link('unsubscribe', id), { method: 'POST', body: 'x'.repeat(5000) })).status).toBe(413)
    expect(await listed('delivered+not@simulator.test')).toEqual([])
  })

  test('suppresses the recipient for the tenant by POST, on a track domain and on the host of the installation, as often as it is sent', async () => {
    const address = 'delivered+gone@simulator.test'
    const id = await delivered(address)
    for (const where of [host, 'localhost'])
      for (const type of ['application/x-www-form-urlencoded', 'text/plain']) {
        const answer = await ask(link('unsubscribe', id), {
          method: 'POST',
          body: oneClick,
          headers: { host: where, 'content-type': type },
        })
        expect(answer.status).toBe(200)
      }
    expect(await listed(address)).toEqual([{ reason: 'unsubscribe', source: 'automatic', emailId: id }])
    const again = await service.call('POST', '/emails', {
      key: service.testKey,
      body: { from: 'a@simulator.test', to: [address], subject: 's', text: 't' },
    })
    const { id: held } = (again.body.data as { messages: Record<string, { id: string }> }).messages[address] as { id: string }
    const status = async () =>
      ((await service.call('GET', `/emails/${held}`, { key: service.testKey })).body.data as { status: string }).status
    await expect.poll(status, { timeout: 10_000 }).toBe('held')
  })

  test('of a tenant that was deleted is answered, and leaves nothing', async () => {
    const tenantId = await service.makeTenant('Left')
    await service.addDomain(tenantId, 'left.example')
    const key = await service.makeKey({ tenantId })
    const body = { from: 'a@left.example', to: ['reader@simulator.test'], subject: 's', text: 't' }
    const { id } = (await service.call('POST', '/emails', { key, body })).body.data as { id: string }
    await service.call('DELETE', `/tenants/${tenantId}`, { key: service.testKey })
    const answer = await ask(link('unsubscribe', id, '', tenantId), { method: 'POST', body: oneClick, headers: { host: 'localhost' } })
    expect(answer.status).toBe(200)
    expect(await service.db.rows(suppressionsOf, [tenantId, 'reader@simulator.test'])).toEqual([])
  })

  test('of a deleted email explains so', async () => {
    const answer = await ask(link('unsubscribe', ids.emailId(new Date().getTime())), { method: 'POST', body: oneClick })
    expect(answer.status).toBe(404)
    expect(answer.text).toContain('expired')
  })
})
