/** Reads the body of `POST /v3/mail/send`, in time in proportion to its length: the personalizations are not yet applied. */
import type { SubmittedAttachment, TrackingWish } from '#accept'
import { parseAddress } from '#mail'
import { contentTypeOf, JsonFields } from '#vendors'
import { isSendGridKey } from '#webhooks'
import { refuseSendGridField } from './errors.ts'
import { readMailSettings, readTrackingSettings } from './read-settings.ts'

const maxPersonalizations = 1000
const maxRecipients = 1000
const maxReplyTo = 50
const maxAddressLength = 320
const maxNameLength = 500
const maxSubjectLength = 998
const maxContentLength = 14_680_064
const maxContents = 10
const maxHeaders = 50
const maxHeaderLength = 998
const maxCategories = 10
const maxCategoryLength = 255
const maxCustomArgs = 50
const maxCustomArgLength = 10_000
const maxSubstitutions = 100
const maxSubstitutionOctets = 10_000
const maxAttachments = 100
const maxFilenameLength = 255

/** Fields that change mail and are not served, in the mail or in a personalization. */
const unserved = ['template_id', 'dynamic_template_data', 'send_at', 'batch_id', 'asm', 'ip_pool_name'] as const

export interface SendGridPersonalization {
  to: string[]
  cc: string[]
  bcc: string[]
  /** Undefined members: those of the mail. */
  from: string | undefined
  subject: string | undefined
  headers: Readonly<Record<string, string>>
  customArgs: Readonly<Record<string, string>>
  substitutions: Readonly<Record<string, string>>
}

export interface SendGridMail {
  from: string
  subject: string | undefined
  html: string | undefined
  text: string | undefined
  replyTo: string[]
  headers: Readonly<Record<string, string>>
  customArgs: Readonly<Record<string, string>>
  categories: string[]
  attachments: SubmittedAttachment[]
  tracking: TrackingWish
  /** Check the mail without sending it. */
  isSandbox: boolean
  personalizations: SendGridPersonalization[]
}

/** Throws a `SendGridRefusal`. */
export function readSendGridMail(body: unknown): SendGridMail {
  const fields = new JsonFields(body, '', refuseSendGridField)
  refuseUnserved(fields)
  const from = fields.value('from')
  if (from === undefined) throw fields.wrong('from', 'is missing', 'missing')
  const subject = fields.text('subject', maxSubjectLength) || undefined
  const personalizations = fields.objects('personalizations', maxPersonalizations).map(personalizationOf)
  if (personalizations.length === 0) throw fields.wrong('personalizations', 'must have at least one element', 'missing')
  const recipients = personalizations.reduce((sum, { to, cc, bcc }) => sum + to.length + cc.length + bcc.length, 0)
  if (recipients > maxRecipients)
    throw fields.wrong('personalizations', `have ${recipients} recipients in total: the maximum is ${maxRecipients}`)
  if (subject === undefined && personalizations.some((one) => one.subject === undefined))
    throw fields.wrong('subject', 'is missing, and not every personalization has one', 'missing')
  if (Object.keys(fields.pairs('sections', maxSubstitutions, maxContentLength)).length > 0)
    throw fields.wrong('sections', 'is not served', 'not served')
  const mail: SendGridMail = {
    from: mailboxOf(from, 'from'),
    subject,
    ...contentOf(fields),
    replyTo: replyToOf(fields),
    headers: headersOf(fields),
    customArgs: customArgsOf(fields),
    categories: categoriesOf(fields),
    attachments: fields.objects('attachments', maxAttachments).map(attachmentOf),
    tracking: readTrackingSettings(fields),
    isSandbox: readMailSettings(fields),
    personalizations,
  }
  fields.refuseOthers()
  return mail
}

function refuseUnserved(fields: JsonFields): void {
  for (const name of unserved) if (!isEmpty(fields.value(name))) throw fields.wrong(name, 'is not served', 'not served')
}

/** Libraries write an option that the program does not use as an empty text or object. */
const isEmpty = (value: unknown): boolean =>
  value === undefined || value === '' || (typeof value === 'object' && value !== null && Object.keys(value).length === 0)

function personalizationOf(fields: JsonFields, index: number): SendGridPersonalization {
  refuseUnserved(fields)
  const path = `personalizations[${index}]`
  const listOf = (name: string) => fields.list(name, maxRecipients).map((one, nth) => mailboxOf(one, `${path}.${name}[${nth}]`))
  const to = listOf('to')
  if (to.length === 0) throw fields.wrong('to', 'must have at least one address', 'missing')
  const from = fields.value('from')
  const substitutions = fields.pairs('substitutions', maxSubstitutions, maxSubstitutionOctets)
  const octets = Object.entries(substitutions).reduce((sum, [key, text]) => sum + Buffer.byteLength(key) + Buffer.byteLength(text), 0)
  if (octets > maxSubstitutionOctets) throw fields.wrong('substitutions', `are larger than ${maxSubstitutionOctets} bytes`)
  if (Object.hasOwn(substitutions, '')) throw fields.wrong('substitutions', 'have an empty name')
  const personalization = {
    to,
    cc: listOf('cc'),
    bcc: listOf('bcc'),
    from: from === undefined ? undefined : mailboxOf(from, `${path}.from`),
    subject: fields.text('subject', maxSubjectLength) || undefined,
    headers: headersOf(fields),
    customArgs: customArgsOf(fields),
    substitutions,
  }
  fields.refuseOthers()
  return personalization
}

