/** The marks of listed emails: opens, clicks, complaints and the last attempt, for those who may read the emails. */
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { type Service, startService } from '../support/in-process-service.ts'
import { ask, fromOurPages, signedIn } from './signed-in-browser.ts'

let service: Service
let cookie = ''
let landlord = ''
let otherTenantId = ''
beforeAll(async () => {
  service = await startService({ roles: ['delivery'], rateLimit: null, settings: { POSTRIDER_TRUSTED_PROXIES: '127.0.0.0/8' } })
  otherTenantId = await service.makeTenant('Shop')
  cookie = (await signedIn(service, 'viewer@house.test', 'viewer')).cookie ?? ''
  landlord = (await signedIn(service, 'landlord@house.test', 'owner', otherTenantId)).cookie ?? ''
})
afterAll(() => service.stop())

const marksOf = (names: readonly string[], of = cookie) =>
  ask(service, 'GET', `/dashboard/api/email-marks?emails=${encodeURIComponent(names.join(','))}`, { ...fromOurPages, cookie: of })

async function send(to: string): Promise<string> {
  const body = { from: 'a@simulator.test', to: [`${to}@simulator.test`], subject: 'A', html: '<a href="https://shop.example/">Shop</a>' }
  return ((await service.call('POST', '/emails', { key: service.testKey, body })).body.data as { id: string }).id
}

test('an email has the marks of its readers, its complaint and its last attempt', async () => {
  const ids = { clicked: await send('clicked'), complaint: await send('complaint'), hardfail: await send('hardfail') }
  const names = Object.values(ids).map((id) => `${service.tenantId}.${id}`)
  const marks = async () => ((await marksOf(names)).data as { marks: Record<string, Record<string, unknown>> }).marks
  await vi.waitUntil(async () => Object.values(await marks()).every(({ last }) => last !== null), { timeout: 20_000, interval: 50 })
  await service.call('POST', '/test/advance', { key: service.testKey, body: { seconds: 3600 } })
  await vi.waitUntil(async () => (await marks())[ids.complaint]?.complainedAt != null, { timeout: 20_000, interval: 50 })
  await vi.waitUntil(async () => (await marks())[ids.clicked]?.clickedAt != null, { timeout: 20_000, interval: 50 })
  expect((await marks())[ids.hardfail]).toEqual({
    openedAt: null,
    clickedAt: null,
    complainedAt: null,
    last: { status: 'hardfail', at: expect.stringMatching(/Z$/) },
  })
})

test('a member of a tenant reads no other tenant', async () => {
  const id = await send('delivered')
  expect((await marksOf([`${service.tenantId}.${id}`], landlord)).code).toBe('tenant_mismatch')
  const own = (await marksOf([`${otherTenantId}.${id}`], landlord)).data as { marks: Record<string, { last: unknown }> }
  expect(own.marks[id]?.last).toBeNull()
})

test('more than 100 emails, or a name that is no email, are refused', async () => {
  const name = `${service.tenantId}.${await send('delivered')}`
  expect((await marksOf(Array.from({ length: 101 }, () => name))).code).toBe('validation_error')
  expect((await marksOf(['nonsense'])).code).toBe('not_found')
})
