/**
 * Validates the content of a submission, the same for every entry point: addresses, header names, metadata, sizes, text. Each
 * refusal names the field by its JSON path.
 */
import { rejectUnstorableText } from '#base'
import {
  type Address,
  isMailboxListField,
  type Mailbox,
  mailboxText,
  parseAddress,
  parseMailbox,
  parseSender,
  traceHeaderField,
} from '#mail'
import { checkLine, refuseField } from './field-text.ts'
import { checkScheduledTime, type ScheduledWish } from './scheduled-time.ts'
import type { Submission, SubmittedAttachment, TrackingWish } from './submission.ts'
import { checkAttachments } from './validate-attachments.ts'

export const largestMessageOctets = 14 * 1_048_576
const usualRecipientsPerField = 50
const maxHeaders = 50
const headerNameLength = 76
const headerValueLength = 998

/** Header fields that Postrider writes, or that could change the meaning of the message. */
const reservedHeaders = new Set([
  traceHeaderField.toLowerCase(),
  'from',
  'to',
  'cc',
  'bcc',
  'subject',
  'date',
  'message-id',
  'sender',
  'return-path',
  'reply-to',
  'received',
  'mime-version',
  'dkim-signature',
])

/** Header fields that servers on the way add, or that describe a resent message. */
const headersOfOthers = /^(?:resent-|arc-|authentication-results$)/

const senderForms =
  'Write name@example.com, Name <name@example.com> or "Name" <name@example.com>; put a second address in the name in quotes'

/** The sender, exactly one address with an optional name. */
export function checkSender(from: string): Mailbox {
  checkLine('from', from)
  return parseSender(from) ?? refuseField('from', 'is not exactly one email address', 'invalid_email_format', senderForms)
}

/** The text of the Reply-To field. */
function checkReplyTo(text: string): string {
  const address = checkAddress('replyTo', text)
  return isMailboxListField(Buffer.from(address.text).toString('latin1'))
    ? address.text
    : refuseField('replyTo', 'is an ambiguous address: some programs would read it as another', 'invalid_email_format')
}

function checkReplyToList(list: readonly string[]): string | undefined {
  if (list.length > usualRecipientsPerField) refuseField('replyTo', `has more than ${usualRecipientsPerField} addresses`)
  const fields = list.map((text) => headerForm('replyTo', text).field)
  if (fields.length === 0) return undefined
  const field = fields.join(',\r\n ')
  return isMailboxListField(Buffer.from(field).toString('latin1'))
    ? field
    : refuseField('replyTo', 'is ambiguous: some programs would read it as other addresses', 'invalid_email_format')
}

/** A mailbox as its header field has it. A display name that programs could take for another address is left out. */
function headerForm(field: string, text: string): { address: Address; field: string } {
  checkLine(field, text)
  const mailbox = parseMailbox(text) ?? refuseField(field, 'is not an email address', 'invalid_email_format')
  return { address: mailbox.address, field: parseSender(text) ? mailboxText(mailbox) : mailbox.address.text }
}

function checkAddress(field: string, text: string): Address {
  return parseAddress(text) ?? refuseField(field, 'is not an email address', 'invalid_email_format')
}

export interface CheckedRecipient extends Address {
  /** As the caller wrote it. */
  given: string
}

export interface Recipients {
  /** As the header fields have them: addresses, or mailboxes with display names. */
  to: string[]
  cc: string[]
  /** To, cc and bcc in this order, each address once. */
  envelope: CheckedRecipient[]
}

