/** Reads the query parameters of Postmark's lists. Their names are compared without regard to case, as in Postmark. */
import { PostmarkRefusal } from './errors.ts'

const maxCount = 500
const maxReach = 10_000
const maxValueLength = 500

type Query = Readonly<Record<string, unknown>>

const wrong = (name: string, problem: string) => new PostmarkRefusal(300, `The '${name}' parameter ${problem}.`)

/** The values by name in lower case; a parameter that is not among `known` is refused. */
function valuesOf(query: Query, known: readonly string[]): Record<string, string> {
  const values = Object.entries(query).map(([given, value]): [string, string] => {
    const name = given.toLowerCase()
    const shown = given.slice(0, 60)
    if (!known.includes(name) && !(known.includes('metadata_') && name.startsWith('metadata_')))
      throw new PostmarkRefusal(403, `The '${shown}' parameter is not served: docs/postmark-api.md lists the parameters.`)
    if (typeof value !== 'string' || value.length > maxValueLength)
      throw wrong(shown, `must be one value of at most ${maxValueLength} characters`)
    return [name.startsWith('metadata_') ? `metadata_${given.slice('metadata_'.length)}` : name, value]
  })
  return Object.fromEntries(values)
}

export interface PostmarkPage {
  count: number
  offset: number
}

function pageIn({ count, offset = '0' }: Record<string, string>): PostmarkPage {
  const read = (name: string, text: string | undefined) => {
    if (text !== undefined && /^\d{1,6}$/.test(text)) return Number(text)
    throw wrong(name, 'must be a number')
  }
  const page = { count: read('count', count), offset: read('offset', offset) }
  if (page.count < 1 || page.count > maxCount) throw wrong('count', `must be between 1 and ${maxCount}`)
  if (page.count + page.offset > maxReach) throw wrong('offset', `and count must be at most ${maxReach} together`)
  return page
}

/** A date or a time; a date without time is the day's beginning, or its end. In UTC. */
function timeIn(name: string, text: string | undefined, isEnd: boolean): Date | undefined {
  if (text === undefined || text === '') return undefined
  const isDay = /^\d{4}-\d\d-\d\d$/.test(text)
  const isTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,7})?)?(Z|[+-]\d\d:\d\d)?$/.test(text)
  const at = new Date(
    isDay ? `${text}T${isEnd ? '23:59:59.999' : '00:00:00'}Z` : isTime && !/(Z|[+-]\d\d:\d\d)$/.test(text) ? `${text}Z` : text,
  )
  if ((isDay || isTime) && !Number.isNaN(at.getTime())) return at
  throw wrong(name, 'must be a date such as 2026-11-23')
}

export interface MessageQuery extends PostmarkPage {
  recipient: string | undefined
  sender: string | undefined
  tag: string | undefined
  words: string[] | undefined
  messages: 'any' | 'queued' | 'sent'
  after: Date | undefined
  before: Date | undefined
  metadata: Record<string, string> | undefined
}

const maxWords = 10

/** `GET /messages/outbound`. */
export function readMessageQuery(query: Query): MessageQuery {
  const values = valuesOf(query, [
    'count',
    'offset',
    'recipient',
    'fromemail',
    'tag',
    'subject',
    'status',
    'fromdate',
    'todate',
    'messagestream',
    'metadata_',
  ])
  const { recipient, fromemail, tag, subject, status, fromdate, todate, messagestream } = values
  const metadata = Object.entries(values).flatMap(([name, value]) => (name.startsWith('metadata_') ? [[name.slice(9), value]] : []))
  if (messagestream && messagestream !== 'outbound') metadata.push(['MessageStream', messagestream])
  const words = subject?.split(/\s+/).filter((one) => one !== '')
  if (words && words.length > maxWords) throw wrong('subject', `has more than ${maxWords} words`)
  const known = status?.toLowerCase()
  if (known && known !== 'queued' && known !== 'sent' && known !== 'processed') throw wrong('status', 'must be queued or sent')
  return {
    ...pageIn(values),
    recipient: recipient || undefined,
    sender: fromemail || undefined,
    tag: tag || undefined,
    words: words && words.length > 0 ? words : undefined,
    messages: known ? (known === 'queued' ? 'queued' : 'sent') : 'any',
    after: timeIn('fromdate', fromdate, false),
    before: timeIn('todate', todate, true),
    metadata: metadata.length > 0 ? (Object.fromEntries(metadata) as Record<string, string>) : undefined,
  }
}

/** `GET /bounces`. */
export function readBounceQuery(query: Query) {
  const values = valuesOf(query, ['count', 'offset', 'emailfilter', 'tag', 'messageid', 'fromdate', 'todate'])
  const { emailfilter, tag, messageid, fromdate, todate } = values
  return {
    ...pageIn(values),
    recipient: emailfilter || undefined,
    tag: tag || undefined,
    messageId: messageid || undefined,
    after: timeIn('fromdate', fromdate, false),
    before: timeIn('todate', todate, true),
  }
}

/** `GET /message-streams/:stream/suppressions/dump`. */
export function readSuppressionQuery(query: Query) {
  const values = valuesOf(query, ['suppressionreason', 'origin', 'fromdate', 'todate', 'emailaddress', 'count', 'offset'])
  return {
    reason: values.suppressionreason || undefined,
    origin: values.origin || undefined,
    address: values.emailaddress?.toLowerCase() || undefined,
    after: timeIn('fromdate', values.fromdate, false),
    before: timeIn('todate', values.todate, true),
  }
}
