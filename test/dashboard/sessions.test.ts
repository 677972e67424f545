/** Signing in to the dashboard, and the limits of a session: person, network, duration and tenant. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openIds, type Refusal, systemClock, systemRandom } from '#base'
import { sql } from '#db'
import { dropOldFailures, openSessions, resetMember, type Sessions } from '#members'
import { type Service, startService } from '../support/in-process-service.ts'
import { handMovedDurations } from '../support/test-clock.ts'
import { ask, cookieOf, elsewhere, fromOurPages, invite, password, signedIn, useLink } from './signed-in-browser.ts'

const keptPasswords = sql<{ password: string | null; signInHash: Buffer | null }>`
  select password, sign_in_token_hash as "signInHash"
  from members
  where address = $1`

const failuresKept = sql`
  select 1
  from sign_in_failures`

const membersOf = sql`
  select 1
  from members
  where tenant_id = $1`

let service: Service
beforeAll(async () => {
  service = await startService({ rateLimit: null, sendLimit: null, settings: { POSTRIDER_TRUSTED_PROXIES: '127.0.0.0/8' } })
})
afterAll(() => service.stop())

const signIn = (address: string, chosen = password, headers = elsewhere()) =>
  ask(service, 'POST', '/dashboard/api/sign-in', headers, { address, password: chosen })
const limits = (headers: Record<string, string>) => ask(service, 'GET', '/v1/limits', headers)

describe('a sign-in link', () => {
  test('sets the password and signs in, once', async () => {
    const token = await invite(service, 'Once@House.test', 'owner')
    expect((await ask(service, 'POST', '/dashboard/api/sign-in-link', elsewhere(), { token })).data).toEqual({
      address: 'once@house.test',
      needsCode: false,
    })
    const first = await useLink(service, token)
    expect(first).toMatchObject({ status: 200, data: { member: { address: 'once@house.test', role: 'owner', tenantId: null } } })
    expect((await limits({ ...fromOurPages, cookie: cookieOf(first) })).status).toBe(200)
    expect(await useLink(service, token)).toMatchObject({ status: 404, code: 'not_found' })
  })

  test('is refused after 24 hours', async () => {
    const token = await invite(service, 'late@house.test', 'owner', null, Date.now() - 24 * 3_600_000 - 1000)
    expect(await useLink(service, token)).toMatchObject({ status: 404 })
  })

  test('stays good while the password chosen is too weak', async () => {
    const token = await invite(service, 'weak@house.test', 'owner')
    expect(await useLink(service, token, 'short')).toMatchObject({ status: 400, code: 'validation_error' })
    expect(await useLink(service, token, 'weak@house.test')).toMatchObject({ status: 400 })
    expect((await useLink(service, token)).status).toBe(200)
  })
})

describe('a password', () => {
  test('is kept as argon2id only, and signs in', async () => {
    await signedIn(service, 'kept@house.test', 'viewer')
    const [row] = await service.db.rows(keptPasswords, ['kept@house.test'])
    expect(row?.password).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$/)
    expect(row?.signInHash).toBeNull()
    expect((await signIn('KEPT@house.test')).status).toBe(200)
  })

  test('that is wrong is refused in the same words as an unknown address', async () => {
    await signedIn(service, 'words@house.test', 'viewer')
    const [wrong, unknown] = [await signIn('words@house.test', 'not this one'), await signIn('nobody@house.test')]
    expect(wrong).toMatchObject({ status: 401, code: 'authentication_required' })
    const told = ({ text }: { text: string }) => (JSON.parse(text) as { error: object }).error
    expect(told(unknown)).toEqual(told(wrong))
    expect(wrong.headers.get('set-cookie')).toBeNull()
  })

  test('cannot be guessed from one network more than ten times, and the member gets in from another', async () => {
    const clock = { ...systemClock }
    const sessions = openSessions({ db: service.db, clock, ids: openIds(systemRandom), secrets: service.secrets })
    await signedIn(service, 'guessed@house.test', 'viewer')
    const guess = (word: string, network: string) => sessions.signIn({ address: 'guessed@house.test', password: word, network })
    for (let index = 0; index < 10; index++)
      await expect(guess('wrong', '192.0.2.1')).rejects.toMatchObject({ code: 'authentication_required' })
    await expect(guess(password, '192.0.2.1')).rejects.toMatchObject({ code: 'rate_limit_exceeded' })
    await expect(guess(password, '192.0.2.2')).resolves.toMatchObject({ session: { role: 'viewer' } })
    clock.nowMs = () => systemClock.nowMs() + 15 * 60_000
    await expect(guess(password, '192.0.2.1')).resolves.toBeDefined()
  })

  test('can be guessed ten times in all at many processes, of however many guesses at once', async () => {
    const processes = Array.from({ length: 4 }, () =>
      openSessions({ db: service.db, clock: systemClock, ids: openIds(systemRandom), secrets: service.secrets }),
    )
    await signedIn(service, 'many@house.test', 'viewer')
    const guess = (word: string) => (sessions: Sessions) =>
      sessions.signIn({ address: 'many@house.test', password: word, network: '192.0.2.3' })
    const told = await Promise.allSettled([...processes, ...processes, ...processes, ...processes].map(guess('wrong')))
    const codes = told.map((one) => (one.status === 'rejected' ? (one.reason as Refusal).code : 'signed in'))
    expect(codes.filter((code) => code === 'authentication_required')).toHaveLength(10)
    expect(codes.filter((code) => code === 'rate_limit_exceeded')).toHaveLength(6)
    for (const sessions of processes) await expect(guess(password)(sessions)).rejects.toMatchObject({ code: 'rate_limit_exceeded' })
  })

  test('is counted for a quarter of an hour, and then nothing of it is left', async () => {
    // Sign-ins by clocks that are ahead have been counted here.
    await dropOldFailures(service.db, Date.now() + 365 * 86_400_000)
    const sessions = openSessions({ db: service.db, clock: systemClock, ids: openIds(systemRandom), secrets: service.secrets })
    const guess = sessions.signIn({ address: 'left@house.test', password: 'wrong', network: '192.0.2.4' })
    await expect(guess).rejects.toMatchObject({ code: 'authentication_required' })
    expect(await service.db.rows(failuresKept)).not.toEqual([])
    await dropOldFailures(service.db, Date.now() + 15 * 60_000)
    expect(await service.db.rows(failuresKept)).toEqual([])
  })

  test('cannot be tried faster than five times a second from one network', async () => {
    await using still = await startService({ settings: { POSTRIDER_TRUSTED_PROXIES: '127.0.0.0/8' }, clock: handMovedDurations() })
    const [headers, tried] = [elsewhere(), { address: 'nobody@house.test', password: 'wrong' }]
    const attempt = async () => (await ask(still, 'POST', '/dashboard/api/sign-in', headers, tried)).status
    const told = await Promise.all(Array.from({ length: 12 }, attempt))
    expect(told.filter((status) => status === 429)).toHaveLength(7)
  })
})

describe('the cookie', () => {
  test('is out of reach of scripts, other sites and other hosts', async () => {
    await signedIn(service, 'cookie@house.test', 'viewer')
    const set = (await signIn('cookie@house.test')).headers.get('set-cookie') ?? ''
    expect(set).toMatch(/; HttpOnly(;|$)/)
    expect(set).toMatch(/; SameSite=Strict(;|$)/)
    expect(set).not.toMatch(/Domain|Secure/i)
    const https = (await signIn('cookie@house.test', password, { ...elsewhere(), 'x-forwarded-proto': 'https' })).headers
    expect(https.get('set-cookie')).toMatch(/^__Host-postrider=.*; Secure$/)
  })

  test('of the plain name is accepted over http only, because a sibling host can set it', async () => {
    const { cookie = '' } = await signedIn(service, 'plain@house.test', 'owner')
    const secure = cookie.replace(/^postrider=/, '__Host-postrider=')
    const overHttps = { ...fromOurPages, 'x-forwarded-proto': 'https' }
    const member = async (headers: Record<string, string>) =>
      ((await ask(service, 'GET', '/dashboard/api/session', headers)).data as { member: unknown }).member
    expect(await member({ ...fromOurPages, cookie })).toMatchObject({ address: 'plain@house.test' })
    expect(await member({ ...overHttps, cookie })).toBeNull()
    expect(await limits({ ...overHttps, cookie })).toMatchObject({ status: 401 })
    expect(await member({ ...overHttps, cookie: secure })).toMatchObject({ address: 'plain@house.test' })
    expect(await member({ ...overHttps, cookie: `postrider=x; ${secure}` })).toMatchObject({ address: 'plain@house.test' })
    const frame = { 'sec-fetch-site': 'same-origin', 'sec-fetch-dest': 'iframe', 'x-forwarded-proto': 'https' }
    expect((await ask(service, 'GET', '/dashboard/api/emails/x/preview', { ...frame, cookie })).status).toBe(401)
    expect((await ask(service, 'GET', '/dashboard/api/emails/x/preview', { ...frame, cookie: secure })).status).not.toBe(401)
  })

  test.each<[string, Record<string, string>]>([
    ['without the header', { 'sec-fetch-site': 'same-origin' }],
    ['with another value in the header', { 'x-postrider-session': 'true', 'sec-fetch-site': 'same-origin' }],
    ['from another site', { 'x-postrider-session': '1', 'sec-fetch-site': 'cross-site' }],
    ['from a sibling host', { 'x-postrider-session': '1', 'sec-fetch-site': 'same-site' }],
    ['from another origin', { 'x-postrider-session': '1', origin: 'https://evil.example' }],
    [
      'from another origin that says it is ours',
      { 'x-postrider-session': '1', 'sec-fetch-site': 'same-origin', origin: 'https://evil.example' },
    ],
    ['from an opaque origin', { 'x-postrider-session': '1', origin: 'null' }],
    ['from nowhere that is told', { 'x-postrider-session': '1' }],
  ])('is not accepted %s', async (what, headers) => {
    const { cookie = '' } = await signedIn(service, `${what.replaceAll(' ', '-')}@house.test`, 'owner')
    for (const [method, path] of [
      ['GET', '/v1/limits'],
      ['POST', '/v1/suppressions'],
    ] as const)
      expect(await ask(service, method, path, { ...headers, cookie })).toMatchObject({ status: 401, code: 'authentication_required' })
    expect((await ask(service, 'GET', '/dashboard/api/members', { ...headers, cookie })).status).toBe(403)
    const attempt = await ask(
      service,
      'POST',
      '/dashboard/api/sign-in',
      { ...headers, 'x-forwarded-for': '203.0.113.7' },
      { address: 'a@b.test', password },
    )
    expect(attempt).toMatchObject({ status: 403, code: 'permission_denied' })
  })

  test('is accepted by the Origin of its own host where a browser sends no more', async () => {
    const { cookie = '' } = await signedIn(service, 'origin@house.test', 'owner')
    const headers = { cookie, 'x-postrider-session': '1', origin: `http://127.0.0.1:${service.port}` }
    const answer = await limits(headers)
    expect(answer.status).toBe(200)
    expect(answer.headers.get('cache-control')).toBe('no-store')
  })

  test('counts for nothing beside a key', async () => {
    const headers = await signedIn(service, 'beside@house.test', 'owner')
    expect(await limits({ ...headers, authorization: 'Bearer svc_live_x' })).toMatchObject({ status: 401, code: 'invalid_api_key' })
  })
})

describe('a session', () => {
  test('has a rate of its own, 50 a second', async () => {
    await using still = await startService({ settings: { POSTRIDER_TRUSTED_PROXIES: '127.0.0.0/8' }, clock: handMovedDurations() })
    const headers = await signedIn(still, 'rate@house.test', 'viewer')
    const many = await Promise.all(Array.from({ length: 70 }, () => ask(still, 'GET', '/v1/limits', headers)))
    expect(many[0]?.headers.get('x-ratelimit-limit')).toBe('50')
    expect(many.filter(({ status }) => status === 200)).toHaveLength(50)
  })

  test('ends with signing out, with a new link, and after a day without use or seven days', async () => {
    const out = await signedIn(service, 'out@house.test', 'viewer')
    await ask(service, 'POST', '/dashboard/api/sign-out', out)
    expect(await limits(out)).toMatchObject({ status: 401, code: 'authentication_required' })

    const reset = await signedIn(service, 'reset@house.test', 'viewer')
    const facts = { nowMs: Date.now(), ids: openIds(systemRandom) }
    const { signInToken } = await service.db.transaction((tx) => resetMember(tx, 'reset@house.test', null, facts))
    await expect.poll(async () => (await limits(reset)).status).toBe(401)
    expect((await signIn('reset@house.test')).status).toBe(401)
    expect((await useLink(service, signInToken)).status).toBe(200)

    const clock = { ...systemClock }
    const sessions = openSessions({ db: service.db, clock, ids: openIds(systemRandom), secrets: service.secrets })
    const after = (delayMs: number) => {
      clock.nowMs = () => systemClock.nowMs() + delayMs
      clock.monotonicMs = () => systemClock.monotonicMs() + delayMs
    }
    await signedIn(service, 'long@house.test', 'viewer')
    const { token } = await sessions.signIn({ address: 'long@house.test', password, network: '192.0.2.9' })
    const hour = 3_600_000
    for (let passed = 0; passed < 168; passed += 23) {
      after(passed * hour)
      expect(await sessions.find(token)).toMatchObject({ address: 'long@house.test' })
    }
    after(168 * hour + 1000)
    expect(await sessions.find(token)).toBeUndefined()
    after(0)
    const { token: idle } = await sessions.signIn({ address: 'long@house.test', password, network: '192.0.2.9' })
    after(24 * hour + 1000)
    expect(await sessions.find(idle)).toBeUndefined()
  })

  test('does not exist on track domains', async () => {
    const headers = await signedIn(service, 'track@house.test', 'owner')
    await service.addDomain(service.tenantId, 'tracked.test')
    const { domains } = (await ask(service, 'GET', '/v1/domains', headers)).data as { domains: { id: number; name: string }[] }
    const domainId = domains.find(({ name }) => name === 'tracked.test')?.id
    const made = await ask(service, 'POST', '/v1/tracking', headers, { domainId, name: 'click' })
    expect(made.status).toBe(201)
    const there = { ...headers, 'x-forwarded-host': 'click.tracked.test' }
    for (const [method, path] of [
      ['GET', '/v1/limits'],
      ['GET', '/dashboard/api/session'],
      ['POST', '/dashboard/api/sign-in'],
      ['GET', '/'],
    ] as const)
      expect((await ask(service, method, path, there)).status).toBe(404)
  })
})

describe('a role', () => {
  test('viewer reads everything but secrets, and changes nothing', async () => {
    const viewer = await signedIn(service, 'viewer@house.test', 'viewer')
    for (const path of ['/emails', '/credentials', '/domains', '/webhooks', '/logs', '/usage', '/tenants', '/suppressions'])
      expect((await ask(service, 'GET', `/v1${path}`, viewer)).status, path).toBe(200)
    const changes = [
      ['POST', '/suppressions', { address: 'a@b.test' }],
      ['POST', '/credentials', { name: 'k', type: 'api' }],
      ['POST', '/emails', {}],
    ] as const
    for (const [method, path, body] of changes)
      expect(await ask(service, method, `/v1${path}`, viewer, body), path).toMatchObject({ status: 403, code: 'permission_denied' })
    expect(await ask(service, 'GET', '/v1/webhooks/1?reveal=true', viewer)).toMatchObject({ status: 403 })
    expect(await ask(service, 'GET', '/dashboard/api/members', viewer)).toMatchObject({ status: 403, code: 'permission_denied' })
  })

  test('admin changes everything but members', async () => {
    const admin = await signedIn(service, 'admin@house.test', 'admin')
    expect((await ask(service, 'POST', '/v1/suppressions', admin, { address: 'a@b.test' })).status).toBe(201)
    expect((await ask(service, 'POST', '/v1/tenants', admin, { name: 'By an admin' })).status).toBe(201)
    for (const path of ['', '/reset', '/remove'])
      expect(await ask(service, 'POST', `/dashboard/api/members${path}`, admin, { address: 'x@y.test', role: 'owner' })).toMatchObject({
        status: 403,
      })
  })

  test('owner adds, resets and removes members, but not themselves', async () => {
    const owner = await signedIn(service, 'owner@house.test', 'owner')
    const added = await ask(service, 'POST', '/dashboard/api/members', owner, { address: 'new@house.test', role: 'viewer' })
    const { signInUrl } = added.data as { signInUrl: string }
    const invitedUntil = async () =>
      (
        (await ask(service, 'GET', '/dashboard/api/members', owner)).data as { members: { address: string; invitedUntil: string | null }[] }
      ).members.find(({ address }) => address === 'new@house.test')?.invitedUntil
    expect(Date.parse((await invitedUntil()) ?? '') - Date.now()).toBeGreaterThan(23 * 3_600_000)
    const session = await useLink(service, signInUrl.slice(signInUrl.lastIndexOf('/') + 1))
    expect(session.status).toBe(200)
    expect(await invitedUntil()).toBeNull()
    const theirs = { ...fromOurPages, cookie: cookieOf(session) }
    expect((await ask(service, 'POST', '/dashboard/api/members/remove', owner, { address: 'new@house.test' })).status).toBe(200)
    expect((await limits(theirs)).status).toBe(401)
    expect((await ask(service, 'POST', '/dashboard/api/members/remove', owner, { address: 'owner@house.test' })).status).toBe(400)
  })
})

describe('a member of a tenant', () => {
  test('made while the tenant is deleted goes with it, or is not made', async () => {
    const owner = await signedIn(service, 'makes@house.test', 'owner')
    for (let round = 0; round < 8; round++) {
      const tenantId = await service.makeTenant('Vanishing')
      const make = [1, 2, 3].map((n) =>
        ask(service, 'POST', '/dashboard/api/members', owner, { address: `m${n}-${round}@vanishing.test`, role: 'viewer', tenantId }),
      )
      const [made] = await Promise.all([Promise.all(make), service.call('DELETE', `/tenants/${tenantId}`, { key: service.testKey })])
      for (const { status } of made) expect([200, 404]).toContain(status)
      expect(await service.db.rows(membersOf, [tenantId])).toEqual([])
    }
    const tenantId = await service.makeTenant('Archived')
    await service.call('PATCH', `/tenants/${tenantId}`, { key: service.testKey, body: { status: 'archived' } })
    const wanted = { address: 'late@archived.test', role: 'viewer', tenantId }
    expect(await ask(service, 'POST', '/dashboard/api/members', owner, wanted)).toMatchObject({ code: 'tenant_archived' })
    expect(await ask(service, 'POST', '/dashboard/api/members', owner, { ...wanted, tenantId: 'none' })).toMatchObject({ status: 404 })
  })

  test('sees that tenant only, with any name in the request', async () => {
    const other = await service.makeTenant('Other')
    const otherKey = await service.makeKey({ tenantId: other })
    await service.call('POST', '/suppressions', { key: otherKey, body: { address: 'theirs@example.org' } })
    await service.call('POST', '/suppressions', { key: service.testKey, body: { address: 'ours@example.org', tenantId: service.tenantId } })
    const member = await signedIn(service, 'member@other.test', 'owner', other)
    const listed = await ask(service, 'GET', '/v1/suppressions', member)
    expect(listed.text).toContain('theirs@example.org')
    expect(listed.text).not.toContain('ours@example.org')
    expect(await ask(service, 'GET', `/v1/suppressions?tenantId=${service.tenantId}`, member)).toMatchObject({
      status: 403,
      code: 'tenant_mismatch',
    })
    expect((await ask(service, 'GET', '/v1/tenants', member)).status).toBe(403)
    const members = await ask(service, 'GET', '/dashboard/api/members', member)
    expect((members.data as { members: { address: string }[] }).members.map(({ address }) => address)).toEqual(['member@other.test'])
    expect(
      (await ask(service, 'POST', '/dashboard/api/members', member, { address: 'x@y.test', role: 'owner', tenantId: service.tenantId }))
        .status,
    ).toBe(403)
    expect((await ask(service, 'POST', '/dashboard/api/members/reset', member, { address: 'owner@house.test' })).status).toBe(404)
  })

  test("cannot preview another tenant's mail, and is signed out when the tenant goes", async () => {
    const own = await service.makeTenant('Going')
    await service.addDomain(own, 'going.test')
    const key = await service.makeKey({ tenantId: own })
    const send = async (sender: string, from: string) => {
      const answer = await service.call('POST', '/emails', {
        key: sender,
        body: { from, to: ['delivered@simulator.test'], subject: 'A', html: '<p>secret of the mail</p>' },
      })
      return (answer.body.data as { id: string }).id
    }
    const [theirs, ours] = [await send(key, 'a@going.test'), await send(service.testKey, 'a@simulator.test')]
    const member = await signedIn(service, 'member@going.test', 'admin', own)
    const frame = { cookie: member.cookie ?? '', 'sec-fetch-site': 'same-origin', 'sec-fetch-dest': 'iframe' }
    const shown = await ask(service, 'GET', `/dashboard/api/emails/${theirs}/preview`, frame)
    expect(shown.text).toContain('secret of the mail')
    expect(shown.headers.get('content-security-policy')).toMatch(/^sandbox; default-src 'none'/)
    expect((await ask(service, 'GET', `/dashboard/api/emails/${ours}/preview`, frame)).status).toBe(404)
    for (const other of [{ 'sec-fetch-site': 'cross-site' }, { 'sec-fetch-dest': 'document' }])
      expect((await ask(service, 'GET', `/dashboard/api/emails/${theirs}/preview`, { ...frame, ...other })).status).toBe(401)
    expect((await service.call('DELETE', `/tenants/${own}`, { key: service.testKey })).status).toBe(200)
    await expect.poll(async () => (await limits(member)).status).toBe(401)
  })
})

describe('the request log', () => {
  test('keeps the changes of a person, and not the pages that they looked at', async () => {
    const admin = await signedIn(service, 'logged@house.test', 'admin')
    await ask(service, 'GET', '/v1/suppressions', admin)
    await ask(service, 'POST', '/v1/suppressions', admin, { address: 'logged@example.org' })
    const logged = async () =>
      ((await ask(service, 'GET', '/v1/logs?perPage=100', admin)).data as { method: string; credential: { keyPrefix: string } }[]).filter(
        ({ credential }) => credential.keyPrefix === 'session',
      )
    await expect.poll(async () => (await logged()).length).toBeGreaterThan(0)
    expect((await logged()).every(({ method }) => method !== 'GET')).toBe(true)
  })
})
