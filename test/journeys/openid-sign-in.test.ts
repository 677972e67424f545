/** Sign-in with a real identity provider (OpenID Connect), through the endpoints that a browser uses. */
import { createServer } from 'node:http'
import { pipeline, Readable } from 'node:stream'
import { type TOTP, URI } from 'otpauth'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { systemClock } from '#base'
import {
  ask,
  cookieOf,
  elsewhere,
  fromElsewhere,
  fromOurPages,
  invite,
  password,
  type Reply,
  signedIn,
  useLink,
} from '../dashboard/signed-in-browser.ts'
import { type Service, startService } from '../support/in-process-service.ts'
import { type OpenIdProvider, startOpenIdProvider } from '../support/openid-provider.ts'

const publicUrl = 'http://dashboard.test'
const redirectUri = `${publicUrl}/sign-in/openid`
const common = { POSTRIDER_TRUSTED_PROXIES: '127.0.0.0/8', POSTRIDER_PUBLIC_URL: publicUrl }
const roleSettings = {
  POSTRIDER_OIDC_SCOPE: 'openid email groups',
  POSTRIDER_OIDC_ROLE_CLAIM: 'groups',
  POSTRIDER_OIDC_ROLES: 'owner=mail-owners,viewer=staff',
  POSTRIDER_PASSWORD_SIGN_IN: 'off',
  POSTRIDER_OIDC_NAME: 'Example login',
}

let aheadMs = 0
const clock = { ...systemClock, nowMs: () => systemClock.nowMs() + aheadMs }
let provider: OpenIdProvider
/** Without roles at the identity provider. */
let service: Service
/** With roles at the identity provider, and without passwords. */
let strict: Service
beforeAll(async () => {
  provider = await startOpenIdProvider({ redirectUri })
  service = await startService({ clock, settings: { ...common, ...provider.settings } })
  strict = await startService({ settings: { ...common, ...provider.settings, ...roleSettings } })
})
beforeEach(() => {
  aheadMs = 0
})
afterAll(async () => {
  await Promise.all([service.stop(), strict.stop()])
  await provider[Symbol.asyncDispose]()
})

interface Begun {
  url: string
  cookie: string
}

async function begin(on = service): Promise<Begun> {
  const reply = await ask(on, 'POST', '/dashboard/api/openid/begin', elsewhere())
  expect(reply.status, reply.text).toBe(200)
  return { url: (reply.data as { url: string }).url, cookie: cookieOf(reply) }
}

/** The identity provider's link back, in the browser with this cookie. */
const comeBack = (query: string, cookie: string, on = service) =>
  ask(on, 'GET', `/sign-in/openid?${query}`, { ...fromElsewhere(), cookie, 'sec-fetch-site': 'cross-site' })

async function signIn(subject: string, on = service): Promise<Reply> {
  provider.next = subject
  const { url, cookie } = await begin(on)
  return comeBack(await provider.visit(url), cookie, on)
}

const sessionIn = ({ headers }: Reply) => /(?:^|, )(postrider=\w{43});/.exec(headers.get('set-cookie') ?? '')?.[1]
const asMember = (reply: Reply) => ({ ...fromOurPages, cookie: sessionIn(reply) ?? 'none' })

async function memberOf(reply: Reply, on = service) {
  expect([reply.status, reply.headers.get('location')], reply.text).toEqual([303, '/'])
  const { data } = await ask(on, 'GET', '/dashboard/api/session', asMember(reply))
  return (data as { member: object | null }).member
}

function expectRefused(reply: Reply, status: number, words: string) {
  expect([reply.status, sessionIn(reply)], reply.text).toEqual([status, undefined])
  expect(reply.text).toContain('<h1>Sign-in failed</h1>')
  expect(reply.text).toContain(words)
  expect(reply.headers.get('content-security-policy')).toContain("default-src 'none'")
}

interface Entry {
  action: string
  data: object
}
const auditOf = async (headers: Record<string, string>, on = service) =>
  (await ask(on, 'GET', '/dashboard/api/audit', headers)).data as Entry[]

