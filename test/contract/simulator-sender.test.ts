/** simulator.test as a sender: a test key of any tenant needs no domain, and the suggestion in a refusal names an allowed sender. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openIds, systemClock, systemRandom } from '#base'
import { createKey } from '#credentials'
import { type Service, startService } from '../support/in-process-service.ts'

const email = (from: string) => ({ from, to: ['delivered@simulator.test'], subject: 's', html: '<a href="https://shop.example/">x</a>' })

let service: Service
beforeAll(async () => {
  service = await startService({ rateLimit: null, roles: ['delivery'], settings: { POSTRIDER_HOSTNAME: 'mail.example.net' } })
})
afterAll(() => service.stop())

const liveKeyOf = async (tenantId: string) =>
  (
    await service.db.transaction((tx) =>
      createKey(
        tx,
        { mode: 'live', name: 'live', tenantId, permissions: null },
        { nowMs: systemClock.nowMs(), ids: openIds(systemRandom) },
      ),
    )
  ).key

test('a test key of any tenant sends from simulator.test, and reads the messages that arrived', async () => {
  const tenantId = await service.makeTenant('another')
  const key = await service.makeKey({ tenantId })
  const raw = Buffer.from('From: shop@simulator.test\r\nTo: a@b.example\r\nSubject: raw\r\n\r\nHello\r\n').toString('base64')
  const sent = [
    await service.call('POST', '/emails', { key, body: email('Shop <shop@simulator.test>') }),
    await service.call('POST', '/emails/raw', {
      key,
      body: { from: 'shop@simulator.test', to: ['delivered+raw@simulator.test'], rawMessage: raw },
    }),
    await service.call('POST', '/emails', { key: service.testKey, body: { ...email('shop@simulator.test'), tenantId } }),
  ]
  for (const answer of sent) {
    expect(answer.status, answer.text).toBe(200)
    const { id } = answer.body.data as { id: string }
    await expect
      .poll(async () => (await service.call('GET', `/emails/${id}`, { key })).body.data)
      .toMatchObject({ status: 'sent', tenantId })
  }
  expect((await service.call('GET', '/test/inbox?to=delivered@simulator.test', { key })).body.total).toBe(2)
  expect((await service.call('GET', '/domains', { key })).body.data).toEqual({ domains: [] })
})

test('simulator.test stays closed to live keys, and cannot be added', async () => {
  const tenantId = await service.makeTenant('a third')
  for (const key of [service.liveKey, await liveKeyOf(tenantId)]) {
    const refused = await service.call('POST', '/emails', { key, body: email('shop@simulator.test') })
    expect(refused).toMatchObject({ status: 400, body: { error: { code: 'domain_not_verified', field: 'from' } } })
    expect(refused.body.error?.message).toContain('test keys')
  }
  for (const name of ['simulator.test', 'Simulator.TEST']) {
    const refused = await service.call('POST', '/domains', { key: service.liveKey, body: { name, tenantId } })
    expect(refused).toMatchObject({ status: 400, body: { error: { code: 'validation_error', field: 'name' } } })
    expect(refused.body.error?.message).toContain('test key')
  }
})

test('the refusal of a sender names an address that it may send from, if there is one', async () => {
  const suggestionOf = async (on: Service, key: string) => {
    const refused = await on.call('POST', '/emails', { key, body: email('shop@elsewhere.example') })
    expect(refused).toMatchObject({ status: 400, body: { error: { code: 'domain_not_verified' } } })
    return refused.body.error?.suggestion
  }
  expect(await suggestionOf(service, service.liveKey)).toContain('sandbox@mail.example.net')
  expect(await suggestionOf(service, service.testKey)).toContain('simulator.test')
  // Mail programs do not accept sandbox@vm as an address, and neither does Postrider.
  await using alone = await startService({ settings: { POSTRIDER_HOSTNAME: 'vm' } })
  expect(await suggestionOf(alone, alone.liveKey)).not.toMatch(/sandbox/)
})
