/** Two tenants with the same data: through no endpoint does one learn or change anything of the other. */
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { type Endpoint, pathsOf, routes } from '#http'
import { txtResolver } from '../support/authentication-samples.ts'
import { type Answer, type Service, startService } from '../support/in-process-service.ts'
import { greetedClient, sendIncoming } from '../support/send-incoming.ts'
import { goodBodies } from './valid-bodies.ts'

interface Filled {
  tenantId: string
  key: string
  word: string
  /** Keyed by the name of the path parameter. */
  ids: Record<string, string>
}

let service: Service
let mine: Filled
let theirs: Filled
beforeAll(async () => {
  service = await startService({
    rateLimit: null,
    roles: ['delivery', 'housekeeping', 'inbound'],
    receiving: { resolver: txtResolver(new Map()) },
    settings: { POSTRIDER_ALLOWED_NETWORKS: '127.0.0.0/8' },
  })
  mine = await fill('alpha')
  theirs = await fill('bravo')
})
afterAll(() => service.stop())

const idIn = (answer: Answer) => {
  if (answer.status >= 300) throw new Error(answer.text)
  return String((answer.body.data as { id: string | number }).id)
}

async function fill(word: string): Promise<Filled> {
  const tenantId = await service.makeTenant(`tenant ${word}`)
  const key = await service.makeKey({ tenantId })
  const post = (path: string, body: object) => service.call('POST', path, { key, body })
  await service.addDomain(tenantId, `${word}.example`)
  const domains = (await service.call('GET', '/domains', { key })).body.data as { domains: { id: number }[] }
  const domainId = domains.domains[0]?.id
  const emailId = idIn(
    await post('/emails', { from: `a@${word}.example`, to: [`delivered+${word}@simulator.test`], subject: word, text: word, tag: word }),
  )
  const read = async () => (await service.call('GET', `/emails/${emailId}`, { key })).body.data as { status: string }
  await vi.waitFor(async () => expect((await read()).status).toBe('sent'), { timeout: 10_000, interval: 50 })
  const logs = async () => (await service.call('GET', '/logs', { key })).body.data as { requestId: string }[]
  await vi.waitFor(async () => expect((await logs()).length).toBeGreaterThan(2), { timeout: 10_000, interval: 100 })
  const suppressed = `${word}@suppressed.example`
  await post('/suppressions', { address: suppressed, reason: word })
  const webhookId = idIn(await post('/webhooks', { name: word, url: `https://${word}.example/hook`, events: ['MessageSent'] }))
  const routeId = idIn(await post('/routes', { address: `in@${word}.example` }))
  await using client = await greetedClient(service.ports.smtp)
  const octets = `From: a@${word}.example\r\nSubject: ${word}\r\n\r\n${word}`
  expect(await sendIncoming(client, { to: [`in@${word}.example`], octets })).toMatch(/^250/)
  const received = (await service.call('GET', '/received', { key })).body.data as { id: string }[]
  return {
    tenantId,
    key,
    word,
    ids: {
      tenantId,
      emailId,
      credentialId: idIn(await post(`/tenants/${tenantId}/credentials`, { name: word, type: 'smtp' })),
      domainId: String(domainId),
      trackingId: idIn(await post('/tracking', { domainId, name: word })),
      email: suppressed,
      webhookId,
      deliveryId: '5b0f4a7e-2c1d-4a7a-8f55-6f0a1b8f7d21',
      requestId: (await logs())[0]?.requestId ?? '',
      routeId,
      receivedId: received[0]?.id ?? '',
    },
  }
}

/** Ids of the same form that do not exist. */
const nobody: Record<string, string> = {
  emailId: '0'.repeat(22),
  credentialId: '987654321',
  domainId: '987654321',
  trackingId: '987654321',
  email: 'nobody@suppressed.example',
  webhookId: '987654321',
  deliveryId: '00000000-2c1d-4a7a-8f55-6f0a1b8f7d21',
  requestId: `req_${'0'.repeat(20)}`,
  routeId: `route_${'0'.repeat(20)}`,
  receivedId: '0'.repeat(22),
}

const withIds = routes.flatMap((endpoint) =>
  pathsOf(endpoint)
    .filter((path) => /\{(?!tenantId)\w+\}/.test(path))
    .map((path) => [`${endpoint.method} ${path}`, endpoint, path] as const),
)

const fillIn = (path: string, ids: Record<string, string>, tenantId: string) =>
  path.replace(/\{(\w+)\}/g, (_, name: string) => (name === 'tenantId' ? tenantId : encodeURIComponent(ids[name] ?? '')))

const ask = (endpoint: Endpoint, path: string, key: string) =>
  service.call(endpoint.method, path, { key, ...(endpoint.body ? { body: goodBodies[endpoint.name]?.body(1) ?? {} } : {}) })

/** Removes the requested address: the caller's own request log repeats it as written in the path. */
const withoutQuestion = (text: string, address: string) => text.replaceAll(address, '').replaceAll(encodeURIComponent(address), '')

/** The response text without values that differ on every call or were in the question. */
const said = (answer: Answer, ids: Record<string, string>) =>
  Object.values(ids).reduce((text, id) => text.replaceAll(id, '(id)'), answer.text.replace(/req_\w+/g, '(request)'))

describe.each(withIds)('%s', (_, endpoint, path) => {
  test('answers the same for an object of another tenant and for one that does not exist', async () => {
    const [foreign, absent] = [
      await ask(endpoint, fillIn(path, theirs.ids, mine.tenantId), mine.key),
      await ask(endpoint, fillIn(path, nobody, mine.tenantId), mine.key),
    ]
    expect(foreign.status).toBe(absent.status)
    expect(said(foreign, theirs.ids)).toBe(said(absent, nobody))
    expect(withoutQuestion(foreign.text, theirs.ids.email ?? '')).not.toContain(theirs.word)
  })
})

const lists = routes.filter(({ method, path, scope }) => method === 'GET' && !/\{(?!tenantId)\w+\}/.test(path) && scope !== 'organisation')

describe.each(lists.flatMap((endpoint) => pathsOf(endpoint).map((path) => [path, endpoint] as const)))('GET %s', (path, endpoint) => {
  test('shows nothing of another tenant', async () => {
    if (endpoint.scope === 'organisation, or the tenant in the path' && !path.startsWith('/tenants/')) return
    const answer = await service.call('GET', path.replace('{tenantId}', mine.tenantId), { key: mine.key })
    expect(answer.status).toBe(200)
    expect(withoutQuestion(answer.text, theirs.ids.email ?? '')).not.toContain(theirs.word)
    expect(answer.text).not.toContain(theirs.tenantId)
  })
})

test('the attempts of one tenant have changed nothing of the other', async () => {
  const { key, ids, word } = theirs
  const read = async (path: string) => (await service.call('GET', path, { key })).body.data
  expect(await read(`/emails/${ids.emailId}`)).toMatchObject({ status: 'sent', subject: word })
  expect(await read(`/tenants/${ids.tenantId}/credentials/${ids.credentialId}`)).toMatchObject({ name: word, hold: false })
  expect(await read(`/domains/${ids.domainId}`)).toMatchObject({ name: `${word}.example` })
  expect(await read(`/tracking/${ids.trackingId}`)).toMatchObject({ name: word, trackOpens: true })
  expect(await read(`/suppressions/${ids.email}`)).toMatchObject({ suppressed: true, reason: word })
  expect(await read(`/webhooks/${ids.webhookId}`)).toMatchObject({ name: word, enabled: true })
})