describe('without roles at the identity provider', () => {
  test('a member signs in with the account of the verified address, which alone counts from then on', async () => {
    await invite(service, 'ann@house.test', 'owner')
    provider.accounts.set('ann', { email: 'Ann@House.test', email_verified: true })
    const first = await signIn('ann')
    expect(await memberOf(first)).toEqual({ address: 'ann@house.test', role: 'owner', tenantId: null })
    expect((await ask(service, 'GET', '/v1/limits', asMember(first))).status).toBe(200)
    provider.accounts.set('ann', { email: 'other@house.test', email_verified: false })
    const second = await signIn('ann')
    expect(await memberOf(second)).toMatchObject({ address: 'ann@house.test' })
    const entries = await auditOf(asMember(second))
    expect(entries.map(({ action, data }) => [action, data])).toEqual([
      ['sessions.begin', { by: 'openid' }],
      ['sessions.begin', { by: 'openid' }],
      ['members.bind-account', { issuer: `${provider.issuer}/` }],
    ])
    await ask(service, 'POST', '/dashboard/api/sign-out', asMember(second))
    expect((await ask(service, 'GET', '/v1/limits', asMember(second))).status).toBe(401)
  })

  test('an account of another person does not sign in as the member', async () => {
    const link = await invite(service, 'bea@house.test', 'owner')
    provider.accounts.set('typed', { email: 'bea@house.test', email_verified: false })
    expectRefused(await signIn('typed'), 403, 'has not verified an email address')
    provider.accounts.set('silent', { email: 'bea@house.test' })
    expectRefused(await signIn('silent'), 403, 'has not verified an email address')
    provider.accounts.set('stranger', { email: 'stranger@house.test', email_verified: true })
    expectRefused(await signIn('stranger'), 403, 'stranger@house.test does not belong to a member of the organisation')
    // The link still works: no refused sign-in changed the member.
    expect((await useLink(service, link)).status).toBe(200)
    provider.accounts.set('bea', { email: 'bea@house.test', email_verified: true })
    expect(await memberOf(await signIn('bea'))).toMatchObject({ address: 'bea@house.test' })
    provider.accounts.set('reused', { email: 'bea@house.test', email_verified: true })
    expectRefused(await signIn('reused'), 403, 'signs in with another account')
  })

  test('a reset removes the account from the member', async () => {
    const owner = await signedIn(service, 'resetter@house.test', 'owner')
    await invite(service, 'moved@house.test', 'viewer')
    for (const subject of ['moved-1', 'moved-2']) provider.accounts.set(subject, { email: 'moved@house.test', email_verified: true })
    const before = await signIn('moved-1')
    expect((await ask(service, 'POST', '/dashboard/api/members/reset', owner, { address: 'moved@house.test' })).status).toBe(200)
    await expect.poll(async () => (await ask(service, 'GET', '/v1/limits', asMember(before))).status).toBe(401)
    expect(await memberOf(await signIn('moved-2'))).toMatchObject({ address: 'moved@house.test' })
    expectRefused(await signIn('moved-1'), 403, 'signs in with another account')
  })

  test('a member of a tenant is not signed in', async () => {
    await invite(service, 'tenant@house.test', 'owner', service.tenantId)
    provider.accounts.set('tenant', { email: 'tenant@house.test', email_verified: true })
    expectRefused(await signIn('tenant'), 403, 'does not belong to a member of the organisation')
  })

  test('of many first sign-ins at once each finds the same member', async () => {
    await invite(service, 'many@house.test', 'viewer')
    provider.accounts.set('many', { email: 'many@house.test', email_verified: true })
    provider.next = 'many'
    const begun = await Promise.all(Array.from({ length: 4 }, () => begin()))
    const queries = await Promise.all(begun.map(({ url }) => provider.visit(url)))
    const replies = await Promise.all(begun.map(({ cookie }, at) => comeBack(queries[at] ?? '', cookie)))
    for (const reply of replies) expect(await memberOf(reply)).toMatchObject({ address: 'many@house.test' })
  })
})

