/** Contents hidden by role: a canary in every kind of content is in no answer of any endpoint to a member whose role may not see it. */
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { openIds, silentLog, systemClock, systemRandom } from '#base'
import { type Endpoint, pathsOf, routes } from '#http'
import { openPayloadBodies, type Sending, startSending } from '#webhooks'
import { goodBodies } from '../contract/valid-bodies.ts'
import { txtResolver } from '../support/authentication-samples.ts'
import { type Answer, type Service, startService } from '../support/in-process-service.ts'
import { greetedClient, sendIncoming } from '../support/send-incoming.ts'
import { type Receiver, startReceiver } from '../support/webhook-receiver.ts'
import { loopbackPost, sendingConfig } from '../support/webhook-sender-parts.ts'
import { ask as askOnce, type Reply, signedIn } from './signed-in-browser.ts'

const canary = 'canary7f3a91'
const encoded = Buffer.from(canary).toString('base64').slice(0, 12)
type Headers = Record<string, string>

let service: Service
let receiver: Receiver
let sending: Sending
const members: Record<string, Headers> = {}
/** Keyed by the name of the path parameter. */
let ids: Record<string, string>
let emailId = ''

beforeAll(async () => {
  service = await startService({
    rateLimit: null,
    sendLimit: null,
    roles: ['delivery', 'inbound'],
    receiving: { resolver: txtResolver(new Map()) },
    settings: { POSTRIDER_TRUSTED_PROXIES: '127.0.0.0/8', POSTRIDER_ALLOWED_NETWORKS: '127.0.0.0/8' },
  })
  receiver = await startReceiver()
  receiver.answer = (response, { body }) => response.end(body)
  const { db, secrets } = service
  const given = { db, secrets, clock: systemClock, ids: openIds(systemRandom), log: silentLog, config: sendingConfig, version: 'test' }
  sending = await startSending({ ...given, post: loopbackPost(), bodies: openPayloadBodies({ db }), processId: 'hidden' })
  for (const [role, tenantId] of [
    ['owner', null],
    ['admin', null],
    ['viewer', null],
    ['viewer', service.tenantId],
  ] as const)
    members[`${role} of ${tenantId === null ? 'all' : 'one'}`] = await signedIn(service, `${role}@house.test`, role, tenantId)
  ids = await fill()
}, 30_000)
afterAll(async () => {
  await sending.stop()
  await receiver[Symbol.asyncDispose]()
  await service.stop()
})

const key = () => service.testKey
const dataOf = <Data>(answer: Answer | Reply): Data => {
  if (answer.status >= 300) throw new Error(answer.text)
  return ('body' in answer ? answer.body.data : answer.data) as Data
}
const post = (path: string, body: object) => service.call('POST', path, { key: key(), body })
const made = async (path: string, body: object) => String(dataOf<{ id: string | number }>(await post(path, body)).id)
const firstOf = async <Item>(path: string) => dataOf<Item[]>(await service.call('GET', path, { key: key() }))[0]

/** Puts the canary into an email, a received message, requests to a webhook with their answers, and the request log. */
async function fill(): Promise<Record<string, string>> {
  const { tenantId } = service
  await service.addDomain(tenantId, 'hidden.example')
  const domains = dataOf<{ domains: { id: number; name: string }[] }>(await service.call('GET', '/domains', { key: key() })).domains
  const domainId = String(domains.find(({ name }) => name === 'hidden.example')?.id)
  const webhookId = await made('/webhooks', {
    tenantId,
    name: 'all',
    url: `${receiver.url}/hook`,
    events: ['MessageReceived', 'MessageLinkClicked'],
  })
  const routeId = await made('/routes', { address: 'in@hidden.example' })
  const attachments = [{ filename: `${canary}.txt`, contentType: 'text/plain', content: Buffer.from(canary).toString('base64') }]
  const sent = await post('/emails', {
    from: 'a@simulator.test',
    to: ['clicked@simulator.test'],
    subject: 'Shown',
    text: canary,
    html: `<a href="https://shop.example/${canary}">${canary}</a>`,
    headers: { 'X-Secret': canary },
    attachments,
  })
  emailId = dataOf<{ id: string }>(sent).id
  await using client = await greetedClient(service.ports.smtp)
  const part = `Content-Type: text/plain; name="${canary}.txt"\r\nContent-Disposition: attachment\r\n\r\n${canary}\r\n`
  const octets = `From: a@hidden.example\r\nSubject: Shown\r\nX-Secret: ${canary}\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\n${canary}\r\n--b\r\n${part}--b--\r\n`
  expect(await sendIncoming(client, { to: ['in@hidden.example'], octets })).toMatch(/^250/)
  const receivedId = (await firstOf<{ id: string }>('/received'))?.id ?? ''
  await post('/test/advance', { seconds: 3600 })
  const deliveries = async () =>
    dataOf<{ id: string; event: string }[]>(await service.call('GET', `/webhooks/${webhookId}/deliveries`, { key: key() }))
  await vi.waitFor(async () => expect(new Set((await deliveries()).map(({ event }) => event)).size).toBe(2), {
    timeout: 15_000,
    interval: 50,
  })
  const requestId = sent.body.meta.requestId
  await vi.waitFor(async () => expect((await service.call('GET', `/logs/${requestId}`, { key: key() })).status).toBe(200), {
    timeout: 10_000,
    interval: 50,
  })
  const deliveryId = (await deliveries()).find(({ event }) => event === 'MessageReceived')?.id ?? ''
  const credentialId = await made('/credentials', { name: 'one', type: 'api', tenantId })
  return { tenantId, emailId, credentialId, domainId, webhookId, deliveryId, requestId, routeId, receivedId }
}

