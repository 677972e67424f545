/** Times of a chosen time zone as values of date fields. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { clockOf, fieldOf, instantOf, isZone, startOfDay } from '../../dashboard/src/parts/zoned-times.ts'

const iso = (zone: string, field: string) => instantOf(zone, field)?.toISOString()

describe('a date field', () => {
  test.each([
    ['UTC', '2026-11-24T09:30', '2026-11-24T09:30:00.000Z'],
    ['Europe/Berlin', '2026-11-24T09:30', '2026-11-24T08:30:00.000Z'],
    ['Europe/Berlin', '2026-07-01T00:00', '2026-06-30T22:00:00.000Z'],
    ['Asia/Kathmandu', '2026-11-24T09:30', '2026-11-24T03:45:00.000Z'],
    ['America/St_Johns', '2026-01-01T00:00', '2026-01-01T03:30:00.000Z'],
    ['Pacific/Kiritimati', '2026-01-01T00:00', '2025-12-31T10:00:00.000Z'],
  ])('of %s at %s is an instant', (zone, field, instant) => {
    expect(iso(zone, field)).toBe(instant)
    expect(fieldOf(zone, Date.parse(instant))).toBe(field)
  })

  test('of an hour that the clock skips is one hour later, and of an hour that comes twice is the first', () => {
    expect(iso('Europe/Berlin', '2026-03-29T02:30')).toBe('2026-03-29T01:30:00.000Z')
    expect(iso('Europe/Berlin', '2026-10-25T02:30')).toBe('2026-10-25T00:30:00.000Z')
  })

  test('that is no time has no instant', () => {
    for (const text of ['', 'yesterday', '2026-13-01T00:00', '2026-11-24']) expect(instantOf('UTC', text)).toBeUndefined()
  })

  test('leads back to itself in every zone, whenever it was made from an instant', () => {
    const zones = fc.constantFrom(...Intl.supportedValuesOf('timeZone'))
    const instants = fc.integer({ min: Date.parse('2001-01-01T00:00Z') / 60_000, max: Date.parse('2060-01-01T00:00Z') / 60_000 })
    fc.assert(
      fc.property(zones, instants, (zone, minutes) => {
        const field = fieldOf(zone, minutes * 60_000)
        const back = instantOf(zone, field)
        return back !== undefined && fieldOf(zone, back.getTime()) === field
      }),
      { numRuns: 300 },
    )
  })
})

test('a day begins at midnight of the zone', () => {
  const atMs = Date.parse('2026-11-24T01:00:00Z')
  expect(startOfDay('America/New_York', atMs).toISOString()).toBe('2026-11-23T05:00:00.000Z')
  expect(startOfDay('Asia/Tokyo', atMs).toISOString()).toBe('2026-11-23T15:00:00.000Z')
  expect(clockOf('UTC', atMs)).toBe('2026-11-24T01:00:00')
})

test('names of zones are distinguished from other texts', () => {
  expect(['Europe/Berlin', 'UTC', 'Mars/Olympus', ''].map(isZone)).toEqual([true, true, false, false])
})