const plainName = /^[\p{L}\p{N} '-]+$/u

/** `{"email", "name"}` as text with the name in quotes, if it needs them. */
function mailboxOf(value: unknown, path: string): string {
  const fields = new JsonFields(value, path, refuseSendGridField)
  const email = fields.needed('email', maxAddressLength).trim()
  const name = fields.text('name', maxNameLength)?.trim()
  fields.refuseOthers()
  if (!parseAddress(email)) throw fields.wrong('email', 'is not an email address')
  if (!name) return email
  return `${plainName.test(name) ? name : `"${name.replace(/["\\]/g, '\\$&')}"`} <${email}>`
}

function replyToOf(fields: JsonFields): string[] {
  const one = fields.value('reply_to')
  const list = fields.list('reply_to_list', maxReplyTo).map((item, index) => mailboxOf(item, `reply_to_list[${index}]`))
  if (one !== undefined && list.length > 0) throw fields.wrong('reply_to_list', 'cannot be used together with reply_to')
  return one === undefined ? list : [mailboxOf(one, 'reply_to')]
}

const types = { 'text/plain': 'text', 'text/html': 'html' } as const

function contentOf(fields: JsonFields): Pick<SendGridMail, 'html' | 'text'> {
  const found: { html?: string; text?: string } = {}
  for (const part of fields.objects('content', maxContents)) {
    const given = part.needed('type', maxFilenameLength)
    const type = types[given.split(';', 1)[0]?.trim().toLowerCase() as keyof typeof types]
    if (type === undefined) throw part.wrong('type', 'is served only as text/plain and text/html', 'not served')
    if (found[type] !== undefined) throw part.wrong('type', `is given twice: ${given}`)
    found[type] = part.needed('value', maxContentLength)
    refuseUnsubscribeTag(part, found[type])
    part.refuseOthers()
  }
  if (found.html === undefined && found.text === undefined) throw fields.wrong('content', 'must have text/plain or text/html', 'missing')
  return { html: found.html, text: found.text }
}

/** SendGrid writes a link in place of such a tag; a message with a link that leads nowhere must not leave. */
function refuseUnsubscribeTag(part: JsonFields, text: string): void {
  const [tag] = /<%asm_\w{1,64}%>/.exec(text) ?? []
  if (tag !== undefined) throw part.wrong('value', `has ${tag}, which is not served`, 'not served')
}

function headersOf(fields: JsonFields): Record<string, string> {
  const headers = fields.pairs('headers', maxHeaders, maxHeaderLength)
  const names = Object.keys(headers).map((name) => name.toLowerCase())
  if (new Set(names).size < names.length) throw fields.wrong('headers', 'name a header twice')
  return headers
}

function customArgsOf(fields: JsonFields): Record<string, string> {
  const args = fields.pairs('custom_args', maxCustomArgs, maxCustomArgLength)
  const reserved = Object.keys(args).find(isSendGridKey)
  if (reserved !== undefined) throw fields.wrong(`custom_args.${reserved}`, 'is a reserved name')
  return args
}

function categoriesOf(fields: JsonFields): string[] {
  const categories = fields.texts('categories', maxCategories, maxCategoryLength).filter((one) => one !== '')
  if (new Set(categories).size < categories.length) throw fields.wrong('categories', 'name a category twice')
  return categories
}

/** SendGrid takes `jpg` and `pdf` too, which are not types of MIME: the file name then has the type. */
function contentTypeIn(fields: JsonFields): string | undefined {
  const type = fields.text('type', maxFilenameLength)
  return type?.includes('/') ? type : undefined
}

function attachmentOf(fields: JsonFields): SubmittedAttachment {
  const filename = fields.needed('filename', maxFilenameLength)
  const disposition = fields.text('disposition', maxFilenameLength) || 'attachment'
  // The Node SDK sends its own name of this member unchanged.
  const contentId = fields.text('content_id', maxFilenameLength) || fields.text('contentId', maxFilenameLength) || null
  if (disposition !== 'inline' && disposition !== 'attachment') throw fields.wrong('disposition', 'must be inline or attachment')
  if (disposition === 'inline' && contentId === null)
    throw fields.wrong('content_id', 'is missing: an inline attachment needs it', 'missing')
  const attachment = {
    filename,
    content: fields.needed('content', maxContentLength * 2),
    contentType: contentTypeIn(fields) ?? contentTypeOf(filename),
    contentId: disposition === 'inline' ? contentId : null,
  }
  fields.refuseOthers()
  return attachment
}
