import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { bucketsOf, openZone, periodBefore, readPeriod } from './calendar-periods.ts'

const iso = (ms: number) => new Date(ms).toISOString()
const periodOf = (text: string, zone: string, now: string) => {
  const { fromMs, toMs } = readPeriod(text, openZone(zone), Date.parse(now))
  return [iso(fromMs), iso(toMs)]
}

describe('a period', () => {
  test.each([
    ['today', 'UTC', '2026-03-04T10:00:00Z', '2026-03-04T00:00:00.000Z', '2026-03-05T00:00:00.000Z'],
    ['yesterday', 'UTC', '2026-03-01T10:00:00Z', '2026-02-28T00:00:00.000Z', '2026-03-01T00:00:00.000Z'],
    ['this_week', 'UTC', '2026-03-01T10:00:00Z', '2026-02-23T00:00:00.000Z', '2026-03-02T00:00:00.000Z'],
    ['last_week', 'UTC', '2026-03-02T00:00:00Z', '2026-02-23T00:00:00.000Z', '2026-03-02T00:00:00.000Z'],
    ['this_month', 'UTC', '2026-12-31T23:59:59Z', '2026-12-01T00:00:00.000Z', '2027-01-01T00:00:00.000Z'],
    ['last_month', 'UTC', '2026-01-15T10:00:00Z', '2025-12-01T00:00:00.000Z', '2026-01-01T00:00:00.000Z'],
    ['last_7_days', 'UTC', '2026-03-04T10:00:00Z', '2026-02-26T00:00:00.000Z', '2026-03-05T00:00:00.000Z'],
    ['2024-02', 'UTC', '2026-03-04T10:00:00Z', '2024-02-01T00:00:00.000Z', '2024-03-01T00:00:00.000Z'],
    ['2026-03-01..2026-03-15', 'UTC', '2026-03-04T10:00:00Z', '2026-03-01T00:00:00.000Z', '2026-03-16T00:00:00.000Z'],
    ['today', 'Asia/Kathmandu', '2026-03-04T18:14:00Z', '2026-03-03T18:15:00.000Z', '2026-03-04T18:15:00.000Z'],
    ['today', 'Asia/Kathmandu', '2026-03-04T18:15:00Z', '2026-03-04T18:15:00.000Z', '2026-03-05T18:15:00.000Z'],
    ['today', 'America/St_Johns', '2026-07-01T12:00:00Z', '2026-07-01T02:30:00.000Z', '2026-07-02T02:30:00.000Z'],
    // Days of 23 and 25 hours.
    ['2026-03-29', 'Europe/Berlin', '2026-04-04T10:00:00Z', '2026-03-28T23:00:00.000Z', '2026-03-29T22:00:00.000Z'],
    ['2026-10-25', 'Europe/Berlin', '2026-11-04T10:00:00Z', '2026-10-24T22:00:00.000Z', '2026-10-25T23:00:00.000Z'],
    // The first day has no midnight, and the second date was skipped entirely.
    ['2018-11-04', 'America/Sao_Paulo', '2026-04-04T10:00:00Z', '2018-11-04T03:00:00.000Z', '2018-11-05T02:00:00.000Z'],
    ['2011-12-30', 'Pacific/Apia', '2026-04-04T10:00:00Z', '2011-12-30T10:00:00.000Z', '2011-12-30T10:00:00.000Z'],
  ])('%s in %s at %s is from %s to %s', (text, zone, now, from, to) => {
    expect(periodOf(text, zone, now)).toEqual([from, to])
  })

  test.each([
    '',
    'tomorrow',
    '2026',
    '2026-13',
    '2026-02-30',
    '2026-1-1',
    '2026-03-02..2026-03-01',
    '2026-03-01..',
    '..',
    'a..b',
    'constructor',
    '0000-01',
  ])('%o is refused by its name', (text) => {
    expect(() => periodOf(text, 'UTC', '2026-03-04T10:00:00Z')).toThrow(
      expect.objectContaining({ code: 'validation_error', field: 'period' }),
    )
  })

  test.each(['', 'Mars/Phobos', '+01:00', 'Europe/Berlin\0', '../etc', 'x'.repeat(100)])('the zone %o is refused by its name', (zone) => {
    expect(() => openZone(zone)).toThrow(expect.objectContaining({ code: 'validation_error', field: 'timezone' }))
  })

  test.each([
    ['today', 'UTC', '2026-03-04T10:00:00Z', '2026-03-03T00:00:00.000Z', '2026-03-03T10:00:00.000Z'],
    ['last_7_days', 'UTC', '2026-03-04T10:00:00Z', '2026-02-19T00:00:00.000Z', '2026-02-25T10:00:00.000Z'],
    ['2026-02', 'UTC', '2026-03-04T10:00:00Z', '2026-01-04T00:00:00.000Z', '2026-02-01T00:00:00.000Z'],
    ['this_month', 'UTC', '2026-03-01T00:00:00Z', '2026-01-29T00:00:00.000Z', '2026-01-29T00:00:00.000Z'],
    // The day before has 23 hours. As much of it counts as has passed of today.
    ['today', 'Europe/Berlin', '2026-03-30T10:00:00Z', '2026-03-28T23:00:00.000Z', '2026-03-29T11:00:00.000Z'],
  ])('before %s in %s at %s is from %s to %s', (text, zone, now, from, to) => {
    const [at, nowMs] = [openZone(zone), Date.parse(now)]
    const before = periodBefore(readPeriod(text, at, nowMs), at, nowMs)
    expect([iso(before.fromMs), iso(before.toMs)]).toEqual([from, to])
  })

  test('follows the one before it without a gap, in every zone', () => {
    const zones = Intl.supportedValuesOf('timeZone')
    const days = fc.integer({ min: 11_000, max: 25_000 })
    fc.assert(
      fc.property(fc.constantFrom(...zones), days, (name, day) => {
        const zone = openZone(name)
        const [start, next] = [zone.startOf(day), zone.startOf(day + 1)]
        expect(next).toBeGreaterThanOrEqual(start)
        if (next > start) {
          expect(zone.local(start).day).toBe(day)
          expect(zone.local(next - 1).day).toBe(day)
          expect(zone.local(start - 1).day).toBeLessThan(day)
        }
      }),
      { numRuns: 500 },
    )
  })
})

