/** Reads the query parameters of Mailgun's lists. A parameter that is not served is refused. */
import { parseAddress } from '#mail'
import { mailgunEvents, type WebhookEvent } from '#webhooks'
import { MailgunRefusal } from './errors.ts'
import { parseMailgunTime } from './read-options.ts'

type Query = Readonly<Record<string, unknown>>

const maxValueLength = 1000
const maxAlternatives = 20

const wrong = (name: string, problem: string) => new MailgunRefusal(400, `${name} parameter ${problem}`, name)

function valuesOf(query: Query, known: readonly string[]): Record<string, string> {
  const values = Object.entries(query).map(([name, value]): [string, string] => {
    const shown = name.slice(0, 60)
    if (!known.includes(name)) throw wrong(shown, 'is not served: docs/mailgun-api.md lists the parameters')
    if (typeof value !== 'string' || value.length > maxValueLength)
      throw wrong(shown, `must be one value of at most ${maxValueLength} characters`)
    return [name, value]
  })
  return Object.fromEntries(values.filter(([, value]) => value !== ''))
}

function numberIn(name: string, text: string | undefined, { usual, least, most }: { usual: number; least: number; most: number }): number {
  if (text === undefined) return usual
  const number = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN
  if (number >= least && number <= most) return number
  throw wrong(name, `must be a number from ${least} to ${most}`)
}

/** Values joined by one operator, as Mailgun's filters have them; quotes and parentheses around all are left out. */
export interface Filter {
  values: readonly string[]
  /** All of the values, or one of them. */
  isAll: boolean
}

const quoted = /^"(.*)"$/s

