/** Reads the parameters of a message, in time in proportion to their length: recipient variables are not yet applied. */
import mime from 'mime'
import type { SubmittedAttachment } from '#accept'
import { parseAddress, parseMailbox, readRaw } from '#mail'
import { JsonFields, splitAddresses } from '#vendors'
import { isMailgunKey } from '#webhooks'
import { MailgunRefusal, refuseMailgunField } from './errors.ts'
import { withContentIds } from './inline-files.ts'
import { readOwnFields } from './own-fields.ts'
import { type MailgunOptions, readOptions } from './read-options.ts'

export const maxMailgunRecipients = 1000
/** Of all texts of To, Cc or Bcc together. */
const maxAddressList = 1_000_000
const maxAddressLength = 1000
const maxSubjectLength = 998
const maxTextLength = 14_680_064
const maxHeaders = 50
const maxHeaderLength = 10_000
const maxVariables = 50
const maxVariableLength = 10_000
const maxValues = 100
const maxAttachments = 100
const maxFilenameLength = 255
const maxTypeLength = 255

export interface MailgunMessage extends MailgunOptions {
  from: string
  to: string[]
  cc: string[]
  bcc: string[]
  subject: string
  html: string | undefined
  text: string | undefined
  headers: Readonly<Record<string, string>>
  variables: Readonly<Record<string, string>>
  attachments: SubmittedAttachment[]
  /** Values by the address in lower case; undefined: the recipients share one message. */
  recipientVariables: ReadonlyMap<string, Readonly<Record<string, string>>> | undefined
}

/** Symfony numbers the values of a repeated field. */
const numbered = /^(attachment|inline|to|cc|bcc|o:tag)\[\d{0,4}\]$/

/** The members by name, with numbered ones as an array under their common name. */
function membersOf(body: unknown): [string, unknown][] {
  const given = Object.entries(typeof body === 'object' && body !== null && !Array.isArray(body) ? body : {})
  if (!given.some(([name]) => numbered.test(name))) return given
  const named = given.map(([name, value]): [string, unknown] => [numbered.exec(name)?.[1] ?? name, value])
  return [...Map.groupBy(named, ([name]) => name)].map(([name, list]) => [
    name,
    list.length === 1 ? list[0]?.[1] : list.flatMap(([, one]) => one),
  ])
}

/** The body without the members that begin with `h:` and `v:`, and these by the rest of their names. */
function separated(body: unknown) {
  const others: [string, unknown][] = []
  const prefixed: Record<'h:' | 'v:', [string, unknown][]> = { 'h:': [], 'v:': [] }
  for (const [name, value] of membersOf(body)) {
    const prefix = name.slice(0, 2)
    if (prefix === 'h:' || prefix === 'v:') prefixed[prefix].push([name.slice(2), value])
    else others.push([name, value])
  }
  const pairsOf = (prefix: 'h:' | 'v:', most: number, longest: number) =>
    new JsonFields({ [prefix]: Object.fromEntries(prefixed[prefix]) }, '', refusePrefixed).pairs(prefix, most, longest)
  return {
    fields: new JsonFields(Object.fromEntries(others), '', refuseMailgunField),
    headers: () => pairsOf('h:', maxHeaders, maxHeaderLength),
    variables: () => pairsOf('v:', maxVariables, maxVariableLength),
  }
}

const refusePrefixed: typeof refuseMailgunField = (path, problem, kind) => refuseMailgunField(path.replace(':.', ':'), problem, kind)

/** Throws a `MailgunRefusal`. */
export function readMailgunMessage(body: unknown, nowMs: number): MailgunMessage {
  const { fields, headers, variables } = separated(body)
  const from = fields.needed('from', maxAddressLength)
  const recipients = recipientsIn(fields)
  const subject = fields.text('subject', maxSubjectLength) ?? ''
  const [html, text] = ['html', 'text'].map((name) => fields.text(name, maxTextLength) || undefined)
  if (html === undefined && text === undefined && fields.value('template') === undefined)
    throw new MailgunRefusal(400, "Need at least one of 'text' or 'html' parameters specified", 'text')
  const message: MailgunMessage = {
    from,
    ...recipients,
    subject,
    text,
    headers: headersOf(headers(), from),
    variables: variablesOf(variables()),
    ...attachmentsOf(fields, html),
    recipientVariables: recipientVariablesIn(fields),
    ...readOptions(fields, nowMs),
  }
  fields.refuseOthers()
  for (const [name, content] of Object.entries({ subject, html, text })) refuseUnsubscribeVariable(name, content ?? '')
  return message
}

