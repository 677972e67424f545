import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Refusal } from '#base'
import { checkScheduledTime, maxAheadMs, parseScheduledTime, resolveScheduledTime, type ScheduledWish } from './scheduled-time.ts'

const dayMs = 86_400_000
const anInstant = fc.date({ min: new Date('1970-01-01T00:00:00Z'), max: new Date('9999-12-31T23:59:59.999Z'), noInvalidDate: true })
const aZone = fc.integer({ min: -23 * 60 - 59, max: 23 * 60 + 59 })

/** The instant as it is written in a zone, which is given in minutes east of Greenwich. */
function writtenIn(at: Date, zone: number, colon: string): string {
  const [hours, minutes] = [Math.trunc(Math.abs(zone) / 60), Math.abs(zone) % 60].map((one) => String(one).padStart(2, '0'))
  return `${new Date(at.getTime() + zone * 60_000).toISOString().slice(0, -1)}${zone < 0 ? '-' : '+'}${hours}${colon}${minutes}`
}

test('an instant is read the same in every zone', () => {
  fc.assert(
    fc.property(anInstant, aZone, fc.constantFrom(':', ''), (at, zone, colon) => {
      const local = at.getTime() + zone * 60_000
      fc.pre(local >= 0 && local < Date.parse('9999-12-31T23:59:59.999Z'))
      expect(parseScheduledTime(writtenIn(at, zone, colon))).toBe(at.getTime())
      expect(parseScheduledTime(at.toISOString())).toBe(at.getTime())
    }),
  )
})

test('Unix seconds are read from a number and from digits', () => {
  fc.assert(
    fc.property(anInstant, (at) => {
      const seconds = at.getTime() / 1000
      expect(parseScheduledTime(seconds)).toBe(at.getTime())
      expect(parseScheduledTime(seconds.toFixed(3))).toBe(at.getTime())
    }),
  )
})

test('any other text or number is a refusal with a suggestion, never another error', () => {
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.double(), fc.stringMatching(/^[-+TZ:. 0-9]{0,45}$/)), (given) => {
      try {
        const read = checkScheduledTime(given) as { atMs: number }
        expect(Number.isSafeInteger(read.atMs)).toBe(true)
      } catch (error) {
        expect(error).toBeInstanceOf(Refusal)
        expect(error).toMatchObject({ code: 'validation_error', field: 'scheduledAt', suggestion: expect.stringContaining('2030-01-31T') })
      }
    }),
  )
})

test.each([
  ['2030-01-31T09:30:00'],
  ['2030-01-31'],
  ['2030-02-30T09:30:00Z'],
  ['2029-02-29T09:30:00Z'],
  ['2030-13-01T09:30:00Z'],
  ['2030-01-31T24:00:00Z'],
  ['2030-01-31T09:60:00Z'],
  ['2030-01-31T09:30:00+24:00'],
  ['0050-01-31T09:30:00Z '],
  ['tomorrow'],
  [''],
  [-1],
  [Number.NaN],
  [Number.POSITIVE_INFINITY],
  [1e15],
])('%j is not a time', (given) => {
  expect(parseScheduledTime(given)).toBeUndefined()
})

test('only times from now to 30 days ahead, and to 60 days after acceptance, can be scheduled', () => {
  fc.assert(
    fc.property(anInstant, fc.integer({ min: -2 * maxAheadMs, max: 2 * maxAheadMs }), fc.nat(90 * dayMs), (now, aheadMs, ageMs) => {
      const acceptedAtMs = now.getTime() - ageMs
      const isAllowed = aheadMs > 0 && aheadMs <= 30 * dayMs && aheadMs + ageMs <= 60 * dayMs
      const wishes: ScheduledWish[] = [{ atMs: now.getTime() + aheadMs }, { inMs: aheadMs }]
      for (const wish of wishes) {
        const resolve = () => resolveScheduledTime(wish, now.getTime(), { acceptedAtMs })
        if (isAllowed) expect(resolve()).toBe(now.getTime() + aheadMs)
        else expect(resolve).toThrow(Refusal)
      }
    }),
  )
})
