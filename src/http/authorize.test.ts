import { describe, expect, test } from 'vitest'
import type { Credential } from '#credentials'
import { keyIn, tenantScope } from './authorize.ts'

const credential = (facts: Partial<Credential>): Credential => ({
  id: 1,
  tenantId: null,
  name: 'k',
  mode: 'live',
  hold: false,
  permissions: null,
  keyPrefix: 'svc_live',
  revoked: false,
  imported: false,
  ...facts,
})
const anywhere = { permission: 'emails:read', scope: 'organisation or tenant', takesTenant: true } as const
const asked = (query: object = {}, params: object = {}) => ({ query, params })
const refusal = (code: string) => expect.objectContaining({ code })

describe('the key of a request', () => {
  test.each(['Bearer svc_live_x', 'bearer svc_live_x', 'BEARER   svc_live_x', '  Bearer svc_live_x  '])('is read from %o', (header) => {
    expect(keyIn(header)).toBe('svc_live_x')
  })

  test.each([undefined, '', '   '])('is missing in %o', (header) => {
    expect(() => keyIn(header)).toThrow(refusal('authentication_required'))
  })

  test.each(['svc_live_x', 'Basic abc', 'Bearer', 'Bearer a b'])('is malformed in %o', (header) => {
    expect(() => keyIn(header)).toThrow(refusal('invalid_api_key'))
  })
})

describe('a key', () => {
  test('on hold may do nothing', () => {
    expect(() => tenantScope(credential({ hold: true }), { ...anywhere, permission: 'any key' }, asked())).toThrow(
      refusal('credential_on_hold'),
    )
  })

  test('limited to permissions may only use the operations that they name', () => {
    expect(tenantScope(credential({ permissions: ['emails:read'] }), anywhere, asked())).toBe(null)
    expect(() => tenantScope(credential({ permissions: ['emails:send'] }), anywhere, asked())).toThrow(refusal('permission_denied'))
    expect(() => tenantScope(credential({ permissions: ['emails:read'] }), { ...anywhere, permission: 'full access' }, asked())).toThrow(
      refusal('permission_denied'),
    )
    expect(tenantScope(credential({ permissions: ['emails:read'] }), { ...anywhere, permission: 'any key' }, asked())).toBe(null)
  })

  test('of a tenant does not reach the resources of the organisation', () => {
    expect(() => tenantScope(credential({ tenantId: 'abc' }), { ...anywhere, scope: 'organisation' }, asked())).toThrow(
      refusal('permission_denied'),
    )
    expect(tenantScope(credential({}), { ...anywhere, scope: 'organisation' }, asked())).toBe(null)
  })

  test('of a tenant sees that tenant, and may name no other in path or query', () => {
    const own = credential({ tenantId: 'abc' })
    expect(tenantScope(own, anywhere, asked())).toBe('abc')
    expect(tenantScope(own, anywhere, asked({ tenantId: 'abc' }))).toBe('abc')
    const others = [
      asked({ tenantId: 'abd' }),
      asked({ tenant_id: 'abd' }),
      asked({}, { tenantId: 'abd' }),
      asked({ tenantId: 'abd' }, { tenantId: 'abc' }),
      asked({ tenantId: 'abc', tenant_id: 'abd' }),
    ]
    for (const named of others) {
      expect(() => tenantScope(own, anywhere, named)).toThrow(refusal('tenant_mismatch'))
    }
  })

  test('of the organisation sees all tenants, or the one it names', () => {
    expect(tenantScope(credential({}), anywhere, asked({ tenantId: '' }))).toBe(null)
    expect(tenantScope(credential({}), anywhere, asked({ tenant_id: 'abc' }))).toBe('abc')
    expect(tenantScope(credential({}), anywhere, asked({ tenantId: 'abd' }, { tenantId: 'abc' }))).toBe('abc')
  })
})