function recipientsIn(fields: JsonFields): Pick<MailgunMessage, 'to' | 'cc' | 'bcc'> {
  const [to = [], cc = [], bcc = []] = ['to', 'cc', 'bcc'].map((name) => {
    const texts = fields.texts(name, maxMailgunRecipients, maxAddressList)
    if (texts.reduce((sum, text) => sum + text.length, 0) > maxAddressList)
      throw fields.wrong(name, `is longer than ${maxAddressList} characters`)
    const addresses: string[] = []
    for (const text of texts)
      if (addresses.length <= maxMailgunRecipients) addresses.push(...splitAddresses(text, maxMailgunRecipients - addresses.length))
    return addresses
  })
  if (to.length === 0) throw fields.wrong('to', 'is missing', 'missing')
  if (to.length + cc.length + bcc.length > maxMailgunRecipients)
    throw fields.wrong('to', `has more than ${maxMailgunRecipients} addresses together with cc and bcc`)
  const wrong = [...to, ...cc, ...bcc].find((one) => !parseMailbox(one))
  if (wrong !== undefined)
    throw new MailgunRefusal(400, `to parameter is not a valid address. please check documentation: ${wrong.slice(0, 100)}`, 'to')
  return { to, cc, bcc }
}

const addressOf = (text: string) => parseMailbox(text)?.address.text.toLowerCase()

/** Mailgun's own fields are options of messages over SMTP; a Sender that repeats From has no meaning (RFC 5322 section 3.6.2). */
function headersOf(given: Record<string, string>, from: string): Record<string, string> {
  const names = Object.keys(given).map((name) => name.toLowerCase())
  if (new Set(names).size < names.length) throw new MailgunRefusal(400, 'h: names a header twice', 'h:')
  const own = names.find((name) => name.startsWith('x-mailgun-'))
  if (own !== undefined) throw refuseMailgunField(`h:${own}`, 'is not served', 'not served')
  const kept = Object.entries(given).filter(([name, value]) => name.toLowerCase() !== 'sender' || addressOf(value) !== addressOf(from))
  for (const [name, value] of kept) refuseUnsubscribeVariable(`h:${name}`, withoutUnsubscribeAddress(name, value))
  return Object.fromEntries(kept.map(([name, value]) => [name, withoutUnsubscribeAddress(name, value)]).filter(([, value]) => value !== ''))
}

const unsubscribeAddress = /<?%(?:tag_|mailing_list_)?unsubscribe_email%>?/
/** The element of List-Unsubscribe for which Postrider has no address. */
function withoutUnsubscribeAddress(name: string, value: string): string {
  if (name.toLowerCase() !== 'list-unsubscribe' || !unsubscribeAddress.test(value)) return value
  return elementsOf(value)
    .map((one) => one.trim())
    .filter((one) => one !== '' && !unsubscribeAddress.test(one))
    .join(', ')
}

/** The elements of a list with commas; a URL in angle brackets may have commas of its own (RFC 2369 section 2). */
function elementsOf(list: string): string[] {
  const elements: string[] = []
  let start = 0
  let isInside = false
  for (let at = 0; at < list.length; at++) {
    const one = list[at]
    if (one === '<') isInside = true
    else if (one === '>') isInside = false
    else if (one === ',' && !isInside) {
      elements.push(list.slice(start, at))
      start = at + 1
    }
  }
  return [...elements, list.slice(start)]
}

/** A message with a link that leads nowhere must not leave. */
function refuseUnsubscribeVariable(path: string, text: string): void {
  const [found] = /%(?:tag_|mailing_list_)?unsubscribe_(?:url|email)%/.exec(text) ?? []
  if (found !== undefined) throw refuseMailgunField(path, `has ${found}, which is not served`, 'not served')
}

function variablesOf(given: Record<string, string>): Record<string, string> {
  const reserved = Object.keys(given).find(isMailgunKey)
  if (reserved !== undefined) throw refuseMailgunField(`v:${reserved}`, 'is a reserved name', 'wrong')
  return given
}

/** The files, and the HTML that refers to the inline ones. */
function attachmentsOf(fields: JsonFields, html: string | undefined): Pick<MailgunMessage, 'attachments' | 'html'> {
  const filesIn = (name: string) => {
    const value = fields.value(name) ?? []
    return (Array.isArray(value) ? value : [value]).map((one, index) => fileOf(one, `${name}[${index}]`))
  }
  const attachments = filesIn('attachment').map((file) => ({ ...file, contentId: null }))
  const inline = withContentIds(filesIn('inline'))
  const all = [...attachments, ...inline.files]
  if (all.length > maxAttachments) throw fields.wrong('attachment', `and inline are more than ${maxAttachments} files`)
  return { attachments: all, html: html && inline.referring(html) }
}

