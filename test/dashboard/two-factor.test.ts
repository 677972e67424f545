/**
 * Two-factor authentication: the codes that sign in and those that do not, and the permission to reset it. Codes come from an independent
 * library.
 */
import { type TOTP, URI } from 'otpauth'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openIds, systemClock, systemRandom } from '#base'
import { sql } from '#db'
import { dropOldAudit, listAudit, openSessions, recordAction } from '#members'
import { type Service, startService } from '../support/in-process-service.ts'
import { ask, cookieOf, elsewhere, fromOurPages, invite, password, signedIn, useLink } from './signed-in-browser.ts'

const kept = sql<{ secret: Buffer; codes: Buffer[] }>`
  select totp_secret as secret, array(select code_hash from recovery_codes where member_id = members.id) as codes
  from members
  where address = $1`

let service: Service
beforeAll(async () => {
  service = await startService({ rateLimit: null, sendLimit: null, settings: { POSTRIDER_TRUSTED_PROXIES: '127.0.0.0/8' } })
})
afterAll(() => service.stop())

const post = (path: string, headers: Record<string, string>, body: object) =>
  ask(service, 'POST', `/dashboard/api${path}`, { ...elsewhere(), ...headers }, body)
const signIn = (address: string, code?: string) => post('/sign-in', {}, { address, password, ...(code === undefined ? {} : { code }) })
const session = ({ headers }: { headers: Headers }) => ({ ...fromOurPages, cookie: cookieOf({ headers }) })
const isIn = async (headers: Record<string, string>) => (await ask(service, 'GET', '/v1/limits', headers)).status === 200
/** The app's code of the next time step: it is accepted already and was not used for enrolling. */
const codeOf = (app: TOTP, steps = 1) => app.generate({ timestamp: Date.now() + steps * 30_000 })
const wrongOf = (app: TOTP) =>
  ['000000', '111111', '222222', '333333', '444444'].find((one) => app.validate({ token: one, window: 2 }) === null) ?? ''

async function enrol(headers: Record<string, string>): Promise<{ app: TOTP; recoveryCodes: string[] }> {
  const begun = await post('/second-factor/begin', headers, { password })
  expect(begun.status, begun.text).toBe(200)
  const { uri, secret } = begun.data as { uri: string; secret: string }
  const app = URI.parse(uri) as TOTP
  expect(app.secret.base32).toBe(secret)
  const confirmed = await post('/second-factor/confirm', headers, { code: codeOf(app, 0) })
  expect(confirmed.status, confirmed.text).toBe(200)
  return { app, recoveryCodes: (confirmed.data as { recoveryCodes: string[] }).recoveryCodes }
}

