/**
 * The suppressions of other services in this installation's words: the exports of SES, SendGrid, Mailgun, Postmark and Resend. A row
 * becomes an entry, a skipped row (the service does not suppress that address everywhere), or a bad one.
 */
import { Refusal } from '#base'
import { parseAddress } from '#mail'
import { addressFields, type ExportRecord, readExport } from './export-records.ts'

export const exportVendors = ['resend', 'ses', 'sendgrid', 'mailgun', 'postmark'] as const
export type ExportVendor = (typeof exportVendors)[number]

/** The lists of SendGrid and Mailgun, which are separate exports. */
export const exportLists = ['bounces', 'blocks', 'invalid_emails', 'spam_reports', 'complaints', 'unsubscribes'] as const
export type ExportList = (typeof exportLists)[number]

export interface VendorSuppression {
  address: string
  reason: string
  source: 'manual' | 'automatic'
  /** undefined: the export has no time, or one that cannot be read. */
  createdAt: Date | undefined
}

export type SuppressionRow = { line: number } & ({ entry: VendorSuppression } | { skipped: string } | { problem: string })

type Fields = ExportRecord['fields']
type Cause = Pick<VendorSuppression, 'reason' | 'source'>
type Judged = Cause | { skipped: string } | { problem: string }

const maxShown = 60
const automatic = (reason: string): Cause => ({ reason, source: 'automatic' })
const [bounce, complaint, unsubscribe] = [automatic('bounce'), automatic('complaint'), automatic('unsubscribe')]
const imported = (vendor: string): Cause => ({ reason: `imported from ${vendor}`, source: 'manual' })

const causeOfList: Readonly<Record<ExportList, Cause | { skipped: string }>> = {
  bounces: bounce,
  blocks: { skipped: 'SendGrid does not suppress an address on its list of blocks' },
  invalid_emails: automatic('hard fail'),
  spam_reports: complaint,
  complaints: complaint,
  unsubscribes: unsubscribe,
}

const textIn = (fields: Fields, ...names: readonly string[]): string => {
  const value = names.map((name) => fields.get(name)).find((one) => one !== undefined && one !== null && one !== '')
  return typeof value === 'string' ? value.trim() : ''
}
const shown = (value: string) => value.slice(0, maxShown)
const unknownReason = (value: string) => ({ problem: value === '' ? 'has no reason' : `has an unknown reason: ${shown(value)}` })

const sesCauses = new Map([
  ['BOUNCE', bounce],
  ['COMPLAINT', complaint],
])
const ofSes = (fields: Fields): Judged => {
  const reason = textIn(fields, 'reason')
  return sesCauses.get(reason.toUpperCase()) ?? unknownReason(reason)
}

const ofPostmark = (fields: Fields): Judged => {
  const reason = textIn(fields, 'suppressionreason', 'reason')
  const isOwn = textIn(fields, 'origin').toLowerCase() === 'recipient'
  const causes = new Map([
    ['hardbounce', bounce],
    ['spamcomplaint', complaint],
    ['manualsuppression', isOwn ? unsubscribe : imported('Postmark')],
  ])
  return causes.get(reason.toLowerCase().replaceAll(/[ _]/g, '')) ?? unknownReason(reason)
}

const resendCauses = new Map([
  ['bounce', bounce],
  ['complaint', complaint],
  ['manual', imported('Resend')],
])
const ofResend = (fields: Fields): Judged => {
  const origin = textIn(fields, 'origin', 'reason')
  return resendCauses.get(origin.toLowerCase()) ?? unknownReason(origin)
}

/** A row of bounces has the same fields as one of blocks, which SendGrid does not suppress. */
function ofSendGrid(fields: Fields, list: ExportList | undefined): Judged {
  if (list) return causeOfList[list]
  if (fields.has('reason') || fields.has('status'))
    throw new Refusal('validation_error', {
      message: 'the file does not show whether its rows are bounces, blocks or invalid addresses',
      suggestion: 'Give --list bounces, --list blocks or --list invalid_emails',
    })
  return fields.has('ip') ? complaint : unsubscribe
}

function ofMailgun(fields: Fields, list: ExportList | undefined): Judged {
  const tags = fields.get('tags') ?? fields.get('tag')
  if (tags !== undefined && tags !== '') {
    const text = JSON.stringify(tags)
    if (!text.includes('*') && text !== '[]') return { skipped: `unsubscribed from a tag only: ${shown(text)}` }
  }
  if (list) return causeOfList[list]
  return fields.has('code') || fields.has('error') ? bounce : fields.has('tags') || fields.has('tag') ? unsubscribe : complaint
}

const judges: Readonly<Record<ExportVendor, (fields: Fields, list: ExportList | undefined) => Judged>> = {
  ses: ofSes,
  sendgrid: ofSendGrid,
  mailgun: ofMailgun,
  postmark: ofPostmark,
  resend: ofResend,
}

const timeFields = ['lastupdatetime', 'createdat', 'created', 'date', 'timestamp'] as const
/** Numbers above it are milliseconds: as seconds it is the year 5138. */
const mostSeconds = 1e11
const maxTimeLength = 64
const year10000 = Date.UTC(10_000, 0)
const withoutZone = /^\d{4}-\d{2}-\d{2}([T ][\d:.]+)?$/

/** Seconds or milliseconds since 1970, ISO 8601 or RFC 2822, in UTC without a zone. Times before 1970 and after 9999 mean an unknown time. */
function timeOf(fields: Fields): Date | undefined {
  const value = timeFields.map((name) => fields.get(name)).find((one) => one !== undefined && one !== null && one !== '')
  const text = typeof value === 'number' || typeof value === 'string' ? String(value).trim() : ''
  if (text === '' || text.length > maxTimeLength) return undefined
  const count = /^\d+(\.\d+)?$/.test(text) ? Number(text) : undefined
  const atMs =
    count === undefined ? Date.parse(withoutZone.test(text) ? `${text.replace(' ', 'T')}${text.includes(':') ? 'Z' : ''}` : text) : count
  const at = new Date(count !== undefined && count < mostSeconds ? count * 1000 : atMs)
  return at.getTime() > 0 && at.getTime() < year10000 ? at : undefined
}

/**
 * The rows of an export, in order. `list` names the list of the file where its columns do not show it. Refuses files of another form, and
 * those whose list must be named.
 */
export async function* readSuppressions(
  vendor: ExportVendor,
  input: AsyncIterable<Uint8Array>,
  list?: ExportList,
): AsyncGenerator<SuppressionRow> {
  const judge = judges[vendor]
  for await (const record of readExport(input)) {
    const { line } = record
    if ('problem' in record) yield record
    else yield { line, ...rowOf(record.fields, judge, list) }
  }
}

function rowOf(fields: Fields, judge: (typeof judges)[ExportVendor], list: ExportList | undefined) {
  const given = textIn(fields, ...addressFields)
  if (given === '') return { problem: 'has no address' }
  // A replacement character: the file is in another encoding than UTF-8.
  const address = given.includes('\ufffd') ? undefined : parseAddress(given)?.text
  if (address === undefined) return { problem: `is not an email address: ${shown(given)}` }
  const judged = judge(fields, list)
  return 'reason' in judged ? { entry: { address, ...judged, createdAt: timeOf(fields) } } : judged
}
