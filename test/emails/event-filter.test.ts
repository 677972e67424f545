/** Lists emails by the events that happened to them, in a tenant and a period, and together with other filters. */
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { unsubscribe } from '#tracking'
import { type Service, startService } from '../support/in-process-service.ts'

let service: Service
let otherTenantId = ''
const sent: Record<string, string> = {}
const recipients = ['delivered', 'softfail', 'hardfail', 'bounce', 'complaint', 'opened', 'clicked', 'delivered+left']

async function idsOf(query: string): Promise<string[]> {
  const { status, body, text } = await service.call('GET', `/emails?${query}`, { key: service.testKey })
  expect(status, text).toBe(200)
  return (body.data as { id: string }[]).map(({ id }) => id)
}

beforeAll(async () => {
  service = await startService({ roles: ['delivery'], rateLimit: null })
  otherTenantId = await service.makeTenant('Shop')
  for (const to of recipients) {
    const body = { from: 'a@simulator.test', to: [`${to}@simulator.test`], subject: to, html: '<a href="https://shop.example/">Shop</a>' }
    sent[to] = ((await service.call('POST', '/emails', { key: service.testKey, body })).body.data as { id: string }).id
  }
  await vi.waitUntil(async () => (await idsOf('status=pending')).length === 0, { timeout: 20_000, interval: 50 })
  await service.call('POST', '/test/advance', { key: service.testKey, body: { seconds: 60 } })
  const left = { kind: 'unsubscribe', url: '', tenantId: service.tenantId, emailId: sent['delivered+left'] ?? '' } as const
  await unsubscribe(service.db, left, Date.now())
  await vi.waitUntil(async () => (await idsOf('event=clicked')).length === 1 && (await idsOf('event=complained')).length === 1, {
    timeout: 20_000,
    interval: 50,
  })
  await vi.waitUntil(async () => (await idsOf('event=bounced')).length === 1, { timeout: 20_000, interval: 50 })
})
afterAll(() => service.stop())

test.each([
  ['delayed', ['softfail']],
  ['failed', ['hardfail']],
  ['bounced', ['bounce']],
  ['complained', ['complaint']],
  ['clicked', ['clicked']],
  ['unsubscribed', ['delivered+left']],
  ['delivered', ['delivered+left', 'clicked', 'opened', 'complaint', 'bounce', 'delivered']],
])('emails with the event %s are listed, newest first', async (event, wanted) => {
  expect(await idsOf(`event=${event}`)).toEqual(wanted.map((to) => sent[to]))
})

test('an opened email is listed, and one whose link was used if its picture was loaded', async () => {
  expect(await idsOf('event=opened')).toContain(sent.opened)
  expect(await idsOf('event=opened')).not.toContain(sent.delivered)
})

test('an event goes together with other filters', async () => {
  expect(await idsOf('event=delivered&to=bounce@simulator.test')).toEqual([sent.bounce])
  expect(await idsOf('event=delivered&status=bounced')).toEqual([sent.bounce])
  expect(await idsOf('event=delivered&complained=true')).toEqual([sent.complaint])
  expect(await idsOf('event=bounced&complained=true')).toEqual([])
  expect(await idsOf('event=delivered&test=false')).toEqual([])
  expect(await idsOf('event=unsubscribed&test=true')).toEqual([sent['delivered+left']])
})

test('after and before are times of acceptance', async () => {
  const later = new Date(Date.now() + 60_000).toISOString()
  for (const event of ['delivered', 'delayed', 'complained', 'clicked', 'unsubscribed']) {
    expect(await idsOf(`event=${event}&after=${later}`)).toEqual([])
    expect((await idsOf(`event=${event}&before=${later}`)).length).toBeGreaterThan(0)
  }
})

test('events of one tenant are not listed for another, and an unknown event is refused', async () => {
  for (const event of ['delivered', 'clicked', 'complained', 'unsubscribed'])
    expect(await idsOf(`event=${event}&tenantId=${otherTenantId}`)).toEqual([])
  expect((await service.call('GET', '/emails?event=exploded', { key: service.testKey })).status).toBe(400)
})
