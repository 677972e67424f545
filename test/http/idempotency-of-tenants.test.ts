/** One idempotency key and one body of a key of the organisation, for several tenants that only the path or the query names. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Service, startService } from '../support/in-process-service.ts'

let service: Service
let shop: string
let other: string
beforeAll(async () => {
  service = await startService({ rateLimit: null, sendLimit: null })
  shop = await service.makeTenant('Shop')
  other = await service.makeTenant('Other')
  await service.addDomain(shop, 'shop.test')
})
afterAll(() => service.stop())

const letter = { from: 'a@shop.test', to: ['delivered@simulator.test'], subject: 'Hello' }
const reused = { status: 400, body: { error: { code: 'idempotency_key_reused' } } }
const ask = (idempotencyKey: string, path: string, body: object, key = service.testKey) =>
  service.call('POST', path, { key, body, headers: { 'idempotency-key': idempotencyKey } })
const replayed = (answer: { headers: Headers }) => answer.headers.get('idempotent-replayed')

/** A thread reads a large body and computes its fingerprint. */
describe.each([
  ['a small body', 10],
  ['a large body', 300_000],
])('with %s', (_, length) => {
  const body = { ...letter, text: 'x'.repeat(length) }

  test('a tenant in the query makes another request', async () => {
    const first = await ask(`query-${length}`, `/emails?tenantId=${shop}`, body)
    expect(first, first.text).toMatchObject({ status: 200, body: { data: { tenantId: shop } } })
    expect(await ask(`query-${length}`, `/emails?tenantId=${other}`, body)).toMatchObject(reused)
    expect(await ask(`query-${length}`, '/emails', body)).toMatchObject(reused)
    const again = await ask(`query-${length}`, `/emails?tenantId=${shop}`, body)
    expect([again.text, replayed(again)]).toEqual([first.text, 'true'])
  })

  test("a tenant's key may name its tenant or not", async () => {
    const key = await service.makeKey({ tenantId: shop })
    const first = await ask('own', `/emails?tenantId=${shop}`, body, key)
    expect(first.status, first.text).toBe(200)
    const again = await ask('own', '/emails', body, key)
    expect([again.text, replayed(again)]).toEqual([first.text, 'true'])
  })
})

test('a tenant in the path makes another request', async () => {
  const draft = { name: 'welcome', subject: 'Welcome', text: 'Hello' }
  for (const tenantId of [shop, other])
    expect((await service.call('POST', '/templates', { key: service.liveKey, body: { ...draft, tenantId } })).status).toBe(201)
  const { subject: _, ...body } = letter
  const first = await ask('path', `/tenants/${shop}/templates/welcome/test`, body)
  expect(first.status, first.text).toBe(200)
  expect(await ask('path', `/tenants/${other}/templates/welcome/test`, body)).toMatchObject(reused)
})