describe('a second factor', () => {
  test('is asked for once it was confirmed, and signs in with a code of the app, each code once', async () => {
    const first = await signedIn(service, 'app@house.test', 'owner')
    const second = session(await signIn('app@house.test'))
    const { app, recoveryCodes } = await enrol(first)
    expect(recoveryCodes).toHaveLength(10)
    expect(await isIn(first)).toBe(true)
    expect(await isIn(second), 'a session without the factor').toBe(false)

    const missing = await signIn('app@house.test')
    expect(missing).toMatchObject({ status: 401, code: 'authentication_required' })
    expect(missing.text).toContain('"field":"code"')
    expect(missing.headers.get('set-cookie')).toBeNull()
    expect((await signIn('app@house.test', wrongOf(app))).status).toBe(401)
    const code = codeOf(app)
    const both = await Promise.all([signIn('app@house.test', code), signIn('app@house.test', code)])
    expect(both.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, 401])
    expect((await signIn('app@house.test', code)).status).toBe(401)
    const [used] = both.filter(({ status }) => status === 200)
    expect(used && (await isIn(session(used)))).toBe(true)
    expect((await signIn('app@house.test', codeOf(app, 3))).status).toBe(401)
  })

  test('is not revealed to a caller who does not know the password', async () => {
    await enrol(await signedIn(service, 'quiet@house.test', 'viewer'))
    const wrong = await post('/sign-in', {}, { address: 'quiet@house.test', password: 'not the password' })
    expect(wrong.status).toBe(401)
    expect(wrong.text).not.toContain('"field"')
  })

  test('is not in force before its first code was given', async () => {
    const headers = await signedIn(service, 'begun@house.test', 'viewer')
    await post('/second-factor/begin', headers, { password })
    expect((await signIn('begun@house.test')).status).toBe(200)
    expect((await post('/second-factor/confirm', headers, { code: '12345' })).status).toBe(401)
    expect((await ask(service, 'GET', '/dashboard/api/second-factor', headers)).data).toEqual({
      isOn: false,
      since: null,
      recoveryCodesLeft: 0,
    })
  })

  test('has recovery codes that sign in once each, however they are typed, and stop when there are new ones', async () => {
    const headers = await signedIn(service, 'codes@house.test', 'viewer')
    const { app, recoveryCodes } = await enrol(headers)
    const [one = '', other = ''] = recoveryCodes
    const both = await Promise.all([signIn('codes@house.test', one), signIn('codes@house.test', one.toUpperCase().replace('-', ' '))])
    expect(both.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, 401])
    expect((await ask(service, 'GET', '/dashboard/api/second-factor', headers)).data).toMatchObject({ isOn: true, recoveryCodesLeft: 9 })
    const renewed = await post('/second-factor/recovery-codes', headers, { password, code: codeOf(app) })
    expect(renewed.status, renewed.text).toBe(200)
    expect((await signIn('codes@house.test', other)).status).toBe(401)
    expect((await signIn('codes@house.test', (renewed.data as { recoveryCodes: string[] }).recoveryCodes[9])).status).toBe(200)
  })

  test('is sealed in the database, and its recovery codes are hashes', async () => {
    const { app, recoveryCodes } = await enrol(await signedIn(service, 'sealed@house.test', 'viewer'))
    const row = await service.db.first(kept, ['sealed@house.test'])
    expect(row?.secret.includes(Buffer.from(app.secret.bytes))).toBe(false)
    expect(row?.codes).toHaveLength(10)
    for (const code of recoveryCodes) expect(Buffer.concat(row?.codes ?? []).includes(Buffer.from(code.replace('-', '')))).toBe(false)
  })

  test('cannot be guessed: after ten wrong codes from one network, or twenty in all, a quarter of an hour must pass', async () => {
    const { app } = await enrol(await signedIn(service, 'guess@house.test', 'viewer'))
    const clock = { ...systemClock }
    const sessions = openSessions({ db: service.db, clock, ids: openIds(systemRandom), secrets: service.secrets })
    const attempt = (code: string, network: string) => sessions.signIn({ address: 'guess@house.test', password, code, network })
    for (let index = 0; index < 10; index++)
      await expect(attempt(wrongOf(app), '192.0.2.1')).rejects.toMatchObject({ code: 'authentication_required', field: 'code' })
    await expect(attempt(codeOf(app), '192.0.2.1')).rejects.toMatchObject({ code: 'rate_limit_exceeded' })
    for (let index = 0; index < 10; index++)
      await expect(attempt(wrongOf(app), '192.0.2.2')).rejects.toMatchObject({ code: 'authentication_required' })
    await expect(attempt(codeOf(app), '192.0.2.3')).rejects.toMatchObject({ code: 'rate_limit_exceeded' })
    clock.nowMs = () => systemClock.nowMs() + 15 * 60_000
    await expect(attempt(codeOf(app, 30), '192.0.2.3')).resolves.toBeDefined()
  })

  test('is asked for by a new sign-in link too, which stays good while the code is wrong', async () => {
    const owner = await signedIn(service, 'linker@house.test', 'owner')
    const { app } = await enrol(await signedIn(service, 'linked@house.test', 'viewer'))
    const made = await post('/members/reset', owner, { address: 'linked@house.test' })
    const token = (made.data as { signInUrl: string }).signInUrl.split('/').at(-1) ?? ''
    expect((await post('/sign-in-link', {}, { token })).data).toEqual({ address: 'linked@house.test', needsCode: true })
    expect(await useLink(service, token)).toMatchObject({ status: 401 })
    const used = await post('/sign-in-link/password', {}, { token, password, code: codeOf(app) })
    expect(used.status, used.text).toBe(200)
  })

  test('is begun and turned off only by a member who knows the password, and turned off only with a code', async () => {
    const headers = await signedIn(service, 'held@house.test', 'viewer')
    expect((await post('/second-factor/begin', headers, { password: 'not the password' })).status).toBe(401)
    const { app } = await enrol(headers)
    expect((await post('/second-factor/begin', headers, { password })).status).toBe(401)
    expect((await post('/second-factor/remove', headers, { password, code: wrongOf(app) })).status).toBe(401)
    expect((await post('/second-factor/remove', headers, { password: 'not the password', code: codeOf(app) })).status).toBe(401)
    expect((await post('/second-factor/remove', headers, { password, code: codeOf(app) })).status).toBe(200)
    expect((await signIn('held@house.test')).status).toBe(200)
  })

  test('is removed for others by an owner only, and their sessions end', async () => {
    const owner = await signedIn(service, 'taker@house.test', 'owner')
    const admin = await signedIn(service, 'admin@house.test', 'admin')
    const member = await signedIn(service, 'lost@house.test', 'viewer')
    await enrol(member)
    const tenantOwner = await signedIn(service, 'owner@other.test', 'owner', await service.makeTenant('Other'))
    expect((await post('/members/reset-second-factor', admin, { address: 'lost@house.test' })).status).toBe(403)
    expect((await post('/members/reset-second-factor', tenantOwner, { address: 'lost@house.test' })).status).toBe(404)
    const listed = async () =>
      (
        (await ask(service, 'GET', '/dashboard/api/members', owner)).data as { members: { address: string; hasSecondFactor: boolean }[] }
      ).members.find(({ address }) => address === 'lost@house.test')?.hasSecondFactor
    expect(await listed()).toBe(true)
    expect((await post('/members/reset-second-factor', owner, { address: 'lost@house.test' })).status).toBe(200)
    expect(await listed()).toBe(false)
    expect(await isIn(member)).toBe(false)
    expect((await signIn('lost@house.test')).status).toBe(200)
  })
})