function fileOf(value: unknown, path: string) {
  if (typeof value !== 'object' || value === null) throw refuseMailgunField(path, 'must be a file of a multipart form', 'wrong')
  const file = new JsonFields(value, path, refuseMailgunField)
  const filename = file.text('filename', maxFilenameLength) || 'file'
  const given = file.text('contentType', maxTypeLength) || 'application/octet-stream'
  const content = file.text('content', maxTextLength * 2) ?? ''
  file.refuseOthers()
  // Senders that know no type write this one.
  const contentType = given === 'application/octet-stream' ? (mime.getType(filename) ?? given) : given
  return { filename, contentType, content }
}

/** An object of objects by address; numbers and booleans count as text. */
function recipientVariablesIn(fields: JsonFields): MailgunMessage['recipientVariables'] {
  const name = 'recipient-variables'
  const given = fields.value(name)
  if (given === undefined || given === '') return undefined
  if (typeof given !== 'object' || Array.isArray(given)) throw fields.wrong(name, 'must be a JSON object')
  const entries = Object.entries(given as Record<string, unknown>)
  if (entries.length > maxMailgunRecipients) throw fields.wrong(name, `has more than ${maxMailgunRecipients} addresses`)
  // As the recipients are: the domain may be written in Unicode or in ASCII.
  const keyOf = (address: string) => (parseAddress(address)?.text ?? address).toLowerCase()
  return new Map(entries.map(([address, values]) => [keyOf(address.trim()), valuesOf(values, `${name}.${address.slice(0, 100)}`)]))
}

function valuesOf(given: unknown, path: string): Record<string, string> {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) throw refuseMailgunField(path, 'must be an object', 'wrong')
  const entries = Object.entries(given as Record<string, unknown>)
  if (entries.length > maxValues) throw refuseMailgunField(path, `has more than ${maxValues} values`, 'wrong')
  return Object.fromEntries(
    entries.map(([key, value]) => {
      if (value === null) return [key, '']
      if (typeof value !== 'string' && typeof value !== 'number' && typeof value !== 'boolean')
        throw refuseMailgunField(`${path}.${key.slice(0, 60)}`, 'must be a string or a number', 'wrong')
      return [key, String(value)]
    }),
  )
}

export interface MailgunRaw extends MailgunOptions {
  /** As in the message. */
  from: string
  to: string[]
  cc: string[]
  bcc: string[]
  variables: Readonly<Record<string, string>>
  /** Base64. */
  rawMessage: string
}

/** The parameters of `messages.mime`. */
export function readMailgunRaw(body: unknown, nowMs: number): MailgunRaw {
  const { fields, headers, variables } = separated(body)
  if (Object.keys(headers()).length > 0) throw refuseMailgunField('h:', 'is not served with messages.mime', 'not served')
  const recipients = recipientsIn(fields)
  const given = fields.value('message')
  if (given === undefined || given === '') throw fields.wrong('message', 'is missing', 'missing')
  const message = typeof given === 'string' ? Buffer.from(given) : Buffer.from(fileOf(given, 'message').content, 'base64')
  const facts = readRaw(message)
  if (typeof facts === 'string') throw fields.wrong('message', 'is not a message of RFC 5322 with one address in From')
  const own = readOwnFields(message, nowMs)
  const raw: MailgunRaw = {
    ...recipients,
    from: facts.from.address.text,
    variables: variablesOf(
      new JsonFields({ 'v:': { ...own.variables, ...variables() } }, '', refusePrefixed).pairs('v:', maxVariables, maxVariableLength),
    ),
    rawMessage: own.octets.toString('base64'),
    ...mergedOptions(readOptions(fields, nowMs), own.options),
  }
  fields.refuseOthers()
  return raw
}

/** The parameters of the request take precedence over the header. */
const mergedOptions = (given: MailgunOptions, own: MailgunOptions): MailgunOptions => ({
  tags: given.tags.length > 0 ? given.tags : own.tags,
  tracking: { opens: given.tracking.opens ?? own.tracking.opens, clicks: given.tracking.clicks ?? own.tracking.clicks },
  scheduledAt: given.scheduledAt ?? own.scheduledAt,
  isTest: given.isTest || own.isTest,
})
