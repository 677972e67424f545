/**
 * Requests of every kind to every endpoint, generated from a seed: valid, invalid and hostile. No response is a 500, and each matches the
 * OpenAPI document (see openapi-check.ts). `PROPERTY_REQUESTS=50000 npx vitest run test/contract/generated-requests.test.ts` sends more of them.
 */
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Endpoint, pathsOf, routes } from '#http'
import { type Answer, type Service, startService } from '../support/in-process-service.ts'
import { goodBodies, prepare } from './valid-bodies.ts'

const requests = Number(process.env.PROPERTY_REQUESTS ?? 1500)
const seed = Number(process.env.PROPERTY_SEED ?? 20261121)
const atOnce = 8
const statuses = [200, 201, 400, 401, 403, 404, 429]

let service: Service
let keys: string[]
let tenantIds: string[]
const known = new Set<string>()
beforeAll(async () => {
  service = await startService({ rateLimit: null, sendLimit: null, roles: ['delivery', 'housekeeping'] })
  await prepare(service)
  tenantIds = [service.tenantId, await service.makeTenant('One'), await service.makeTenant('Two')]
  keys = [
    service.testKey,
    service.testKey,
    await service.makeKey({ tenantId: tenantIds[1] as string }),
    await service.makeKey({ permissions: ['emails:send', 'emails:read'] }),
    `svc_live_${'0'.repeat(32)}`,
  ]
})
afterAll(() => service.stop())

const everywhere = routes
  // Deleting or suspending tenants and revoking keys would stop the other requests.
  .filter(({ name }) => !['tenants.delete', 'tenants.update', 'credentials.delete', 'credentials.update'].includes(name))
  .flatMap((endpoint) => pathsOf(endpoint).map((path) => ({ endpoint, path })))

const hostileText = fc.constantFrom(
  '',
  ' ',
  '0',
  '-1',
  '1e999',
  'null',
  'a\0b',
  '\ud800',
  "'; drop table emails; --",
  '../../etc/passwd',
  '%00',
  '%',
  '{{7*7}}',
  '<script>alert(1)</script>',
  '\r\nX-Injected: 1',
  'x'.repeat(5000),
  '١٢٣',
  '=cmd()',
  '9'.repeat(40),
  'constructor',
  '__proto__',
  'a@b.example',
  'A+b@Example.com',
  '"quoted @ local"@example.com',
  'ünïcode@exämple.com',
)
const anyText = fc.oneof({ weight: 3, arbitrary: hostileText }, { weight: 2, arbitrary: fc.string({ unit: 'binary', maxLength: 60 }) })
const anyValue = fc.oneof(
  anyText,
  fc.integer(),
  fc.double(),
  fc.boolean(),
  fc.constant(null),
  fc.jsonValue({ maxDepth: 3 }),
  fc.array(anyText, { maxLength: 60 }),
  fc.dictionary(fc.string({ maxLength: 50 }), anyText, { maxKeys: 60 }),
)

const plan = fc.record({
  where: fc.nat(),
  key: fc.nat(),
  ids: fc.array(fc.oneof({ weight: 3, arbitrary: fc.nat() }, { weight: 2, arbitrary: anyText }), { minLength: 4, maxLength: 4 }),
  query: fc.array(fc.tuple(fc.nat(), anyText), { maxLength: 4 }),
  body: fc.oneof(
    { weight: 4, arbitrary: fc.record({ change: fc.array(fc.tuple(fc.nat(), anyValue), { maxLength: 3 }), raw: fc.constant(undefined) }) },
    { weight: 1, arbitrary: fc.record({ change: fc.constant([]), raw: fc.oneof(anyText, fc.json()) }) },
  ),
  header: fc.option(
    fc.tuple(fc.constantFrom('accept', 'idempotency-key', 'content-type', 'user-agent', 'x-forwarded-for'), fc.string({ maxLength: 300 })),
  ),
})
type Plan = typeof plan extends fc.Arbitrary<infer T> ? T : never

/** Changes the nth of all values in a body. */
function changed(body: Record<string, unknown>, nth: number, value: unknown): Record<string, unknown> {
  const copy = structuredClone(body)
  const places: [Record<string, unknown>, string][] = []
  const collect = (object: Record<string, unknown>) => {
    for (const [name, inner] of Object.entries(object)) {
      places.push([object, name])
      if (typeof inner === 'object' && inner !== null) collect(inner as Record<string, unknown>)
    }
  }
  collect(copy)
  const [object, name] = places[nth % Math.max(1, places.length)] ?? [copy, 'x']
  if (nth % 7 === 0) delete object[name]
  else object[name] = value
  return copy
}

const printable = (text: string) => text.replace(/[^\x20-\x7e]/g, '?')
const query = (endpoint: Endpoint): string[] =>
  Object.keys((endpoint.query as { properties?: object } | undefined)?.properties ?? { tenantId: 1 })

function requestOf(one: Plan, serial: number) {
  const { endpoint, path } = everywhere[one.where % everywhere.length] as (typeof everywhere)[number]
  const pool = [...known]
  let parameter = 0
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => {
    const wanted = one.ids[parameter++ % one.ids.length]
    if (name === 'tenantId')
      return typeof wanted === 'number'
        ? (tenantIds[wanted % tenantIds.length] as string)
        : encodeURIComponent(wanted?.toWellFormed() ?? '')
    if (typeof wanted === 'number') return encodeURIComponent(pool[wanted % Math.max(1, pool.length)] ?? '1')
    return encodeURIComponent(wanted?.toWellFormed() ?? '')
  })
  const names = query(endpoint)
  const asked = one.query.map(([nth, value]) => `${names[nth % names.length]}=${encodeURIComponent(value.toWellFormed())}`).join('&')
  const target = `${filled}${asked === '' ? '' : `?${asked}`}`
  let payload: string | undefined
  if (endpoint.method !== 'GET') {
    const good = goodBodies[endpoint.name]?.body(serial) ?? {}
    payload = one.body.raw ?? JSON.stringify(one.body.change.reduce((body, [nth, value]) => changed(body, nth, value), good))
  }
  const key = keys[one.key % keys.length] as string
  const headers = one.header ? { [one.header[0]]: printable(one.header[1]) } : {}
  return { endpoint, target, asked: { key, headers, ...(payload === undefined ? {} : { raw: payload }) } }
}

const remember = (answer: Answer) => {
  const data = answer.body.data as { id?: string | number } | { id?: string | number }[] | undefined
  const first = Array.isArray(data) ? data[0] : data
  if (first?.id !== undefined && known.size < 500) known.add(String(first.id))
}

test(`${requests} requests of every kind are answered as documented, and none is a 500`, async () => {
  const plans = fc.sample(plan, { numRuns: requests, seed })
  const seen = new Map<number, number>()
  let next = 0
  const worker = async () => {
    for (let index = next++; index < plans.length; index = next++) {
      const { endpoint, target, asked } = requestOf(plans[index] as Plan, index)
      const answer = await service.call(endpoint.method, target, asked)
      expect(statuses, `${endpoint.method} ${target} ${asked.raw?.slice(0, 300)}: ${answer.text.slice(0, 300)}`).toContain(answer.status)
      seen.set(answer.status, (seen.get(answer.status) ?? 0) + 1)
      remember(answer)
    }
  }
  await Promise.all(Array.from({ length: atOnce }, worker))
  for (const status of [200, 201, 400, 401, 403, 404]) expect(seen.get(status) ?? 0, `answers of ${status}`).toBeGreaterThan(requests / 500)
}, 600_000)