describe('with roles at the identity provider', () => {
  test('the role is that of the claim at each sign-in, and a person with a role becomes a member', async () => {
    provider.accounts.set('new', { email: 'new@house.test', email_verified: true, groups: ['staff', 'mail-owners', 'others'] })
    const first = await signIn('new', strict)
    expect(await memberOf(first, strict)).toEqual({ address: 'new@house.test', role: 'owner', tenantId: null })
    const entries = await auditOf(asMember(first), strict)
    expect(entries.map(({ action }) => action)).toEqual(['sessions.begin', 'members.bind-account', 'members.add'])
    provider.accounts.set('new', { email: 'new@house.test', email_verified: true, groups: ['staff'] })
    expect(await memberOf(await signIn('new', strict), strict)).toMatchObject({ role: 'viewer' })
    // The session that began as owner, too.
    await expect.poll(async () => (await ask(strict, 'GET', '/dashboard/api/audit', asMember(first))).status).toBe(403)
  })

  test.each([[{ groups: ['others'] }], [{ groups: [] }], [{}]])('an account without a role is refused: %j', async (more) => {
    await invite(strict, `none-${JSON.stringify(more).length}@house.test`, 'owner')
    provider.accounts.set('none', { email: `none-${JSON.stringify(more).length}@house.test`, email_verified: true, ...more })
    expectRefused(await signIn('none', strict), 403, 'has no role in Postrider')
  })

  test('passwords and links of the organisation are refused, and those of tenants go on', async () => {
    const link = await invite(strict, 'link@house.test', 'owner')
    const refused = await useLink(strict, link)
    expect([refused.status, refused.code]).toEqual([403, 'permission_denied'])
    const tried = (address: string) => ask(strict, 'POST', '/dashboard/api/sign-in', elsewhere(), { address, password })
    await signedIn(strict, 'both@house.test', 'owner', strict.tenantId)
    expect(await tried('both@house.test')).toMatchObject({ status: 200, data: { member: { tenantId: strict.tenantId } } })
    expect(await tried('link@house.test')).toMatchObject({ status: 401 })
  })

  test('the sign-in page gets the name of the identity provider', async () => {
    const nameOf = async (on: Service) => (await ask(on, 'GET', '/dashboard/api/openid', fromOurPages)).data as object
    expect([await nameOf(strict), await nameOf(service)]).toEqual([{ name: 'Example login' }, { name: '127.0.0.1' }])
  })
})

describe('a return that is not the one of this sign-in', () => {
  beforeAll(async () => {
    await invite(service, 'eve@house.test', 'owner')
    provider.accounts.set('eve', { email: 'eve@house.test', email_verified: true })
  })
  beforeEach(() => {
    provider.next = 'eve'
  })

  test('is refused the second time', async () => {
    const { url, cookie } = await begin()
    const query = await provider.visit(url)
    expect(await memberOf(await comeBack(query, cookie))).toMatchObject({ address: 'eve@house.test' })
    expectRefused(await comeBack(query, cookie), 401, 'This sign-in was already used.')
  })

  test('is accepted once, of two at the same time', async () => {
    const { url, cookie } = await begin()
    const query = await provider.visit(url)
    const replies = await Promise.all([comeBack(query, cookie), comeBack(query, cookie)])
    expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([303, 401]))
  })

  test('is refused in another browser, for another sign-in, with a changed ticket, and after ten minutes', async () => {
    const [mine, other] = [await begin(), await begin()]
    const query = await provider.visit(mine.url)
    expectRefused(await comeBack(query, ''), 401, 'began in another browser')
    expectRefused(await comeBack(query, other.cookie), 401, 'belongs to another page')
    const changed = mine.cookie.slice(0, -2) + (mine.cookie.endsWith('AA') ? 'BB' : 'AA')
    expectRefused(await comeBack(query, changed), 401, 'began in another browser')
    aheadMs = 600_000
    expectRefused(await comeBack(query, mine.cookie), 401, 'took longer than ten minutes')
  })

  test('is refused with another nonce or code verifier', async () => {
    const changed = async (name: string, value: string) => {
      const { url, cookie } = await begin()
      const asked = new URL(url)
      asked.searchParams.set(name, value)
      return comeBack(await provider.visit(asked.href), cookie)
    }
    expectRefused(await changed('nonce', 'another'), 401, 'response was not accepted')
    expectRefused(
      await changed('code_challenge', 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM'),
      401,
      'has expired or was already used at the identity provider',
    )
  })

  test('is refused with an expired code', async () => {
    const { url, cookie } = await begin()
    const query = await provider.visit(url)
    await provider.expire(new URLSearchParams(query).get('code') ?? '')
    expectRefused(await comeBack(query, cookie), 401, 'has expired or was already used at the identity provider')
  })

  test('is refused from another issuer, and from none', async () => {
    const { url, cookie } = await begin()
    const query = new URLSearchParams(await provider.visit(url))
    expect(query.get('iss')).toBe(provider.issuer)
    query.set('iss', 'https://login.example.com')
    expectRefused(await comeBack(String(query), cookie), 401, 'response was not accepted')
    const again = await begin()
    const bare = new URLSearchParams(await provider.visit(again.url))
    bare.delete('iss')
    expectRefused(await comeBack(String(bare), again.cookie), 401, 'response was not accepted')
  })

  test('shows that the person refused at the identity provider', async () => {
    provider.next = undefined
    const { url, cookie } = await begin()
    expectRefused(await comeBack(await provider.visit(url), cookie), 401, '(access_denied)')
  })
})

