import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { canonicalJson, coveredPath, fingerprint } from './request-fingerprint.ts'

const shuffled = (value: unknown): unknown => {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map(shuffled)
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([key, one]) => [key, shuffled(one)]),
  )
}

describe('a fingerprint', () => {
  test('does not depend on the order of keys', () => {
    expect(fingerprint('POST', '/v1/emails', { a: 1, b: { c: [1], d: null } })).toEqual(
      fingerprint('POST', '/v1/emails', { b: { d: null, c: [1] }, a: 1 }),
    )
  })

  test('distinguishes bodies, paths and methods', () => {
    const base = fingerprint('POST', '/v1/emails', { to: ['a'] })
    expect(fingerprint('POST', '/v1/emails/raw', { to: ['a'] })).not.toEqual(base)
    expect(fingerprint('PUT', '/v1/emails', { to: ['a'] })).not.toEqual(base)
    expect(fingerprint('POST', '/v1/emails', { to: ['a', 'b'] })).not.toEqual(base)
  })

  test('keeps the order of lists, and null apart from absent', () => {
    expect(canonicalJson([2, 1])).toBe('[2,1]')
    expect(canonicalJson({ a: null })).not.toBe(canonicalJson({}))
  })

  test('takes a key named __proto__ as any other', () => {
    expect(canonicalJson(JSON.parse('{"b":1,"__proto__":{"c":2}}'))).toBe('{"__proto__":{"c":2},"b":1}')
  })
})

test('only a key of the organisation, and only one that names a tenant, has a fingerprint with it', () => {
  const covered = (own: string | null, named: string | null) =>
    coveredPath('/v1/emails', { credential: { tenantId: own }, tenantId: named })
  expect([covered(null, null), covered('shop', 'shop')]).toEqual(['/v1/emails', '/v1/emails'])
  expect(covered(null, 'shop')).not.toBe(covered(null, 'other'))
})

describe('always', () => {
  test('canonical JSON means the same and ignores the order of keys', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const plain: unknown = JSON.parse(JSON.stringify(value))
        expect(JSON.parse(canonicalJson(plain))).toEqual(plain)
        expect(canonicalJson(shuffled(plain))).toBe(canonicalJson(plain))
      }),
    )
  })
})
