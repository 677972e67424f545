/** One address in several tenants: the owners of one cannot see or disturb the others. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openIds, systemRandom } from '#base'
import { removeMember, resetMember } from '#members'
import { type Service, startService } from '../support/in-process-service.ts'
import { ask, elsewhere, invite, password, signedIn, useLink } from './signed-in-browser.ts'

let service: Service
let ownerOfA: Record<string, string>
let tenantA: string
let tenantB: string
beforeAll(async () => {
  service = await startService({ rateLimit: null, sendLimit: null, settings: { POSTRIDER_TRUSTED_PROXIES: '127.0.0.0/8' } })
  tenantA = await service.makeTenant('A')
  tenantB = await service.makeTenant('B')
  ownerOfA = await signedIn(service, 'owner@a.test', 'owner', tenantA)
})
afterAll(() => service.stop())

const add = (owner: Record<string, string>, address: string) =>
  ask(service, 'POST', '/dashboard/api/members', owner, { address, role: 'viewer' })
const signIn = (address: string, chosen: string, more: object = {}) =>
  ask(service, 'POST', '/dashboard/api/sign-in', elsewhere(), { address, password: chosen, ...more })
const memberIn = (reply: { data: never }) => (reply.data as { member: { tenantId: string | null } | null }).member

describe('an owner of one tenant', () => {
  test('cannot distinguish an address that is a member elsewhere from one that is not', async () => {
    await signedIn(service, 'known@b.test', 'owner', tenantB)
    await signedIn(service, 'known@house.test', 'owner')
    const told = await Promise.all(['known@b.test', 'known@house.test', 'unknown@b.test'].map((address) => add(ownerOfA, address)))
    const shape = ({ status, data }: (typeof told)[0]) => [status, Object.keys(data as object), memberIn({ data })?.tenantId]
    expect(told.map(shape)).toEqual(told.map(() => [200, ['member', 'signInUrl'], tenantA]))
    for (const path of ['reset', 'remove', 'reset-second-factor'])
      for (const body of [{ address: 'owner@b.test' }, { address: 'nobody@b.test' }])
        expect((await ask(service, 'POST', `/dashboard/api/members/${path}`, ownerOfA, body)).status).toBe(404)
    expect(
      (await ask(service, 'POST', '/dashboard/api/members/remove', ownerOfA, { address: 'known@b.test', tenantId: tenantB })).status,
    ).toBe(403)
    expect((await add(ownerOfA, 'known@b.test')).code).toBe('validation_error')
  })

  test('occupies no address that another tenant wants, and takes nothing from a member of another tenant', async () => {
    const ownerOfB = await signedIn(service, 'owner@b.test', 'owner', tenantB)
    const taken = (await add(ownerOfA, 'wanted@b.test')).data as { signInUrl: string }
    expect((await add(ownerOfB, 'wanted@b.test')).status).toBe(200)
    const member = await signedIn(service, 'settled@b.test', 'viewer', tenantB)
    const { signInUrl } = (await add(ownerOfA, 'settled@b.test')).data as { signInUrl: string }
    expect((await useLink(service, signInUrl.split('/').at(-1) ?? '', 'chosen by the owner of A')).status).toBe(200)
    expect((await useLink(service, taken.signInUrl.split('/').at(-1) ?? '', 'chosen by the owner of A')).status).toBe(200)
    expect(memberIn(await signIn('settled@b.test', password))?.tenantId).toBe(tenantB)
    expect(memberIn(await signIn('settled@b.test', 'chosen by the owner of A'))?.tenantId).toBe(tenantA)
    expect((await ask(service, 'POST', '/dashboard/api/members/remove', ownerOfA, { address: 'settled@b.test' })).status).toBe(200)
    expect((await ask(service, 'GET', '/v1/limits', member)).status).toBe(200)
    expect(memberIn(await signIn('settled@b.test', password))?.tenantId).toBe(tenantB)
  })
})

describe('the role of a member', () => {
  const roleOf = (owner: Record<string, string>, address: string, role: string, more: object = {}) =>
    ask(service, 'POST', '/dashboard/api/members/role', owner, { address, role, ...more })

  test('is changed by an owner of the tenant, for open sessions too, and no further than the tenant', async () => {
    const member = await signedIn(service, 'promoted@a.test', 'viewer', tenantA)
    const other = await signedIn(service, 'promoted@a.test', 'viewer', tenantB)
    const mayAdd = async (session: Record<string, string>, name: string) =>
      (await ask(service, 'POST', '/v1/domains', session, { name })).status
    expect(await mayAdd(member, 'one.a.test')).toBe(403)
    expect(memberIn(await roleOf(ownerOfA, 'promoted@a.test', 'admin'))).toEqual({
      address: 'promoted@a.test',
      role: 'admin',
      tenantId: tenantA,
    })
    expect(await mayAdd(member, 'one.a.test')).toBe(201)
    expect(await mayAdd(other, 'two.a.test')).toBe(403)
    expect((await roleOf(ownerOfA, 'promoted@a.test', 'admin', { tenantId: tenantB })).code).toBe('tenant_mismatch')
    expect((await roleOf(ownerOfA, 'unknown@a.test', 'admin')).status).toBe(404)
  })

  test('is not changed by an admin, for the own account, or to a role that does not exist', async () => {
    const admin = await signedIn(service, 'admin@a.test', 'admin', tenantA)
    expect((await roleOf(admin, 'promoted@a.test', 'owner')).code).toBe('permission_denied')
    expect((await roleOf(ownerOfA, 'owner@a.test', 'viewer')).code).toBe('validation_error')
    expect((await roleOf(ownerOfA, 'promoted@a.test', 'emperor')).code).toBe('validation_error')
  })
})

describe('a member of several tenants', () => {
  test('signs in with the password of each, and is asked which one when the passwords are the same', async () => {
    const address = 'both@b.test'
    for (const tenantId of [tenantA, tenantB, null]) await useLink(service, await invite(service, address, 'viewer', tenantId))
    const asked = await signIn(address, password)
    expect(asked).toMatchObject({ status: 200 })
    expect(asked.headers.get('set-cookie')).toBeNull()
    expect(asked.data).toEqual({
      member: null,
      choices: [
        { tenantId: tenantA, name: 'A' },
        { tenantId: tenantB, name: 'B' },
        { tenantId: null, name: null },
      ],
    })
    for (const tenantId of [tenantA, tenantB, null]) {
      const reply = await signIn(address, password, { tenantId })
      expect(memberIn(reply)?.tenantId).toBe(tenantId)
      expect(reply.headers.get('set-cookie')).toMatch(/^postrider=/)
    }
    expect(await signIn(address, 'not the password', { tenantId: tenantA })).toMatchObject({ status: 401 })
    expect(await signIn(address, password, { tenantId: 'none' })).toMatchObject({ status: 401 })
  })

  test('is reset and removed in the tenant that is named, and in none when the request names none', async () => {
    const address = 'twice@b.test'
    for (const tenantId of [tenantA, null]) await useLink(service, await invite(service, address, 'viewer', tenantId))
    const facts = { nowMs: Date.now(), ids: openIds(systemRandom) }
    await expect(service.db.transaction((tx) => resetMember(tx, address, undefined, facts))).rejects.toMatchObject({ field: 'tenantId' })
    const organisation = await signedIn(service, 'organiser@house.test', 'owner')
    const remove = (body: object) => ask(service, 'POST', '/dashboard/api/members/remove', organisation, body)
    expect(await remove({ address })).toMatchObject({ status: 400, code: 'validation_error' })
    expect((await remove({ address, tenantId: tenantA })).status).toBe(200)
    expect(memberIn(await signIn(address, password))?.tenantId).toBeNull()
    expect(await service.db.transaction((tx) => removeMember(tx, address, undefined))).toMatchObject({ tenantId: null })
  })
})
