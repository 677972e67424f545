/** Entries of suppression lists as SendGrid's lists have them, and the parameters and bodies of their endpoints. */
import type { LastAttempt } from '#emails'
import { parseAddress } from '#mail'
import type { Suppression, SuppressionOrigin } from '#suppressions'
import { JsonFields } from '#vendors'
import { refuseSendGridField, SendGridRefusal } from './errors.ts'

const maxLimit = 500
const maxOffset = 1_000_000
const maxAddresses = 1000
const maxAddressLength = 320

/** SendGrid's lists, and the origin of the entries that each has; the others are empty. */
export const sendgridLists: Readonly<Record<string, SuppressionOrigin | undefined>> = {
  bounces: 'bounce',
  spam_reports: 'complaint',
  unsubscribes: 'manual',
  blocks: undefined,
  invalid_emails: undefined,
}

export interface SendGridPage {
  limit: number
  offset: number
  after: Date
  before: Date
}

/** `limit`, `offset`, and the seconds `start_time` and `end_time`, which belong to the page. */
export function readSendGridPage({ limit, offset, start_time, end_time, ...others }: Readonly<Record<string, unknown>>): SendGridPage {
  const [other] = Object.keys(others)
  if (other !== undefined) throw new SendGridRefusal(400, `${other.slice(0, 60)} is not a parameter of this list`, other.slice(0, 60))
  const after = numberIn('start_time', start_time, maxSeconds) ?? 0
  const before = numberIn('end_time', end_time, maxSeconds) ?? maxSeconds
  const most = numberIn('limit', limit, maxLimit) ?? maxLimit
  if (most === 0) throw new SendGridRefusal(400, `limit must be a number from 1 to ${maxLimit}`, 'limit')
  return {
    limit: most,
    offset: numberIn('offset', offset, maxOffset) ?? 0,
    after: new Date(after * 1000),
    before: new Date(before * 1000 + 999),
  }
}

/** The year 2286. */
const maxSeconds = 9_999_999_999

function numberIn(name: string, value: unknown, most: number): number | undefined {
  if (value === undefined) return undefined
  const number = typeof value === 'string' && /^\d{1,10}$/.test(value) ? Number(value) : Number.NaN
  if (number <= most) return number
  throw new SendGridRefusal(400, `${name} must be a number up to ${most}`, name)
}

/** The body of a deletion: the addresses, or undefined for all. */
export function readDeletion(body: unknown): string[] | undefined {
  const fields = new JsonFields(body, '', refuseSendGridField)
  const isAll = fields.flag('delete_all') ?? false
  const addresses = fields.texts('emails', maxAddresses, maxAddressLength)
  fields.refuseOthers()
  if (isAll && addresses.length > 0) throw fields.wrong('delete_all', 'cannot be used together with emails')
  if (!isAll && addresses.length === 0) throw fields.wrong('emails', 'or delete_all is missing', 'missing')
  return isAll ? undefined : addresses
}

/** The body that adds addresses to the list of global unsubscribes. */
export function readRecipientEmails(body: unknown): string[] {
  const fields = new JsonFields(body, '', refuseSendGridField)
  const addresses = fields.texts('recipient_emails', maxAddresses, maxAddressLength)
  fields.refuseOthers()
  if (addresses.length === 0) throw fields.wrong('recipient_emails', 'is missing', 'missing')
  const wrong = addresses.findIndex((one) => !parseAddress(one))
  if (wrong >= 0) throw fields.wrong(`recipient_emails[${wrong}]`, 'is not an email address')
  return addresses
}

const enhancedCode = /\b[245]\.\d{1,3}\.\d{1,3}\b/

/** `attempt`: the last one of the email that caused the entry, as far as it is stored. */
export function sendgridEntry(list: string, { address, reason, createdAt }: Suppression, attempt: LastAttempt | undefined) {
  const entry = { created: Math.floor(createdAt.getTime() / 1000), email: address }
  if (list === 'spam_reports') return { ...entry, ip: '' }
  if (list === 'unsubscribes') return entry
  const text = attempt ? attempt.output.trim() || attempt.details : (reason ?? '')
  return { ...entry, reason: text, status: enhancedCode.exec(text)?.[0] ?? '' }
}
