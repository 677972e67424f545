/** Reads the parameters of a message that begin with `o:`; one that would change the delivery and is not served is refused. */
import { parseScheduledTime, type TrackingWish } from '#accept'
import type { JsonFields } from '#vendors'

const maxTags = 10
const maxTagLength = 255
const maxOptionLength = 100

const flags = new Map([
  ['yes', true],
  ['true', true],
  ['no', false],
  ['false', false],
])

function flagIn(fields: JsonFields, name: string): boolean | undefined {
  const value = fields.value(name)
  if (value === undefined || value === '' || typeof value === 'boolean') return value === '' ? undefined : value
  const flag = typeof value === 'string' ? flags.get(value.toLowerCase()) : undefined
  if (flag === undefined) throw fields.wrong(name, 'must be yes or no')
  return flag
}

/** Only links in HTML are tracked, so that `htmlonly` is the same as `yes`. */
function trackingIn(fields: JsonFields, name: string): boolean | undefined {
  return fields.value(name) === 'htmlonly' ? true : flagIn(fields, name)
}

function readTracking(fields: JsonFields): TrackingWish {
  const all = trackingIn(fields, 'o:tracking')
  const [opens, clicks] = [flagIn(fields, 'o:tracking-opens'), trackingIn(fields, 'o:tracking-clicks')]
  return all === false ? { opens: false, clicks: false } : { opens: opens ?? all, clicks: clicks ?? all }
}

const months = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec']
/** A date of RFC 2822 section 3.3, with a numeric zone or UTC. */
const mailDate = /^(?:[a-z]{3},\s*)?(\d{1,2})\s+([a-z]{3})\s+(\d{4})\s+(\d\d:\d\d(?::\d\d)?)\s+(?:([+-]\d\d)(\d\d)|gmt|utc?|z)$/i

/** The instant in ms of a date as mail has it, or of Unix seconds; undefined for other text. */
export function parseMailgunTime(text: string): number | undefined {
  const [, day = '', month = '', year, time, hours, minutes] = mailDate.exec(text) ?? []
  const number = months.indexOf(month.toLowerCase()) + 1
  if (number === 0) return /^\d{1,12}(?:\.\d{1,9})?$/.test(text) ? parseScheduledTime(text) : undefined
  const zone = hours === undefined ? 'Z' : `${hours}:${minutes}`
  return parseScheduledTime(`${year}-${String(number).padStart(2, '0')}-${day.padStart(2, '0')}T${time}${zone}`)
}

/** A time that has passed means at once, as at Mailgun. */
function deliveryTimeIn(fields: JsonFields, nowMs: number): number | undefined {
  const text = fields.text('o:deliverytime', maxOptionLength)?.trim()
  if (!text) return undefined
  const atMs = parseMailgunTime(text)
  if (atMs === undefined) throw fields.wrong('o:deliverytime', 'must be a date of RFC 2822 with a zone, or Unix seconds')
  return atMs <= nowMs ? undefined : atMs / 1000
}

/** Settings with the only value that is served. */
const fixed: Readonly<Record<string, boolean>> = {
  'o:dkim': true,
  'o:require-tls': false,
  'o:skip-verification': false,
}

export interface MailgunOptions {
  tags: string[]
  tracking: TrackingWish
  /** Unix seconds. */
  scheduledAt: number | undefined
  /** Deliver to the simulator. */
  isTest: boolean
}

export function readOptions(fields: JsonFields, nowMs: number): MailgunOptions {
  for (const [name, served] of Object.entries(fixed)) {
    const wanted = flagIn(fields, name)
    if (wanted !== undefined && wanted !== served) throw fields.wrong(name, `is served only as ${served ? 'yes' : 'no'}`)
  }
  const tags = fields.texts('o:tag', maxTags, maxTagLength).filter((one) => one !== '')
  return {
    tags: [...new Set(tags)],
    tracking: readTracking(fields),
    scheduledAt: deliveryTimeIn(fields, nowMs),
    isTest: flagIn(fields, 'o:testmode') ?? false,
  }
}
