/** Rules that hold for every endpoint, checked over the declarations: permissions, and responses within the closed set. */

import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { permissions } from '#credentials'
import { sql } from '#db'
import { type Endpoint, pathsOf, routes } from '#http'
import { type Service, startService } from '../support/in-process-service.ts'

const statuses = [200, 201, 400, 401, 403, 404, 429, 500]
const everywhere = routes.flatMap((endpoint) => pathsOf(endpoint).map((path) => [`${endpoint.method} ${path}`, endpoint, path] as const))
const filled = (path: string) => path.replace(/\{\w+\}/g, '0'.repeat(22))

const holdAll = sql`
  update credentials
  set hold = true
  where key_prefix is not null and permissions = '{emails:read,emails:send,domains:manage}'`
const revokeAll = sql`
  update credentials
  set revoked_at = created_at
  where permissions = '{emails:read,emails:send,webhooks:manage}'`

let service: Service
let reads: Record<string, string>
let held: string
let revoked: string
beforeAll(async () => {
  service = await startService({ rateLimit: null })
  reads = Object.fromEntries(
    await Promise.all(
      permissions.map(async (one) => [one, await service.makeKey({ permissions: permissions.filter((other) => other !== one) })]),
    ),
  )
  held = await service.makeKey({ permissions: ['emails:read', 'emails:send', 'domains:manage'] })
  revoked = await service.makeKey({ permissions: ['emails:read', 'emails:send', 'webhooks:manage'] })
  await service.db.run(holdAll)
  await service.db.run(revokeAll)
})
afterAll(() => service.stop())

const call = ({ method }: Endpoint, path: string, key?: string, more = {}) =>
  service.call(method, filled(path), { ...(key === undefined ? {} : { key }), ...more })

describe.each(everywhere)('%s', (_, endpoint, path) => {
  test('needs a key', async () => {
    const answer = await call(endpoint, path)
    expect(answer).toMatchObject({ status: 401, body: { success: false, error: { code: 'authentication_required' } } })
    expect(answer.headers.get('www-authenticate')).toBe('Bearer')
  })

  test('distinguishes a revoked key from one on hold', async () => {
    expect(await call(endpoint, path, revoked)).toMatchObject({ status: 401, body: { error: { code: 'expired_api_key' } } })
    expect(await call(endpoint, path, held)).toMatchObject({ status: 403, body: { error: { code: 'credential_on_hold' } } })
  })

  test('refuses a key that has every permission but its own', async () => {
    const { permission } = endpoint
    if (permission === 'any key') return
    const key = permission.startsWith('full access') ? reads['emails:send'] : reads[permission]
    expect(await call(endpoint, path, key)).toMatchObject({ status: 403, body: { error: { code: 'permission_denied' } } })
  })

  test('answers any request with a status of the closed set', async () => {
    const sent: { raw?: string | Buffer; headers?: Record<string, string> }[] = [{}]
    if (endpoint.method !== 'GET') {
      sent.push(
        { raw: '' },
        { raw: '{' },
        { raw: '[1]' },
        { raw: '{"__proto__":1}' },
        { raw: Buffer.from([0xff]) },
        { raw: '{}', headers: { 'content-type': 'a/b' } },
        { raw: 'x'.repeat(1_100_000) },
      )
    }
    for (const more of sent) {
      const answer = await call(endpoint, path, service.testKey, more)
      expect(statuses.filter((one) => one !== 500)).toContain(answer.status)
      if (endpoint.otherTypes === undefined && !endpoint.streams)
        expect(answer.headers.get('x-request-id')).toBe(answer.body.meta.requestId)
      expect(answer.headers.has('x-sendlimit-used')).toBe(endpoint.sends)
    }
  })

  test('takes no query that would break it', async () => {
    for (const query of [
      '?page=%00',
      '?tenantId=%00',
      '?tenantId[]=a',
      '?expand=%ff',
      `?${'a&'.repeat(3000)}`,
      '?__proto__=1',
      '?constructor[prototype]=1',
      '?%',
    ]) {
      const answer = await call(endpoint, path + query, service.testKey)
      expect(
        statuses.filter((one) => one !== 500),
        query,
      ).toContain(answer.status)
    }
  })

  test('answers for an unknown tenant only that it does not exist', async () => {
    const answer = await call(endpoint, `${path}?tenantId=nobody`, service.testKey)
    if (endpoint.takesTenant && endpoint.query) expect(answer).toMatchObject({ status: 404, body: { error: { code: 'not_found' } } })
  })
})