describe('the audit log', () => {
  interface Entry {
    action: string
    actor: { kind: string; name: string }
    tenantId: string | null
    requestId: string | null
    data: Record<string, unknown>
  }
  const audit = async (headers: Record<string, string>, query = '') =>
    (await ask(service, 'GET', `/dashboard/api/audit?perPage=100${query}`, headers)).data as Entry[]

  test('records each sign-in and change with its member or key, in the dashboard and with a key, without values and secrets', async () => {
    const owner = await signedIn(service, 'auditor@house.test', 'owner')
    await ask(service, 'POST', '/v1/suppressions', owner, { address: 'person@example.org', reason: 'asked by phone' })
    await service.call('POST', '/webhooks', {
      key: service.testKey,
      body: { name: 'audited', url: 'https://example.com/hook', allEvents: true },
    })
    await post('/members', owner, { address: 'audited@house.test', role: 'viewer' })
    await service.call('POST', '/emails', {
      key: service.testKey,
      body: { from: 'a@simulator.test', to: ['delivered@simulator.test'], subject: 'Mail is not audited', text: 'x' },
    })
    const entries = await audit(owner)
    const by = (name: string) => entries.filter(({ actor }) => actor.name === name)
    expect(by('auditor@house.test').map(({ action }) => action)).toEqual(['members.add', 'suppressions.create', 'sessions.begin'])
    expect(by('auditor@house.test')[0]).toMatchObject({
      actor: { kind: 'member' },
      data: { address: 'audited@house.test', role: 'viewer' },
    })
    expect(by('test').find(({ action }) => action === 'webhooks.create')).toMatchObject({
      actor: { kind: 'key' },
      data: { name: 'audited', fields: ['name', 'url', 'allEvents'] },
    })
    expect(entries.some(({ action }) => action.startsWith('emails.'))).toBe(false)
    expect(JSON.stringify(entries)).not.toContain('person@example.org')
    const [newest] = entries as { at?: string }[]
    expect(await audit(owner, '&before=2020-01-01')).toEqual([])
    expect(await audit(owner, `&after=${new Date(Date.parse(newest?.at ?? '') + 1).toISOString()}`)).toEqual([])
    expect((await audit(owner, `&after=${newest?.at}`)).length).toBeGreaterThan(0)
    expect((await ask(service, 'GET', '/dashboard/api/audit?after=soon', owner)).status).toBe(400)
    expect((await audit(owner, '&action=webhooks')).every(({ action }) => action.startsWith('webhooks'))).toBe(true)
  })

  test('has the facts that the endpoint knows of a change, with any other fields in the body, and an entry in any case', async () => {
    const owner = await signedIn(service, 'strange@house.test', 'owner')
    const strange = [{ 'x\0': 1 }, { 'x\ud800': 1 }, { name: 'x\0' }, { tenantId: 'x\0' }, Object.fromEntries(Array(9000).entries())]
    for (const [index, more] of strange.entries()) {
      await ask(service, 'POST', '/v1/suppressions', owner, { address: `strange-${index}@example.org`, ...more })
    }
    const added = await post('/members', owner, { address: 'added@house.test', role: 'viewer', x: 'x\0', more: 'x'.repeat(9000) })
    expect(added.status).toBe(200)
    const entries = (await audit(owner)).filter(({ actor }) => actor.name === 'strange@house.test')
    expect(entries.map(({ action, data }) => [action, data])).toEqual([
      ['members.add', { address: 'added@house.test', role: 'viewer', tenantId: null }],
      ...strange.filter((one) => !('tenantId' in one)).map(() => ['suppressions.create', expect.objectContaining({ fields: ['address'] })]),
      ['sessions.begin', { by: 'link' }],
    ])
  })

  test('is for owners, and owners of a tenant see that tenant only', async () => {
    const admin = await signedIn(service, 'nosy@house.test', 'admin')
    expect((await ask(service, 'GET', '/dashboard/api/audit', admin)).status).toBe(403)
    const tenantId = await service.makeTenant('Audited')
    const owner = await signedIn(service, 'owner@audited.test', 'owner', tenantId)
    await ask(service, 'POST', '/v1/suppressions', owner, { address: 'a@b.test' })
    const entries = await audit(owner, `&tenantId=${service.tenantId}`)
    expect(entries.map(({ action }) => action)).toContain('suppressions.create')
    expect(entries.every((one) => one.tenantId === tenantId)).toBe(true)
  })
})

