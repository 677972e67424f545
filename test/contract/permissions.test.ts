/** Permissions: every endpoint with every kind of key. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { permissions } from '#credentials'
import { type Endpoint, pathsOf, routes } from '#http'
import { missingEndpoints, readContractEndpoints, type ServedDocument } from '../../tools/api-coverage.ts'
import { openApiDocument } from '../../tools/openapi.ts'
import { type Service, startService } from '../support/in-process-service.ts'

const everywhere = routes.flatMap((endpoint) => pathsOf(endpoint).map((path) => [`${endpoint.method} ${path}`, endpoint, path] as const))

let service: Service
let own: string
let other: string
let single: Record<string, string>
let ofTenant: string
beforeAll(async () => {
  service = await startService({ rateLimit: null })
  own = await service.makeTenant('Own')
  other = await service.makeTenant('Other')
  single = Object.fromEntries(
    await Promise.all(permissions.map(async (one) => [one, await service.makeKey({ permissions: [one] })] as const)),
  )
  ofTenant = await service.makeKey({ tenantId: own })
})
afterAll(() => service.stop())

const call = ({ method }: Endpoint, path: string, key: string, tenantId: string) =>
  service.call(method, path.replace('{tenantId}', tenantId).replace(/\{\w+\}/g, '0'.repeat(22)), { key })
const codeOf = (answer: Awaited<ReturnType<Service['call']>>) => answer.body.error?.code

test('every endpoint of the contract is served', async () => {
  expect(missingEndpoints(readContractEndpoints(), (await openApiDocument()) as ServedDocument)).toEqual([])
})

describe.each(everywhere)('%s', (_, endpoint, path) => {
  test('refuses a text that is no key, and a key that does not exist', async () => {
    for (const key of ['', 'x', 'svc_live_short', 'svc_prod_00000000000000000000000000000000', `svc_live_${'0'.repeat(32)}`]) {
      const answer = await call(endpoint, path, key, own)
      expect(answer.status, key).toBe(401)
      expect(codeOf(answer), key).toMatch(/^(invalid_api_key|authentication_required)$/)
    }
  })

  test('lets pass the permission it needs, and no other alone', async () => {
    for (const [permission, key] of Object.entries(single)) {
      const passes = endpoint.permission === 'any key' || endpoint.permission === permission
      expect((await call(endpoint, path, key, own)).status === 403, permission).toBe(!passes)
    }
  })

  test('lets a key of a tenant reach its tenant only', async () => {
    const mine = codeOf(await call(endpoint, path, ofTenant, own))
    const needsOrganisation =
      endpoint.scope === 'organisation' || (endpoint.scope === 'organisation, or the tenant in the path' && !path.startsWith('/tenants/'))
    if (needsOrganisation) expect(mine).toBe('permission_denied')
    else expect(['permission_denied', 'tenant_mismatch']).not.toContain(mine)
    if (!endpoint.takesTenant) return
    const inPath = path.includes('{tenantId}')
    const theirs = await call(endpoint, inPath ? path : `${path}?tenantId=${other}`, ofTenant, other)
    expect(codeOf(theirs)).toBe(needsOrganisation ? 'permission_denied' : 'tenant_mismatch')
  })

  test('lets a key of the organisation with full access pass', async () => {
    // The endpoint that deletes a tenant gets a tenant of its own.
    const tenantId = endpoint.name === 'tenants.delete' ? await service.makeTenant('Spare') : own
    const answer = await call(endpoint, path, service.testKey, tenantId)
    expect(answer.status).not.toBe(401)
    expect(answer.status).not.toBe(403)
  })
})
