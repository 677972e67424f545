/** A member changes the own password: the current one is proven, other sessions end, and the audit log has it. Own sessions are listed and ended. */
import { type TOTP, URI } from 'otpauth'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { listAudit } from '#members'
import { type Service, startService } from '../support/in-process-service.ts'
import { ask, cookieOf, elsewhere, fromOurPages, invite, password, signedIn, useLink } from './signed-in-browser.ts'

const newPassword = 'staple battery horse'

let service: Service
beforeAll(async () => {
  service = await startService({ rateLimit: null, sendLimit: null, settings: { POSTRIDER_TRUSTED_PROXIES: '127.0.0.0/8' } })
})
afterAll(() => service.stop())

const post = (path: string, headers: Record<string, string>, body: object) =>
  ask(service, 'POST', `/dashboard/api${path}`, { ...elsewhere(), ...headers }, body)
const signIn = (address: string, given: string) => post('/sign-in', {}, { address, password: given })
const isIn = async (headers: Record<string, string>) => (await ask(service, 'GET', '/v1/limits', headers)).status === 200
const audited = async (actor: string) =>
  (await listAudit(service.db, { tenantId: null, actor, action: undefined }, { number: 1, size: 100 })).entries.map(({ action }) => action)

test('the new password signs in, the old one does not, and only this session goes on', async () => {
  const here = await signedIn(service, 'ann@house.test', 'viewer')
  const there = { ...fromOurPages, cookie: cookieOf(await signIn('ann@house.test', password)) }
  expect(await isIn(there)).toBe(true)
  const { status, text } = await post('/password', here, { currentPassword: password, password: newPassword })
  expect(status, text).toBe(200)
  expect(await isIn(here)).toBe(true)
  expect(await isIn(there)).toBe(false)
  expect((await signIn('ann@house.test', password)).status).toBe(401)
  expect((await signIn('ann@house.test', newPassword)).status).toBe(200)
  expect(await audited('ann@house.test')).toContain('members.change-password')
})

test('a member sees the own sessions and ends the others', async () => {
  const here = await signedIn(service, 'dora@house.test', 'viewer')
  const there = { ...fromOurPages, cookie: cookieOf(await signIn('dora@house.test', password)) }
  const other = await signedIn(service, 'emil@house.test', 'viewer')
  const list = async () =>
    (await ask(service, 'GET', '/dashboard/api/sessions', here)).data as unknown as { sessions: { isThis: boolean; seenAt: string }[] }
  const { sessions } = await list()
  expect(sessions).toHaveLength(2)
  expect(sessions.filter(({ isThis }) => isThis)).toHaveLength(1)
  expect((await post('/sessions/end-others', here, {})).status).toBe(200)
  expect((await list()).sessions).toMatchObject([{ isThis: true }])
  expect([await isIn(here), await isIn(there), await isIn(other)]).toEqual([true, false, true])
  expect(await audited('dora@house.test')).toContain('sessions.end-others')
})

test('a wrong current password, a bad one and the same one change nothing', async () => {
  const here = await signedIn(service, 'bob@house.test', 'owner')
  const changes: [object, number][] = [
    [{ currentPassword: 'not the password', password: newPassword }, 401],
    [{ currentPassword: password, password: 'short' }, 400],
    [{ currentPassword: password, password: 'x'.repeat(257) }, 400],
    [{ currentPassword: password, password }, 400],
    [{ currentPassword: password, password: `${newPassword}\0` }, 400],
    [{ password: newPassword }, 400],
  ]
  for (const [body, status] of changes) expect((await post('/password', here, body)).status, JSON.stringify(body)).toBe(status)
  expect((await signIn('bob@house.test', password)).status).toBe(200)
  expect(await audited('bob@house.test')).not.toContain('members.change-password')
})

test('a session without the header of the pages, or none at all, changes nothing', async () => {
  const { cookie = '' } = await signedIn(service, 'cid@house.test', 'owner')
  const body = { currentPassword: password, password: newPassword }
  expect((await ask(service, 'POST', '/dashboard/api/password', { cookie }, body)).status).toBe(403)
  expect((await post('/password', {}, body)).status).toBe(401)
})

test('guesses at the current password are limited as those at a sign-in', async () => {
  const here = await signedIn(service, 'eve@house.test', 'owner')
  const from = elsewhere()
  const guess = () =>
    ask(service, 'POST', '/dashboard/api/password', { ...from, ...here }, { currentPassword: 'a guess', password: newPassword })
  const statuses: number[] = []
  for (let nth = 0; nth < 12; nth++) {
    let { status, code } = await guess()
    // The limit of attempts in a second comes first.
    while (status === 429 && nth < 10 && code === 'rate_limit_exceeded') {
      await service.wait(1000)
      ;({ status, code } = await guess())
    }
    statuses.push(status)
  }
  expect(statuses).toEqual([...Array.from({ length: 10 }, () => 401), 429, 429])
})

test('with two-factor authentication, a code is asked for', async () => {
  const here = await signedIn(service, 'dee@house.test', 'owner')
  const begun = (await post('/second-factor/begin', here, { password })).data as { uri: string }
  const app = URI.parse(begun.uri) as TOTP
  const codeOf = (steps: number) => app.generate({ timestamp: Date.now() + steps * 30_000 })
  await post('/second-factor/confirm', here, { code: codeOf(0) })
  const change = { currentPassword: password, password: newPassword }
  const missing = await post('/password', here, change)
  expect(missing.status).toBe(401)
  expect(missing.text).toContain('"field":"code"')
  expect((await post('/password', here, { ...change, code: codeOf(1) })).status).toBe(200)
})

test('of several members with one address, only the own one has the new password', async () => {
  const tenantId = await service.makeTenant('Shop')
  await useLink(service, await invite(service, 'two@house.test', 'owner', tenantId), 'the password of the shop')
  const here = await signedIn(service, 'two@house.test', 'viewer')
  expect((await post('/password', here, { currentPassword: 'the password of the shop', password: newPassword })).status).toBe(401)
  expect((await post('/password', here, { currentPassword: password, password: newPassword })).status).toBe(200)
  expect((await signIn('two@house.test', 'the password of the shop')).data).toMatchObject({ member: { tenantId } })
  expect((await signIn('two@house.test', newPassword)).data).toMatchObject({ member: { tenantId: null } })
})
