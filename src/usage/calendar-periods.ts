/**
 * Calendar periods in a time zone (contract section 14.1): converts `this_month` in Kathmandu to two moments. A day begins at local
 * midnight, or at its first moment if the clocks skip midnight.
 */
import { wrongField } from '#base'

/** `fromMs` inclusive, `toMs` exclusive. */
export interface Period {
  fromMs: number
  toMs: number
  /** The first and last day, for a file name. */
  firstDay: string
  lastDay: string
}

const dayMs = 86_400_000

/** A calendar day without a zone: days since 1970-01-01. */
type Day = number

export interface Zone {
  /** The local day and time of day in milliseconds at a moment. */
  local(atMs: number): { day: Day; timeMs: number }
  /** The moment at which a day begins. */
  startOf(day: Day): number
}

/** Refuses `validation_error` for an unknown IANA name. */
export function openZone(name: string): Zone {
  const format = formatOf(name)
  const offsetAt = (atMs: number): number => {
    const parts = Object.fromEntries(format.formatToParts(atMs).map(({ type, value }) => [type, Number(value)]))
    const { year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0 } = parts
    return Date.UTC(year, month - 1, day, hour, minute, second) - Math.floor(atMs / 1000) * 1000
  }
  return {
    local(atMs) {
      const shownMs = atMs + offsetAt(atMs)
      const day = Math.floor(shownMs / dayMs)
      return { day, timeMs: shownMs - day * dayMs }
    },
    startOf(day) {
      const midnightMs = day * dayMs
      const [before, after] = [offsetAt(midnightMs - dayMs), offsetAt(midnightMs + dayMs)]
      const real = [midnightMs - before, midnightMs - after].filter((atMs) => atMs + offsetAt(atMs) === midnightMs)
      // The clocks skipped midnight; the moment of the change is midnight by the old offset.
      return real.length > 0 ? Math.min(...real) : midnightMs - before
    },
  }
}

function formatOf(timeZone: string): Intl.DateTimeFormat {
  const unknown = () => wrongField('timezone', 'must be an IANA time zone, such as Europe/Berlin')
  if (!/^[A-Za-z][A-Za-z0-9_+\-/]{0,63}$/.test(timeZone)) throw unknown()
  try {
    return new Intl.DateTimeFormat('en-US', {
      timeZone,
      calendar: 'gregory',
      numberingSystem: 'latn',
      hourCycle: 'h23',
      year: 'numeric',
      month: 'numeric',
      day: 'numeric',
      hour: 'numeric',
      minute: 'numeric',
      second: 'numeric',
    })
  } catch {
    throw unknown()
  }
}

const dayText = (day: Day) => new Date(day * dayMs).toISOString().slice(0, 10)
const dayOf = (year: number, month: number, day: number): Day => Math.floor(Date.UTC(year, month, day) / dayMs)
/** Monday is 0; 1970-01-01 was a Thursday. */
const weekdayOf = (day: Day) => (((day + 3) % 7) + 7) % 7
const monthOf = (day: Day) => {
  const date = new Date(day * dayMs)
  return { year: date.getUTCFullYear(), month: date.getUTCMonth() }
}

const mondayOf = (day: Day): Day => day - weekdayOf(day)
const firstOfMonth = (day: Day, monthsLater = 0): Day => {
  const { year, month } = monthOf(day)
  return dayOf(year, month + monthsLater, 1)
}

type Days = [first: Day, last: Day]

const named: Readonly<Record<string, (today: Day) => Days>> = {
  today: (today) => [today, today],
  yesterday: (today) => [today - 1, today - 1],
  this_week: (today) => [mondayOf(today), mondayOf(today) + 6],
  last_week: (today) => [mondayOf(today) - 7, mondayOf(today) - 1],
  this_month: (today) => [firstOfMonth(today), firstOfMonth(today, 1) - 1],
  last_month: (today) => [firstOfMonth(today, -1), firstOfMonth(today) - 1],
  last_7_days: (today) => [today - 6, today],
  last_30_days: (today) => [today - 29, today],
  last_90_days: (today) => [today - 89, today],
}

