/** Links that are requested on demand: the meaning of each answer, the links that are never requested, and the limits in number and time. */
import ipaddr from 'ipaddr.js'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type Clock, type Network, systemClock } from '#base'
import { type LinkChecks, maxCheckedLinks, openLinkChecks } from '#message-checks'
import { openGuard, openPost, openResolver } from '#net'
import { ask, signedIn } from '../dashboard/signed-in-browser.ts'
import { type Service, startService } from '../support/in-process-service.ts'
import { type Receiver, startReceiver } from '../support/webhook-receiver.ts'

const loopback: Network[] = [ipaddr.parseCIDR('127.0.0.0/8')]
/** Time limits pass fifty times as fast. */
const speed = 50
const fastClock: Clock = {
  ...systemClock,
  monotonicMs: () => systemClock.monotonicMs() * speed,
  after: (delayMs, action) => systemClock.after(delayMs / speed, action),
}

function checks(openedNetworks = loopback, clock: Clock = systemClock): LinkChecks {
  const resolver = openResolver({ servers: ['127.0.0.1:9'], clock, ids: { random: Math.random } })
  const { get } = openPost({ resolver, guard: openGuard(openedNetworks), openedNetworks, clock, allowsPlain: true })
  return openLinkChecks({ get, clock })
}

const statuses: Record<string, number> = { '/moved': 301, '/gone': 410, '/missing': 404, '/login': 403, '/fails': 500, '/no-head': 405 }
let receiver: Receiver
beforeAll(async () => {
  receiver = await startReceiver()
})
beforeEach(() => {
  receiver.forget()
  receiver.answer = (response, { path, method }) => {
    response.statusCode = path === '/no-head' && method === 'GET' ? 200 : (statuses[path] ?? 200)
    response.end('a page')
  }
})
afterAll(() => receiver[Symbol.asyncDispose]())

const stateOf = async (url: string, of = checks()) => {
  const [one] = await of.check('tenant', [url])
  return [one?.state, one?.statusCode]
}

describe('a link', () => {
  test.each([
    ['/fine', 'works', 200],
    ['/moved', 'works', 301],
    ['/no-head', 'works', 200],
    ['/login', 'refuses', 403],
    ['/gone', 'broken', 410],
    ['/missing', 'broken', 404],
    ['/fails', 'broken', 500],
  ])('to %s %s with status %i', async (path, state, status) => {
    expect(await stateOf(`${receiver.url}${path}`)).toEqual([state, status])
  })

  test('is asked for with HEAD, without credentials, and with GET only if HEAD is not answered well', async () => {
    await checks().check('tenant', [`${receiver.url}/fine?a=1`, `${receiver.url}/missing`])
    const asked = receiver.received.map(({ method, path }) => `${method} ${path}`)
    expect(asked.toSorted()).toEqual(['GET /missing', 'HEAD /fine?a=1', 'HEAD /missing'])
    for (const { headers } of receiver.received) {
      expect(headers).toMatchObject({ 'user-agent': 'Postrider link check', connection: 'close' })
      expect(headers).not.toHaveProperty('authorization')
      expect(headers).not.toHaveProperty('cookie')
    }
  })

  test('is not followed to where it redirects', async () => {
    receiver.answer = (response) => response.writeHead(302, { location: `${receiver.url}/inside` }).end()
    expect(await stateOf(`${receiver.url}/out`)).toEqual(['works', 302])
    expect(receiver.received.map(({ path }) => path)).toEqual(['/out'])
  })

  test.each([
    ['a private network', 'http://10.0.0.1/'],
    ['the metadata service', 'http://169.254.169.254/latest/meta-data'],
    ['a user with a password', 'https://user:pass@192.0.2.1/'],
    ['a mailbox', 'mailto:ann@example.org'],
    ['a file', 'file:///etc/passwd'],
  ])('to %s is not requested', async (_, url) => {
    expect(await stateOf(url)).toEqual(['unchecked', null])
  })

  test('to this machine is not requested unless the operator opened the network', async () => {
    expect(await stateOf(`${receiver.url}/fine`, checks([]))).toEqual(['unchecked', null])
    expect(receiver.received).toEqual([])
  })

  test('to a server that is silent is broken after five seconds, in all', async () => {
    receiver.answer = () => undefined
    const startedMs = fastClock.monotonicMs()
    expect(await stateOf(`${receiver.url}/silent`, checks(loopback, fastClock))).toEqual(['broken', null])
    expect(fastClock.monotonicMs() - startedMs).toBeGreaterThan(4900)
    // On a busy machine the time may pass before the request arrives.
    expect(receiver.received.length).toBeLessThanOrEqual(1)
  })

  test('to a closed port is broken', async () => {
    expect(await stateOf('http://127.0.0.1:1/')).toEqual(['broken', null])
  })
})

