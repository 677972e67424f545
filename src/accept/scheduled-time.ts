/**
 * The time at which an email is to leave, as a caller writes it: ISO 8601 with a zone (RFC 3339 section 5.6), or Unix seconds. It must be in
 * the future and at most 30 days ahead, by the test clock of the tenant for test mail.
 */
import { type Refusal, wrongField } from '#base'

/** ISO 8601, or Unix seconds as a number or as digits, or a time from now. */
export type ScheduledTime = string | number | { inMs: number }

/** A time that was read; the clock that it counts on depends on the tenant. */
export type ScheduledWish = { atMs: number } | { inMs: number }

const dayMs = 86_400_000
export const maxAheadMs = 30 * dayMs
/** An email that is rescheduled again and again keeps its content, and that of its day. */
const maxAfterAcceptanceMs = 60 * dayMs
const maxLength = 40
/** The end of the year 9999. */
const endUnixSeconds = 253_402_300_800

const unixSeconds = /^\d{1,12}(?:\.\d{1,9})?$/
/** Seconds and the colon of the zone are optional, the zone is not: without it, the time would depend on the reader. */
const instant =
  /^(\d{4})-(\d{2})-(\d{2})[T ]([01]\d|2[0-3]):([0-5]\d)(?::([0-5]\d|60)(?:[.,](\d{1,9}))?)?(?:Z|([+-])([01]\d|2[0-3]):?([0-5]\d))$/i

const suggestion = 'Write a time such as 2030-01-31T09:30:00+01:00, or Unix seconds, at most 30 days ahead'

const refusal = (field: string, problem: string): Refusal => wrongField(field, problem, 'validation_error', suggestion)

/** The instant in ms; undefined if it is not one. */
export function parseScheduledTime(given: string | number): number | undefined {
  if (typeof given === 'number') return given >= 0 && given < endUnixSeconds ? Math.round(given * 1000) : undefined
  if (given.length > maxLength) return undefined
  if (unixSeconds.test(given)) return parseScheduledTime(Number(given))
  const parts = instant.exec(given)
  if (!parts) return undefined
  const [, year, month, day, hour, minute, second = '0', fraction = '', sign, zoneHours = '0', zoneMinutes = '0'] = parts
  const midnight = new Date(Date.UTC(Number(year), Number(month) - 1, Number(day)))
  // 30 February would roll over into March, and years below 100 into the twentieth century.
  if (midnight.getUTCFullYear() !== Number(year) || midnight.getUTCMonth() !== Number(month) - 1 || midnight.getUTCDate() !== Number(day))
    return undefined
  const offsetMs = (Number(zoneHours) * 60 + Number(zoneMinutes)) * 60_000 * (sign === '-' ? -1 : 1)
  const timeMs = ((Number(hour) * 60 + Number(minute)) * 60 + Number(second)) * 1000 + Number(fraction.padEnd(3, '0').slice(0, 3))
  return midnight.getTime() + timeMs - offsetMs
}

/** Checks the form only; null if no time is given. Refuses `validation_error`. */
export function checkScheduledTime(given: ScheduledTime | null | undefined, field = 'scheduledAt'): ScheduledWish | null {
  if (given == null) return null
  if (typeof given === 'object') return given
  const atMs = parseScheduledTime(given)
  if (atMs === undefined) throw refusal(field, 'is neither an ISO 8601 time with a zone nor Unix seconds')
  return { atMs }
}

/** The instant in ms, by the clock of `nowMs`. Refuses `validation_error` if it is not ahead, or too far. */
export function resolveScheduledTime(wish: ScheduledWish, nowMs: number, { acceptedAtMs = nowMs, field = 'scheduledAt' } = {}): number {
  const atMs = 'atMs' in wish ? wish.atMs : nowMs + wish.inMs
  if (atMs > nowMs + maxAheadMs) throw refusal(field, 'is more than 30 days ahead')
  if (atMs <= nowMs) throw refusal(field, `is in the past: ${new Date(atMs).toISOString()}`)
  if (atMs > acceptedAtMs + maxAfterAcceptanceMs) throw refusal(field, 'is more than 60 days after the email was accepted')
  return atMs
}