test('the audit log deletes the entries that are older than its limit, and no others', async () => {
  const nowMs = Date.now()
  const entry = { actor: { kind: 'key' as const, name: 'k' }, tenantId: null, requestId: null, ipAddress: null, data: {} }
  await recordAction(service.db, { ...entry, action: 'old.one' }, nowMs - 1000 * 86_400_000)
  await recordAction(service.db, { ...entry, action: 'new.one' }, nowMs - 300 * 86_400_000)
  expect(await dropOldAudit(service.db, nowMs - 400 * 86_400_000)).toBe(1)
  const { entries } = await listAudit(service.db, { tenantId: null }, { number: 1, size: 100 })
  expect(entries.map(({ action }) => action)).toContain('new.one')
  expect(entries.map(({ action }) => action)).not.toContain('old.one')
})

describe('the installation', () => {
  test('shows its settings without secrets, to owners of the organisation', async () => {
    const owner = await signedIn(service, 'settings@house.test', 'owner')
    const { settings } = (await ask(service, 'GET', '/dashboard/api/installation', owner)).data as {
      settings: { name: string; value: string | null }[]
    }
    expect(settings.find(({ name }) => name === 'POSTRIDER_TRUSTED_PROXIES')?.value).toBe('127.0.0.0/8')
    expect(settings.find(({ name }) => name === 'POSTRIDER_SECRET')?.value).toBeNull()
    const tenantOwner = await signedIn(service, 'tenant@settings.test', 'owner', await service.makeTenant('Settings'))
    const admin = await signedIn(service, 'admin@settings.test', 'admin')
    for (const headers of [tenantOwner, admin]) {
      expect((await ask(service, 'GET', '/dashboard/api/installation', headers)).status).toBe(403)
      expect((await ask(service, 'POST', '/dashboard/api/doctor', headers)).status).toBe(403)
    }
  })
})

test('a link shows whether a code will be asked for', async () => {
  const token = await invite(service, 'fresh@house.test', 'viewer')
  expect((await post('/sign-in-link', {}, { token })).data).toEqual({ address: 'fresh@house.test', needsCode: false })
})