describe('the links of one message', () => {
  test('are requested up to fifty, ten at a time, and reported in their order', async () => {
    let open = 0
    let most = 0
    receiver.answer = (response) => {
      most = Math.max(most, ++open)
      setImmediate(() => {
        open--
        response.end()
      })
    }
    const links = Array.from({ length: maxCheckedLinks + 5 }, (_, n) => `${receiver.url}/${n}`)
    const checked = await checks().check('tenant', links)
    expect(checked.map(({ url }) => url)).toEqual(links)
    expect(checked.map(({ state }) => state)).toEqual([...Array(maxCheckedLinks).fill('works'), ...Array(5).fill('unchecked')])
    expect(receiver.received).toHaveLength(maxCheckedLinks)
    expect(most).toBeLessThanOrEqual(10)
  })

  test('are refused while links of the same tenant are requested, and taken again afterwards', async () => {
    const held: (() => void)[] = []
    let isHolding = true
    receiver.answer = (response) => (isHolding ? held.push(() => response.end()) : response.end())
    const one = checks()
    const first = one.check('a', [`${receiver.url}/held`])
    await expect(one.check('a', [`${receiver.url}/second`])).rejects.toMatchObject({ code: 'rate_limit_exceeded', retryAfterSeconds: 5 })
    const others = ['b', 'c', 'd'].map((tenant) => one.check(tenant, [`${receiver.url}/${tenant}`]))
    await expect(one.check('e', [`${receiver.url}/e`])).rejects.toMatchObject({ code: 'rate_limit_exceeded' })
    await expect.poll(() => held.length).toBe(4)
    isHolding = false
    for (const release of held) release()
    await Promise.all([first, ...others])
    expect((await one.check('a', [`${receiver.url}/third`]))[0]?.state).toBe('works')
  })
})

describe('in the service', () => {
  let service: Service
  beforeAll(async () => {
    service = await startService({
      rateLimit: null,
      roles: ['delivery'],
      settings: { POSTRIDER_ALLOWED_NETWORKS: '127.0.0.0/8', POSTRIDER_TRUSTED_PROXIES: '127.0.0.0/8' },
    })
  })
  afterAll(() => service.stop())

  const message = () => ({
    from: 'shop@simulator.test',
    subject: 'Your order',
    html: `<p>Thank you. <a href="${receiver.url}/fine">Order</a> <a href="${receiver.url}/missing">Terms</a></p>`,
    text: 'Thank you.',
  })

  test('POST /emails/check requests the links only with links: true', async () => {
    const without = await service.call('POST', '/emails/check', { key: service.testKey, body: message() })
    expect(without.body.data).not.toHaveProperty('links')
    expect(receiver.received).toEqual([])
    const answer = await service.call('POST', '/emails/check', { key: service.testKey, body: { ...message(), links: true } })
    expect(answer.status, answer.text).toBe(200)
    const { links, findings } = answer.body.data as { links: { state: string }[]; findings: { check: string; message: string }[] }
    expect(links.map(({ state }) => state)).toEqual(['works', 'broken'])
    expect(findings.find(({ check }) => check === 'link-targets')?.message).toBe(`1 link is broken: ${receiver.url}/missing`)
  })

  test('a member sees the findings of a stored email, and only one who may change data has its links requested', async () => {
    const body = { ...message(), to: ['delivered@simulator.test'] }
    const { id } = (await service.call('POST', '/emails', { key: service.testKey, body })).body.data as { id: string }
    const viewer = await signedIn(service, 'viewer@house.test', 'viewer')
    const admin = await signedIn(service, 'admin@house.test', 'admin')
    const tenantId = await service.makeTenant('Other')
    const stranger = await signedIn(service, 'stranger@house.test', 'admin', tenantId)
    const path = `/dashboard/api/emails/${id}`
    const { findings } = (await ask(service, 'GET', `${path}/findings`, viewer)).data as { findings: { check: string }[] }
    expect(findings.map(({ check }) => check)).toEqual(expect.arrayContaining(['authentication', 'size', 'links', 'words', 'dark-mode']))
    expect((await ask(service, 'GET', `${path}/findings`, stranger)).code).toBe('not_found')
    expect((await ask(service, 'POST', `${path}/check-links`, viewer, {})).code).toBe('permission_denied')
    expect((await ask(service, 'POST', `${path}/check-links`, stranger, {})).code).toBe('not_found')
    expect(receiver.received).toEqual([])
    const { links } = (await ask(service, 'POST', `${path}/check-links`, admin, {})).data as { links: { state: string }[] }
    expect(links.map(({ state }) => state)).toEqual(['works', 'broken'])
    const owner = await signedIn(service, 'owner@house.test', 'owner')
    const audit = (await ask(service, 'GET', '/dashboard/api/audit?action=emails.check-links', owner)).data as unknown as {
      actor: { name: string }
      data: object
    }[]
    expect(audit).toMatchObject([{ actor: { name: 'admin@house.test' }, data: { emailId: id, links: 2 } }])
  })
})
