import { describe, expect, test } from 'vitest'
import { instantOf, namedTenant, readInstant } from './common-schemas.ts'

describe('an instant in a query', () => {
  test.each([
    ['1772357400', '2026-03-01T09:30:00.000Z'],
    ['1772357400.412', '2026-03-01T09:30:00.412Z'],
    ['0', '1970-01-01T00:00:00.000Z'],
    ['2026-03-01', '2026-03-01T00:00:00.000Z'],
    ['2026-03-01T09:30:00Z', '2026-03-01T09:30:00.000Z'],
    ['2026-03-01T09:30:00.5z', '2026-03-01T09:30:00.500Z'],
    ['2026-03-01T09:30', '2026-03-01T09:30:00.000Z'],
    ['2026-03-01T11:30:00+02:00', '2026-03-01T09:30:00.000Z'],
    ['2026-03-01T11:30:00 02:00', '2026-03-01T09:30:00.000Z'],
    ['2026-03-01T04:00:00-0530', '2026-03-01T09:30:00.000Z'],
    ['2026-03-01T11:30:00+02', '2026-03-01T09:30:00.000Z'],
    ['2026-03-01T04:30:00.25-05', '2026-03-01T09:30:00.250Z'],
  ])('%s is understood', (text, iso) => {
    expect(readInstant('after', text).toISOString()).toBe(iso)
  })

  test.each([
    'yesterday',
    '-5',
    '1e9',
    '2026-02-30',
    '2026-13-01',
    '2026-03-01T25:00:00Z',
    '2026-03-01T09:30:00+99:99',
    '2026-03-01T09:30:00+02:',
    '2026-03-01T09:30:00+2',
    '9999999999999',
    '2026-03-01T',
    '',
  ])('%o is refused by its name', (text) => {
    expect(() => readInstant('after', text)).toThrow(expect.objectContaining({ code: 'validation_error', field: 'after' }))
  })

  test('is read in seconds with milliseconds, and as ISO 8601', () => {
    expect(instantOf(new Date(1_772_357_400_412))).toEqual({ timestamp: 1_772_357_400.412, timestampIso: '2026-03-01T09:30:00.412Z' })
  })
})

describe('a tenant named in a request', () => {
  test('is the one that an organisation-level key names', () => {
    expect(namedTenant('abc1', { tenantId: null })).toBe('abc1')
    expect(namedTenant(null, { tenantId: null })).toBe(null)
  })

  test('must be the own one for a tenant-scoped key', () => {
    expect(namedTenant('abc1', { tenantId: 'abc1' })).toBe('abc1')
    expect(() => namedTenant('abc2', { tenantId: 'abc1' })).toThrow(expect.objectContaining({ code: 'tenant_mismatch' }))
  })

  test('that cannot exist is not looked for', () => {
    for (const id of ['', 'A', '1a', 'a b', 'a\0', 'x'.repeat(65)])
      expect(() => namedTenant(id, { tenantId: null })).toThrow(expect.objectContaining({ code: 'not_found' }))
  })
})