describe('buckets', () => {
  const buckets = (text: string, zone: string, granularity: 'hour' | 'day' | 'week' | 'month', now: string) => {
    const open = openZone(zone)
    return bucketsOf(readPeriod(text, open, Date.parse(now)), granularity, open, Date.parse(now)).map(iso)
  }

  test('of a day put forward are 23 hours', () => {
    expect(buckets('2026-03-29', 'Europe/Berlin', 'hour', '2026-05-01T00:00:00Z')).toHaveLength(23)
    expect(buckets('2026-10-25', 'Europe/Berlin', 'hour', '2026-11-01T00:00:00Z')).toHaveLength(25)
  })

  test('are the hours that clocks show, though they are put by half an hour', () => {
    const of = (day: string) => buckets(day, 'Australia/Lord_Howe', 'hour', '2027-01-01T00:00:00Z').map((text) => text.slice(11, 16))
    const [back, forward] = [of('2026-04-05'), of('2026-10-04')]
    expect(back.slice(0, 4)).toEqual(['13:00', '14:00', '15:30', '16:30'])
    expect(back).toHaveLength(24)
    expect(forward.slice(0, 5)).toEqual(['13:30', '14:30', '15:30', '16:00', '17:00'])
    expect(forward).toHaveLength(24)
    expect(buckets('2026-06-01', 'Asia/Kathmandu', 'hour', '2027-01-01T00:00:00Z').slice(0, 2)).toEqual([
      '2026-05-31T18:15:00.000Z',
      '2026-05-31T19:15:00.000Z',
    ])
  })

  test('begin with the period, then at Mondays and firsts, and end with now', () => {
    expect(buckets('2026-03', 'UTC', 'week', '2026-03-20T00:00:00Z')).toEqual([
      '2026-03-01T00:00:00.000Z',
      '2026-03-02T00:00:00.000Z',
      '2026-03-09T00:00:00.000Z',
      '2026-03-16T00:00:00.000Z',
    ])
    expect(buckets('2026-01-15..2026-03-02', 'UTC', 'month', '2026-05-20T00:00:00Z')).toEqual([
      '2026-01-15T00:00:00.000Z',
      '2026-02-01T00:00:00.000Z',
      '2026-03-01T00:00:00.000Z',
    ])
    expect(buckets('2030-01', 'UTC', 'day', '2026-05-20T00:00:00Z')).toEqual([])
  })

  test('are at most 2400', () => {
    expect(buckets('2026-01-01..2026-04-10', 'UTC', 'hour', '2027-01-01T00:00:00Z')).toHaveLength(2400)
    expect(() => buckets('2026-01-01..2026-04-11', 'UTC', 'hour', '2027-01-01T00:00:00Z')).toThrow(
      expect.objectContaining({ code: 'validation_error', field: 'granularity' }),
    )
  })
})