/** Parses the addresses of To, cc and bcc. */
export function checkRecipients(submission: Pick<Submission, 'to' | 'cc' | 'bcc' | 'vendor'>): Recipients {
  const read = (field: string, given: string) => {
    if (!submission.vendor) return { recipient: { ...checkAddress(field, given), given }, field: '' }
    const { address, field: written } = headerForm(field, given)
    return { recipient: { ...address, given: address.text }, field: written }
  }
  const most = submission.vendor?.recipientsPerField ?? usualRecipientsPerField
  const parse = (field: string, list: readonly string[] | null | undefined) => {
    if ((list?.length ?? 0) > most) refuseField(field, `has more than ${most} addresses`)
    return (list ?? []).map((given, index) => read(`${field}[${index}]`, given))
  }
  const to = parse('to', submission.to)
  if (to.length === 0 && !submission.vendor) refuseField('to', 'must have at least one address')
  const cc = parse('cc', submission.cc)
  const byAddress = new Map<string, CheckedRecipient>()
  for (const { recipient } of [...to, ...cc, ...parse('bcc', submission.bcc)]) {
    const key = recipient.text.toLowerCase()
    if (!byAddress.has(key)) byAddress.set(key, recipient)
  }
  if (byAddress.size === 0) refuseField('to', 'must have at least one address')
  const shown = ({ recipient, field }: ReturnType<typeof read>) => field || recipient.text
  return { to: to.map(shown), cc: cc.map(shown), envelope: [...byAddress.values()] }
}

/** A header field name (RFC 5322 section 3.6.8): printable US-ASCII without colon. */
const headerName = /^[!-9;-~]+$/

function checkHeaders(headers: Readonly<Record<string, string>> | null | undefined): [string, string][] {
  const entries = Object.entries(headers ?? {})
  if (entries.length > maxHeaders) refuseField('headers', `has more than ${maxHeaders} entries`)
  for (const [name, value] of entries) {
    const field = `headers.${name.slice(0, headerNameLength)}`
    if (!headerName.test(name) || name.length > headerNameLength)
      refuseField(field, `is not a header name of 1 to ${headerNameLength} characters`)
    const lower = name.toLowerCase()
    if (reservedHeaders.has(lower) || lower.startsWith('content-'))
      refuseField(field, 'is a header that only Postrider sets', 'validation_error', 'Omit it and use the matching field of the request')
    if (headersOfOthers.test(lower))
      refuseField(
        field,
        'is a header added in transit: a new message cannot have it',
        'validation_error',
        'Omit it, or use a name that begins with X- for your own data',
      )
    if ([...value].length > headerValueLength) refuseField(field, `is longer than ${headerValueLength} characters`)
    checkLine(field, value)
  }
  return entries
}

/** The link unsubscribes one address, and a message can have only one such field. */
function checkUnsubscribe({ envelope }: Recipients, headers: readonly [string, string][]): void {
  if (envelope.length > 1) refuseField('unsubscribe', `needs exactly one recipient: this message has ${envelope.length}`)
  const own = headers.find(([name]) => /^list-unsubscribe(?:-post)?$/i.test(name))
  if (own) refuseField('unsubscribe', `sets the header ${own[0]}, which is also in headers`)
}

/** The address names the email of one recipient, and a message can have only one such field. */
function checkReplyAddress({ envelope }: Recipients, replyTo: string | undefined): void {
  if (envelope.length > 1) refuseField('replyRouteId', `needs exactly one recipient: this message has ${envelope.length}`)
  if (replyTo !== undefined)
    refuseField('replyRouteId', 'cannot be given with replyTo', 'validation_error', 'Omit replyTo: the route gets the replies')
}

/** The empty string means no tag. */
export function checkTag(tag: string | null | undefined): string | null {
  if (tag != null) rejectUnstorableText('tag', tag)
  return tag || null
}

interface MetadataLimits {
  keys: number
  name: RegExp
  named: string
  minLength: number
  octets: number
}

const ownMetadata: MetadataLimits = {
  keys: 10,
  name: /^[a-zA-Z][a-zA-Z0-9_]{0,39}$/,
  named: '1 to 40 letters, digits and _, starting with a letter',
  minLength: 1,
  octets: 4096,
}

/** Those of the other vendors together: the names may have any printable characters. */
const vendorMetadata: MetadataLimits = {
  keys: 75,
  name: /^[^\p{C}\u2028\u2029]{1,256}$/u,
  named: '1 to 256 printable characters',
  minLength: 0,
  octets: 40_000,
}

const controlCharacters = /[\u0000-\u001f\u007f]/

