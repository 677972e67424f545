/** Entries of suppression lists as Mailgun's lists have them, and the bodies that add them. */
import { rejectUnstorableText } from '#base'
import type { LastAttempt } from '#emails'
import { parseAddress } from '#mail'
import type { ImportedSuppression, Suppression, SuppressionOrigin } from '#suppressions'
import { JsonFields } from '#vendors'
import { MailgunRefusal, refuseMailgunField } from './errors.ts'
import { parseMailgunTime } from './read-options.ts'

interface MailgunList {
  origin: SuppressionOrigin
  /** Of the entries that a request adds. */
  reason: string
  source: Suppression['source']
  /** In Mailgun's messages. */
  added: string
  removed: string
  cleared: string
}

export const mailgunLists: Readonly<Record<string, MailgunList>> = {
  bounces: {
    origin: 'bounce',
    reason: 'bounce',
    source: 'automatic',
    added: 'bounces',
    removed: 'Bounced address has been removed',
    cleared: 'Bounced addresses for this domain have been removed',
  },
  complaints: {
    origin: 'complaint',
    reason: 'complaint',
    source: 'automatic',
    added: 'complaints',
    removed: 'Spam complaint has been removed',
    cleared: 'Complaint addresses for this domain have been removed',
  },
  unsubscribes: {
    origin: 'manual',
    reason: 'unsubscribe',
    source: 'manual',
    added: 'unsubscribes',
    removed: 'Unsubscribe event has been removed',
    cleared: 'Unsubscribe addresses for this domain have been removed',
  },
}

const utc = (at: Date) => at.toUTCString().replace('GMT', 'UTC')
const leadingCode = /^(\d{3})(?:[ -]|$)/
/** The reasons that Postrider gives; other reasons are the text of a reply. */
const ownReasons: readonly (string | null)[] = ['hard fail', 'too many soft fails', 'bounce', null]
const usualCode = '550'

/** `attempt`: the last one of the email that caused the entry, as far as it is stored. */
export function mailgunEntry(list: string, { address, reason, createdAt }: Suppression, attempt: LastAttempt | undefined) {
  const entry = { address, created_at: utc(createdAt) }
  if (list === 'unsubscribes') return { ...entry, tags: ['*'] }
  if (list === 'complaints') return entry
  const text = attempt ? attempt.output.trim() || attempt.details : ownReasons.includes(reason) ? '' : (reason ?? '')
  const code = leadingCode.exec(text)?.[1]
  return { ...entry, code: code ?? usualCode, error: attempt || code === undefined ? text : text.slice(code.length).trim() }
}

const maxEntries = 1000
const maxAddressLength = 320
const maxErrorLength = 500
const maxTimeLength = 100
const maxTags = 20

/** One entry as an object, or an array of entries. A wrong entry refuses all. */
export function readNewEntries(list: string, body: unknown, nowMs: number): ImportedSuppression[] {
  const isMany = Array.isArray(body)
  if (isMany && (body.length < 1 || body.length > maxEntries))
    throw new MailgunRefusal(400, `the list must have 1 to ${maxEntries} entries`)
  return (isMany ? body : [body]).map((one: unknown, index) =>
    entryOf(list, new JsonFields(one, isMany ? `[${index}]` : '', refuseMailgunField), nowMs),
  )
}

function entryOf(list: string, fields: JsonFields, nowMs: number): ImportedSuppression {
  const { source, reason } = mailgunLists[list] as MailgunList
  const address = fields.needed('address', maxAddressLength)
  if (!parseAddress(address)) throw fields.wrong('address', `is not a valid address: ${address.slice(0, 100)}`)
  const created = fields.text('created_at', maxTimeLength)
  const atMs = created ? parseMailgunTime(created) : nowMs
  if (atMs === undefined || atMs > nowMs) throw fields.wrong('created_at', 'must be a date of RFC 2822 with a zone that has passed')
  if (list === 'unsubscribes') {
    const tags = [...fields.texts('tag', maxTags, maxErrorLength), ...fields.texts('tags', maxTags, maxErrorLength)]
    if (tags.some((one) => one !== '*')) throw fields.wrong('tag', 'is served only as *: an unsubscription is from all mail')
  }
  const entry = {
    address,
    reason: (list === 'bounces' ? replyIn(fields) : '') || reason,
    source,
    createdAt: new Date(atMs),
    keepUntil: null,
  }
  fields.refuseOthers()
  return entry
}

/** The code and the text of a bounce, which an entry keeps as its reason. */
function replyIn(fields: JsonFields): string {
  const given = fields.value('code')
  const code = typeof given === 'number' ? String(given) : (fields.text('code', maxTimeLength) ?? '')
  if (code !== '' && !/^[2-6]\d\d$/.test(code)) throw fields.wrong('code', 'must be a number of three digits')
  const error = (fields.text('error', maxErrorLength) ?? '').trim()
  rejectUnstorableText('error', error)
  return error === '' ? code : `${code === '' ? usualCode : code} ${error}`
}

/** Mailgun's answers to additions. */
export const addedAnswer = (list: string, entries: readonly ImportedSuppression[], isMany: boolean) =>
  isMany
    ? { message: `${entries.length} addresses have been added to the ${list} table` }
    : { message: `Address has been added to the ${list} table`, address: entries[0]?.address }