const fillIn = (path: string) => path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(ids[name] ?? '0'.repeat(22)))
const hasCanary = ({ text }: Reply) => text.includes(canary) || text.includes(encoded)

const reads = routes
  .filter(({ method, streams }) => method === 'GET' && !streams)
  .flatMap((endpoint) => pathsOf(endpoint).map((path) => `/v1${path}?expand=full&perPage=100`))
const writes: readonly Endpoint[] = routes.filter(({ method }) => method !== 'GET')

const ownReads = ['preview', 'more', 'findings'].map((one) => `/dashboard/api/emails/{emailId}/${one}`)

const frameOf = (path: string): Headers => (path.endsWith('/preview') ? { 'sec-fetch-dest': 'iframe' } : {})

/** A walk is faster than the rate of a session. */
const ask: typeof askOnce = (...request) =>
  vi.waitUntil(
    async () => {
      const reply = await askOnce(...request)
      return reply.status !== 429 && reply
    },
    { timeout: 10_000, interval: 100 },
  )

/** The answers that have the canary, by path. */
async function findCanary(headers: Headers): Promise<string[]> {
  const found: string[] = []
  for (const path of [...reads, ...ownReads]) {
    if (hasCanary(await ask(service, 'GET', fillIn(path), { ...headers, ...frameOf(path) }))) found.push(path.split('?')[0] ?? '')
  }
  return found
}

async function setAudience(contentVisibleTo: string, as: Headers = members['owner of all'] ?? {}): Promise<Reply> {
  return ask(service, 'PATCH', `/v1/tenants/${service.tenantId}/privacy`, as, { contentVisibleTo })
}

/** Events since the begin of the log, as text. */
async function streamed(headers: Headers): Promise<string> {
  const closing = new AbortController()
  const answer = await fetch(`http://127.0.0.1:${service.port}/v1/events/stream?after=0-0&events=MessageReceived,MessageLinkClicked`, {
    headers,
    signal: closing.signal,
  })
  let text = ''
  for await (const piece of (answer.body as ReadableStream<Uint8Array>).pipeThrough(new TextDecoderStream())) {
    text += piece
    if (/^event: MessageReceived/m.test(text) && /^event: MessageLinkClicked/m.test(text) && text.endsWith('\n\n')) break
  }
  closing.abort()
  return text
}

const places = [
  '/v1/emails/{emailId}',
  '/v1/webhooks/{webhookId}/deliveries/{deliveryId}',
  '/v1/tenants/{tenantId}/webhooks/{webhookId}/deliveries/{deliveryId}',
  '/v1/received/{receivedId}',
  '/v1/tenants/{tenantId}/received/{receivedId}',
  '/v1/received/{receivedId}/raw',
  '/v1/tenants/{tenantId}/received/{receivedId}/raw',
  '/v1/test/inbox',
  '/v1/logs/{requestId}',
  '/dashboard/api/emails/{emailId}/preview',
]

test('until a tenant hides them, every member sees contents in these places', async () => {
  const viewer = members['viewer of all'] ?? {}
  expect((await findCanary(viewer)).toSorted()).toEqual(places.toSorted())
  expect(await streamed(viewer)).toContain(canary)
})