/** Names with values, within limits; null if empty. `vendor`: those of the other vendors' APIs. */
export function checkMetadata(
  metadata: Readonly<Record<string, string>> | null | undefined,
  vendor?: object,
): Record<string, string> | null {
  if (!metadata) return null
  const { keys, name, named, minLength, octets } = vendor ? vendorMetadata : ownMetadata
  const entries = Object.entries(metadata)
  if (entries.length > keys) refuseField('metadata', `has more than ${keys} keys`)
  for (const [key, value] of entries) {
    const field = `metadata.${key.slice(0, 40)}`
    if (!name.test(key)) refuseField(field, `is not a valid key: use ${named}`)
    rejectUnstorableText(field, value)
    const length = [...value].length
    if (length < minLength || length > 500) refuseField(field, `must have ${minLength} to 500 characters`)
    if (controlCharacters.test(value)) refuseField(field, 'contains a control character')
  }
  if (Buffer.byteLength(JSON.stringify(metadata)) > octets) refuseField('metadata', `is larger than ${octets} bytes as JSON`)
  return entries.length === 0 ? null : Object.fromEntries(entries)
}

export interface CheckedSubmission {
  from: Mailbox
  recipients: Recipients
  /** The text of the Reply-To field. */
  replyTo: string | undefined
  replyAddress: Submission['replyAddress']
  subject: string
  tag: string | null
  metadata: Record<string, string> | null
  headers: [string, string][]
  attachments: SubmittedAttachment[]
  html: string | undefined
  text: string | undefined
  unsubscribe: boolean
  /** Sent with the null reverse-path. */
  bounce: boolean
  tracking: TrackingWish
  /** null: sent at once. */
  scheduled: ScheduledWish | null
  /** UTF-8 octets of html and text, decoded attachments, headers. */
  sizeOctets: number
}

/** Checks every field, and refuses the first problem. */
export function checkSubmission(submission: Submission): CheckedSubmission {
  const { subject, vendor } = submission
  const from = checkSender(submission.from)
  const recipients = checkRecipients(submission)
  const replyTo = vendor ? checkReplyToList(vendor.replyTo) : submission.replyTo == null ? undefined : checkReplyTo(submission.replyTo)
  checkLine('subject', subject)
  if ((subject.length < 1 && !vendor) || [...subject].length > 998) refuseField('subject', 'must have 1 to 998 characters')
  const tag = checkTag(submission.tag)
  const headers = checkHeaders(submission.headers)
  const unsubscribe = submission.unsubscribe === true
  if (unsubscribe) checkUnsubscribe(recipients, headers)
  const { replyAddress } = submission
  if (replyAddress) checkReplyAddress(recipients, replyTo)
  const metadata = checkMetadata(submission.metadata, vendor)
  const scheduled = checkScheduledTime(submission.scheduledAt)
  const { list: attachments, octets: attachmentOctets } = checkAttachments(submission.attachments)
  const html = submission.html ?? undefined
  const text = submission.text ?? undefined
  if (html !== undefined) rejectUnstorableText('html', html)
  if (text !== undefined) rejectUnstorableText('text', text)
  const headerOctets = headers.reduce((sum, [name, value]) => sum + name.length + Buffer.byteLength(value) + 4, 0)
  const textOctets = Buffer.byteLength(html ?? '') + Buffer.byteLength(text ?? '') + Buffer.byteLength(subject)
  const sizeOctets = textOctets + attachmentOctets + headerOctets
  if (sizeOctets > largestMessageOctets) {
    const largest = attachments.length > 0 ? 'attachments' : html === undefined ? 'text' : 'html'
    refuseField(largest, 'the message is larger than 14 MB in total', 'payload_too_large')
  }
  return {
    from,
    recipients,
    replyTo,
    replyAddress,
    subject,
    tag,
    metadata,
    headers,
    attachments,
    html,
    text,
    unsubscribe,
    bounce: vendor?.bounce === true,
    tracking: vendor?.tracking ?? {},
    scheduled,
    sizeOctets,
  }
}