/** An existing day from 1970 on. */
function parseDay(text: string): Day | undefined {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(text)) return undefined
  const day = Math.floor(Date.parse(`${text}T00:00:00Z`) / dayMs)
  return Number.isNaN(day) || dayText(day) !== text || day < 1 ? undefined : day
}

function daysOf(text: string, today: Day): Days | undefined {
  if (Object.hasOwn(named, text)) return named[text]?.(today)
  if (/^\d{4}-\d{2}$/.test(text)) {
    const first = parseDay(`${text}-01`)
    return first === undefined ? undefined : [first, firstOfMonth(first, 1) - 1]
  }
  const [from = '', to = from, ...more] = text.split('..')
  const [first, last] = [parseDay(from), parseDay(to)]
  return first === undefined || last === undefined || first > last || more.length > 0 ? undefined : [first, last]
}

/** Refuses `validation_error` for text other than the periods of contract section 14.1. */
export function readPeriod(text: string, zone: Zone, nowMs: number): Period {
  const days = daysOf(text, zone.local(nowMs).day)
  if (!days) {
    const message = `must be one of ${Object.keys(named).join(', ')}, or a month, a day or two days such as 2026-03, 2026-03-01 and 2026-03-01..2026-03-15`
    throw wrongField('period', message)
  }
  const [first, last] = days
  return { fromMs: zone.startOf(first), toMs: zone.startOf(last + 1), firstDay: dayText(first), lastDay: dayText(last) }
}

/** As many days before a period, from 1970 on; if the period lasts until now or longer, they end at this time of day. */
export function periodBefore({ fromMs, toMs }: Period, zone: Zone, nowMs: number): { fromMs: number; toMs: number } {
  const first = zone.local(fromMs).day
  const days = zone.local(toMs - 1).day - first + 1
  const { day, timeMs } = zone.local(Math.min(Math.max(nowMs, fromMs), toMs))
  const startOf = (before: number) => zone.startOf(Math.max(0, before))
  return { fromMs: startOf(first - days), toMs: Math.min(fromMs, startOf(day - days) + timeMs) }
}

export const granularities = ['hour', 'day', 'week', 'month'] as const
export type Granularity = (typeof granularities)[number]

const maxBuckets = 2400
const hourMs = 3_600_000
const quarterHourMs = 900_000

/** The end of the local hour: an hour later, except where the clocks change by half an hour. */
function hourAfter(startMs: number, zone: Zone): number {
  const isFull = (atMs: number) => zone.local(atMs).timeMs % hourMs === 0
  const hourOf = (atMs: number) => Math.floor(zone.local(atMs).timeMs / hourMs)
  const usualMs = startMs + hourMs
  if (isFull(usualMs)) return usualMs
  let nextMs = startMs + quarterHourMs
  while (!isFull(nextMs) && !(nextMs >= usualMs && hourOf(nextMs) !== hourOf(startMs))) nextMs += quarterHourMs
  return nextMs
}

/** The starts of a period's buckets up to now, the first at its start. Refuses more than 2400. */
export function bucketsOf({ fromMs, toMs }: Period, granularity: Granularity, zone: Zone, nowMs: number): number[] {
  const endMs = Math.min(toMs, nowMs + 1)
  const starts: number[] = []
  const first = zone.local(fromMs).day
  const nth = (index: number): number => {
    if (granularity === 'hour') return hourAfter(starts.at(-1) ?? fromMs, zone)
    if (granularity === 'day') return zone.startOf(first + index)
    if (granularity === 'week') return zone.startOf(mondayOf(first) + index * 7)
    return zone.startOf(firstOfMonth(first, index))
  }
  for (let index = 0, startMs = fromMs; startMs < endMs; startMs = nth(++index)) {
    if (starts.length === maxBuckets) throw wrongField('granularity', `divides this period into more than ${maxBuckets} buckets`)
    if (startMs > (starts.at(-1) ?? -1)) starts.push(startMs)
  }
  return starts
}