function filterIn(name: string, text: string | undefined): Filter | undefined {
  if (text === undefined) return undefined
  const inner = text.trim().startsWith('(') && text.trim().endsWith(')') ? text.trim().slice(1, -1) : text
  const [all, any] = [inner.split(/\sAND\s/i), inner.split(/\sOR\s/i)].map((list) => list.map((one) => one.trim().replace(quoted, '$1')))
  if (!all || !any || (all.length > 1 && any.length > 1)) throw wrong(name, 'is served with AND or with OR, not with both')
  const values = all.length > 1 ? all : any
  if (values.length > maxAlternatives) throw wrong(name, `has more than ${maxAlternatives} values`)
  if (values.some((one) => one === '' || /[()"]|^NOT\b/i.test(one))) throw wrong(name, 'is served as values with AND or OR between them')
  return { values, isAll: all.length > 1 }
}

const eventEntries = Object.entries(mailgunEvents) as [WebhookEvent, { event: string; severity?: string }][]
/** Events of Mailgun's that Postrider does not have; a search for them has an empty result. */
const absentEvents = ['accepted', 'rejected', 'stored', 'list_member_uploaded', 'list_member_upload_error', 'list_uploaded']

/** A hold is permanent if its reason is a suppression, and a report if it concerns the address. */
const ofEitherSeverity: readonly WebhookEvent[] = ['MessageHeld', 'MessageBounced']

function kindsIn(event: Filter | undefined, severity: string | undefined): WebhookEvent[] {
  if (severity !== undefined && severity !== 'permanent' && severity !== 'temporary')
    throw wrong('severity', 'must be permanent or temporary')
  const known = new Set([...eventEntries.map(([, name]) => name.event), ...absentEvents])
  const unknown = event?.values.find((one) => !known.has(one))
  if (unknown !== undefined) throw wrong('event', `has an unknown event: ${unknown.slice(0, 60)}`)
  if (event?.isAll) throw wrong('event', 'is served with OR: an event has one type')
  const isOfSeverity = (kind: WebhookEvent, own: string | undefined) =>
    severity === undefined || own === severity || ofEitherSeverity.includes(kind)
  return eventEntries.flatMap(([kind, name]) =>
    (event?.values.includes(name.event) ?? true) && isOfSeverity(kind, name.severity) ? [kind] : [],
  )
}

export interface EventsQuery {
  kinds: WebhookEvent[]
  after: Date
  before: Date
  ascending: boolean
  limit: number
  severity: string | undefined
  recipient: Filter | undefined
  tags: Filter | undefined
  messageId: string | undefined
  /** The parameters, for the URLs of the pages. */
  parameters: Readonly<Record<string, string>>
  /** The position in the log beside which the page begins; undefined: the first page, or the last one. */
  cursor: { xact: string; id: number } | undefined
  /** The page lies before the cursor, or at the end. */
  isBackward: boolean
}

const mostEvents = 300
const usualEvents = 100
/** The year 9999. */
const lastMs = 253_402_300_799_000
const cursorForm = /^(\d{1,20})-(\d{1,15})$/
const largestXact = 2n ** 64n - 1n

function flagIn(name: string, text: string | undefined): boolean | undefined {
  if (text === undefined) return undefined
  if (/^(?:yes|true)$/i.test(text)) return true
  if (/^(?:no|false)$/i.test(text)) return false
  throw wrong(name, 'must be yes or no')
}

function timeIn(name: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const atMs = parseMailgunTime(text.trim())
  if (atMs === undefined) throw wrong(name, 'must be a date of RFC 2822 with a zone, or Unix seconds')
  return atMs
}

const filters = ['event', 'severity', 'recipient', 'tags', 'message-id']
const ranges = ['begin', 'end', 'ascending', 'limit', 'pretty']

/** `page`: made by `eventsPage`; its parameters are those of the first page, and the others in the URL repeat them. */
export function readEventsQuery(query: Query, page: string | undefined): EventsQuery {
  const given = valuesOf(query, [...filters, ...ranges])
  if (page === undefined) return eventsQueryOf(given, undefined, false)
  const { cursor, back, ...parameters } = valuesOf(
    Object.fromEntries(new URLSearchParams(Buffer.from(page, 'base64url').toString('latin1'))),
    [...filters, ...ranges, 'cursor', 'back'],
  )
  const [, xact = '', id = ''] = cursorForm.exec(cursor ?? '') ?? []
  if (cursor !== undefined && (xact === '' || BigInt(xact) > largestXact)) throw new MailgunRefusal(404, 'Page not found')
  return eventsQueryOf(parameters, cursor === undefined ? undefined : { xact, id: Number(id) }, back === 'yes')
}

function eventsQueryOf(values: Record<string, string>, cursor: EventsQuery['cursor'], isBackward: boolean): EventsQuery {
  const [begin, end] = [timeIn('begin', values.begin), timeIn('end', values.end)]
  const ascending = flagIn('ascending', values.ascending) ?? (begin !== undefined && end !== undefined && begin <= end)
  flagIn('pretty', values.pretty)
  // The search goes from `begin` to `end`, in either direction.
  const [first, last] = ascending ? [begin, end] : [end, begin]
  const [after, before] = [Math.min(first ?? 0, last ?? lastMs), Math.max(first ?? 0, last ?? lastMs)]
  return {
    kinds: kindsIn(filterIn('event', values.event), values.severity),
    after: new Date(after),
    before: new Date(before),
    ascending,
    limit: numberIn('limit', values.limit, { usual: usualEvents, least: 1, most: mostEvents }),
    severity: values.severity,
    recipient: filterIn('recipient', values.recipient),
    tags: filterIn('tags', values.tags),
    messageId: values['message-id']?.replace(/^<|>$/g, ''),
    parameters: values,
    cursor,
    isBackward,
  }
}

/** The last part of a page's URL, which clients pass back unread. */
export function eventsPage({ parameters }: EventsQuery, cursor: EventsQuery['cursor'], isBackward: boolean): string {
  const all = {
    ...parameters,
    ...(cursor ? { cursor: `${cursor.xact}-${cursor.id}` } : {}),
    ...(isBackward ? { back: 'yes' } : {}),
  }
  return Buffer.from(new URLSearchParams(all).toString()).toString('base64url')
}

export interface ListQuery {
  limit: number
  /** Empty: the beginning, or the end. */
  from: string
  isBackward: boolean
}

const mostEntries = 1000
const usualEntries = 100

/** The pages of suppression lists, in the order of the addresses. */
export function readSuppressionsQuery(query: Query): ListQuery {
  const { limit, page = 'first', address = '' } = valuesOf(query, ['limit', 'page', 'address'])
  if (!['first', 'next', 'previous', 'last'].includes(page)) throw wrong('page', 'must be first, next, previous or last')
  const isBeside = page === 'next' || page === 'previous'
  if (isBeside && !parseAddress(address)) throw wrong('address', 'must be the address beside which the page begins')
  return {
    limit: numberIn('limit', limit, { usual: usualEntries, least: 1, most: mostEntries }),
    from: isBeside ? address : '',
    isBackward: page === 'previous' || page === 'last',
  }
}

const mostDomains = 1000

export function readDomainsQuery(query: Query): { limit: number; skip: number } {
  const { limit, skip } = valuesOf(query, ['limit', 'skip'])
  return {
    limit: numberIn('limit', limit, { usual: usualEntries, least: 1, most: mostDomains }),
    skip: numberIn('skip', skip, { usual: 0, least: 0, most: 1_000_000 }),
  }
}
