/** Times of a zone as values of date fields, and back. Apart from the browser, so that tests need no document. */

export const isZone = (name: string): boolean => {
  try {
    new Intl.DateTimeFormat(undefined, { timeZone: name })
    return true
  } catch {
    return false
  }
}

const minuteLength = 16

/** The clock of `zone` at this instant, as `2026-11-24T09:30`. */
export function clockOf(zone: string, atMs: number): string {
  const parts = new Intl.DateTimeFormat('en-GB', {
    timeZone: zone,
    hourCycle: 'h23',
    year: 'numeric',
    month: '2-digit',
    day: '2-digit',
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
  }).formatToParts(atMs)
  const of = (type: Intl.DateTimeFormatPartTypes) => parts.find((part) => part.type === type)?.value ?? ''
  return `${of('year').padStart(4, '0')}-${of('month')}-${of('day')}T${of('hour')}:${of('minute')}:${of('second')}`
}

/** The value of a date field. */
export const fieldOf = (zone: string, atMs: number): string => clockOf(zone, atMs).slice(0, minuteLength)

const aheadMs = (zone: string, atMs: number) => Date.parse(`${clockOf(zone, atMs)}Z`) - Math.floor(atMs / 1000) * 1000

/**
 * The instant at which the clock of `zone` shows the value of a date field; undefined for another text. A time that the clock skips in
 * spring is read as one hour later, and of two equal times in autumn the first is meant.
 */
export function instantOf(zone: string, field: string): Date | undefined {
  const asUtcMs = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d)?$/.test(field) ? Date.parse(`${field}Z`) : Number.NaN
  if (Number.isNaN(asUtcMs)) return undefined
  const dayMs = 86_400_000
  const offsets = [aheadMs(zone, asUtcMs - dayMs), aheadMs(zone, asUtcMs + dayMs)]
  const candidates = offsets.map((offset) => asUtcMs - offset)
  return new Date(candidates.find((atMs) => aheadMs(zone, atMs) === asUtcMs - atMs) ?? Math.max(...candidates))
}

/** The beginning of the day in `zone`. */
export const startOfDay = (zone: string, atMs: number): Date =>
  instantOf(zone, `${clockOf(zone, atMs).slice(0, 'yyyy-mm-dd'.length)}T00:00`) ?? new Date(atMs)