test('the identity provider stands in for the second factor', async () => {
  const headers = await signedIn(service, 'factor@house.test', 'viewer')
  const begun = await ask(service, 'POST', '/dashboard/api/second-factor/begin', { ...headers, ...fromElsewhere() }, { password })
  const app = URI.parse((begun.data as { uri: string }).uri) as TOTP
  const confirmed = await ask(
    service,
    'POST',
    '/dashboard/api/second-factor/confirm',
    { ...headers, ...fromElsewhere() },
    { code: app.generate() },
  )
  expect(confirmed.status).toBe(200)
  provider.accounts.set('factor', { email: 'factor@house.test', email_verified: true })
  expect(await memberOf(await signIn('factor'))).toMatchObject({ address: 'factor@house.test' })
})

test('the ticket of a sign-in is out of reach of scripts, and only pages of the dashboard begin one', async () => {
  const reply = await ask(service, 'POST', '/dashboard/api/openid/begin', elsewhere())
  expect(reply.headers.get('set-cookie')).toMatch(/^postrider-openid=[\w-]+; Path=\/; Max-Age=600; HttpOnly; SameSite=Lax$/)
  expect(reply.text).not.toContain(cookieOf(reply).split('=')[1])
  expect((await ask(service, 'POST', '/dashboard/api/openid/begin', { 'sec-fetch-site': 'cross-site' })).status).toBe(403)
})

function* endless() {
  for (;;) yield 'x'.repeat(65_536)
}

test('an identity provider that fails is reported, and passwords go on', async () => {
  const hostile = createServer((_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' })
    pipeline(Readable.from(endless()), response, () => undefined)
  })
  await new Promise<void>((resolve) => hostile.listen(0, '127.0.0.1', resolve))
  const address = hostile.address()
  const issuer = `http://127.0.0.1:${typeof address === 'object' && address ? address.port : 0}`
  await using other = await startService({ settings: { ...common, ...provider.settings, POSTRIDER_OIDC_ISSUER: issuer } })
  const beginThere = async () => {
    const { status, text } = await ask(other, 'POST', '/dashboard/api/openid/begin', elsewhere())
    return [status, (JSON.parse(text) as { error: { message: string } }).error.message]
  }
  const silent = [401, 'the identity provider 127.0.0.1 does not respond']
  // Its response has no end; later, it refuses connections.
  expect(await beginThere()).toEqual(silent)
  hostile.closeAllConnections()
  await new Promise((resolve) => hostile.close(resolve))
  expect(await beginThere()).toEqual(silent)
  const member = await signedIn(other, 'still@house.test', 'viewer')
  expect((await ask(other, 'GET', '/v1/limits', member)).status).toBe(200)
})