test('no answer to a viewer has contents that are for admins, and records stay', async () => {
  expect((await setAudience('admins')).status).toBe(200)
  const [ofAll, ofOne, ofAdmin] = ['viewer of all', 'viewer of one', 'admin of all'].map((name) => findCanary(members[name] ?? {}))
  expect([await ofAll, await ofOne]).toEqual([[], []])
  expect((await ofAdmin)?.toSorted()).toEqual(places.toSorted())
  for (const name of ['viewer of all', 'viewer of one']) {
    const viewer = members[name] ?? {}
    expect(await streamed(viewer), name).not.toContain(canary)
    const email = await ask(service, 'GET', `/v1/emails/${emailId}?expand=full`, viewer)
    const clicks = [{ url: '[hidden for your role]' }]
    expect(email.data, name).toMatchObject({ subject: 'Shown', contentHidden: true, activity: { clicks } })
    for (const path of ['/v1/received/{receivedId}/raw', ...ownReads.filter((one) => !one.endsWith('/more'))]) {
      const refused = await ask(service, 'GET', fillIn(path), { ...viewer, ...frameOf(path) })
      expect(refused, path).toMatchObject({ status: 403, code: 'permission_denied' })
      expect(refused.text, path).toContain('contentVisibleTo')
    }
  }
})

test('contents of another tenant stay visible, and a key sees all', async () => {
  const viewer = members['viewer of all'] ?? {}
  const other = await service.makeTenant('Other')
  await service.addDomain(other, 'other.example')
  const letter = { tenantId: other, from: 'a@other.example', to: ['delivered@simulator.test'], subject: 'Open', text: 'open letter' }
  const { id } = dataOf<{ id: string }>(await post('/emails', letter))
  expect((await ask(service, 'GET', `/v1/emails/${id}?expand=content`, viewer)).text).toContain('open letter')
  expect((await service.call('GET', `/emails/${emailId}?expand=content`, { key: key() })).text).toContain(canary)
})

test('only an owner changes who sees contents', async () => {
  for (const name of ['admin of all', 'viewer of all'])
    expect((await setAudience('everyone', members[name])).code).toBe('permission_denied')
  expect((await setAudience('nobody')).code).toBe('validation_error')
  expect(dataOf(await setAudience('owners'))).toMatchObject({ contentVisibleTo: 'owners' })
})

test('an admin who may not see contents gets them by no read and no change', { timeout: 30_000 }, async () => {
  const admin = members['admin of all'] ?? {}
  expect(await findCanary(admin)).toEqual([])
  expect(await streamed(admin)).not.toContain(canary)
  // A tenant that the endpoint does not read cannot stand in for all tenants.
  const other = await service.makeTenant('Visible')
  const webhook = { tenantId: other, name: 'all', url: `${receiver.url}/all`, events: ['MessageReceived'] }
  expect((await ask(service, 'POST', '/v1/platform/webhooks', admin, webhook)).code).toBe('permission_denied')
  expect((await ask(service, 'POST', '/v1/webhooks', admin, webhook)).status).toBe(201)
  const leading = new Set<string>()
  // Deletions last, so that the others find their objects.
  for (const endpoint of [...writes].sort((a, b) => Number(a.method === 'DELETE') - Number(b.method === 'DELETE'))) {
    const body = endpoint.body ? { body: goodBodies[endpoint.name]?.body(1) ?? {} } : {}
    for (const path of pathsOf(endpoint)) {
      const answer = await ask(service, endpoint.method, `/v1${fillIn(path)}`, admin, body.body)
      expect(hasCanary(answer), `${endpoint.name} ${path}`).toBe(false)
      if (answer.status === 403 && answer.text.includes('contentVisibleTo')) leading.add(endpoint.name)
    }
  }
  const leads = ['credentials', 'routes', 'webhooks', 'platformWebhooks'].flatMap((one) => [`${one}.create`, `${one}.update`])
  expect([...leading].toSorted()).toEqual(leads.toSorted())
})

test('a stream ends when the role of its member changes', async () => {
  const admin = await signedIn(service, 'moving@house.test', 'admin')
  const answer = await fetch(`http://127.0.0.1:${service.port}/v1/events/stream`, { headers: admin })
  const ended = answer.text()
  const change = { address: 'moving@house.test', role: 'viewer' }
  expect((await ask(service, 'POST', '/dashboard/api/members/role', members['owner of all'] ?? {}, change)).status).toBe(200)
  expect(await ended).toMatch(/^retry: /)
})

test('the report of the data that is left is for owners of the organisation', async () => {
  const path = `/dashboard/api/tenants/${service.tenantId}/privacy-report`
  expect((await ask(service, 'GET', path, members['admin of all'] ?? {})).code).toBe('permission_denied')
  const report = dataOf<{ emails: { rows: number }; receivedMessages: { rows: number } }>(
    await ask(service, 'GET', path, members['owner of all'] ?? {}),
  )
  expect(report.emails.rows).toBeGreaterThan(0)
  expect(report.receivedMessages.rows).toBe(1)
  expect((await ask(service, 'GET', '/dashboard/api/tenants/none/privacy-report', members['owner of all'] ?? {})).code).toBe('not_found')
})
