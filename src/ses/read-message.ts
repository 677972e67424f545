/** Reads the messages of SendEmail in both versions, and of SendRawEmail. */
import type { Submission, SubmittedAttachment } from '#accept'
import { contentTypeOf, JsonFields, withoutSpaces } from '#vendors'
import { decodedMailbox, decodedText } from './encoded-words.ts'
import { refuseSesField, SesRefusal } from './errors.ts'
import { type RawMail, rawMail } from './raw-mail.ts'
import { simulated } from './simulator-addresses.ts'

const maxRecipients = 50
const maxReplyTo = 50
const maxAddressLength = 1000
const maxTextLength = 14_680_064
const maxRawLength = 40_000_000
const maxSubjectLength = 998
const maxNameLength = 256
const maxTags = 50
const maxHeaders = 50
const maxHeaderName = 126
const maxHeaderLength = 870
const maxAttachments = 100
const maxFilenameLength = 255
const tagForm = /^[A-Za-z0-9_.@-]+$/
const setForm = /^[A-Za-z0-9_-]{1,64}$/

export type SesMail = { submission: Submission } | RawMail

type Mode = 'live' | 'test'

const unservedOfRest = [
  'FromEmailAddressIdentityArn',
  'FeedbackForwardingEmailAddress',
  'FeedbackForwardingEmailAddressIdentityArn',
  'ListManagementOptions',
  'EndpointId',
  'TenantName',
  'ConfigurationOverrides',
] as const

const unservedOfQuery = ['SourceArn', 'FromArn', 'ReturnPathArn'] as const

const notServed = (fields: JsonFields, names: readonly string[]) => {
  for (const name of names) {
    const value = fields.value(name)
    if (value !== undefined && value !== '') throw fields.wrong(name, 'is not served', 'not served')
  }
}

/** At SES every address can be a sender once it is verified; here a domain of one label cannot. Nodemailer expects this error of SES. */
function senderOf(from: string | undefined): string | undefined {
  if (from !== undefined && /@[^@.\s<>]+>?\s*$/.test(from))
    throw new SesRefusal('messageRejected', `Email address is not verified: ${from.slice(0, 254)}`)
  return from
}

/** The body of version 2. Throws a `SesRefusal`. `mode`: of the key. */
export function readSesEmail(body: unknown, mode: Mode): SesMail {
  const fields = new JsonFields(body, '', refuseSesField)
  notServed(fields, unservedOfRest)
  const content = new JsonFields(fields.value('Content') ?? {}, 'Content', refuseSesField)
  if (content.value('Template') !== undefined)
    throw content.wrong('Template', 'is not served: render the message, and send it as Simple or Raw', 'not served')
  const from = senderOf(fields.text('FromEmailAddress', maxAddressLength))
  const recipients = destinationOf(fields, mode)
  const replyTo = fields.texts('ReplyToAddresses', maxReplyTo, maxAddressLength)
  const facts = { tag: configurationSetOf(fields), metadata: tagsOf(fields, 'EmailTags') }
  const [simple, raw] = [content.value('Simple'), content.value('Raw')]
  content.refuseOthers()
  fields.refuseOthers()
  if ((simple === undefined) === (raw === undefined)) throw fields.wrong('Content', 'must have either Simple or Raw', 'missing')
  if (raw !== undefined) {
    if (replyTo.length > 0) throw fields.wrong('ReplyToAddresses', 'has no effect on Raw: write the Reply-To field into the message')
    return rawMail(dataOf(raw, 'Content.Raw'), { from, to: envelopeOf(recipients), mode, ...facts })
  }
  const message = new JsonFields(simple, 'Content.Simple', refuseSesField)
  if (!from) throw fields.wrong('FromEmailAddress', 'is missing', 'missing')
  const submission = {
    ...messageOf(message, { from, recipients, replyTo }),
    headers: headersOf(message),
    attachments: message.objects('Attachments', maxAttachments).map(attachmentOf),
    ...facts,
  }
  message.refuseOthers()
  return { submission }
}

/** The parameters of SendEmail of version 1. */
export function readSesQueryEmail(parameters: unknown, mode: Mode): SesMail {
  const fields = queryFields(parameters)
  const from = fields.needed('Source', maxAddressLength)
  const recipients = destinationOf(fields, mode)
  const replyTo = fields.texts('ReplyToAddresses', maxReplyTo, maxAddressLength)
  const message = new JsonFields(fields.value('Message') ?? {}, 'Message', refuseSesField)
  const submission = {
    ...messageOf(message, { from, recipients, replyTo }),
    tag: configurationSetOf(fields),
    metadata: tagsOf(fields, 'Tags'),
  }
  message.refuseOthers()
  fields.refuseOthers()
  return { submission }
}

/** The parameters of SendRawEmail of version 1. */
export function readSesQueryRawEmail(parameters: unknown, mode: Mode): SesMail {
  const fields = queryFields(parameters)
  const from = senderOf(fields.text('Source', maxAddressLength))
  const to = fields.texts('Destinations', maxRecipients, maxAddressLength).map((one) => simulated(one, mode))
  const facts = { tag: configurationSetOf(fields), metadata: tagsOf(fields, 'Tags') }
  const data = dataOf(fields.value('RawMessage') ?? {}, 'RawMessage')
  fields.refuseOthers()
  return rawMail(data, { from, to, mode, ...facts })
}

function queryFields(parameters: unknown): JsonFields {
  const fields = new JsonFields(parameters, '', refuseSesField)
  for (const name of ['Action', 'Version']) fields.value(name)
  notServed(fields, unservedOfQuery)
  if (fields.text('ReturnPath', maxAddressLength))
    throw fields.wrong('ReturnPath', 'is not served: Postrider reports bounces in events, with a return path of its own', 'not served')
  return fields
}

interface Recipients {
  to: string[]
  cc: string[]
  bcc: string[]
}

const envelopeOf = ({ to, cc, bcc }: Recipients) => [...to, ...cc, ...bcc]

function destinationOf(fields: JsonFields, mode: Mode): Recipients {
  const destination = new JsonFields(fields.value('Destination') ?? {}, 'Destination', refuseSesField)
  const listOf = (name: string) => destination.texts(name, maxRecipients, maxAddressLength).map((one) => simulated(one, mode))
  const recipients = { to: listOf('ToAddresses'), cc: listOf('CcAddresses'), bcc: listOf('BccAddresses') }
  destination.refuseOthers()
  if (envelopeOf(recipients).length > maxRecipients) throw new SesRefusal('messageRejected', `Recipient count exceeds ${maxRecipients}.`)
  return recipients
}

interface Envelope {
  from: string
  recipients: Recipients
  replyTo: string[]
}

function messageOf(message: JsonFields, { from, recipients, replyTo }: Envelope): Submission {
  const body = new JsonFields(message.value('Body') ?? {}, 'Body', refuseSesField)
  const [html, text] = [contentOf(body, 'Html'), contentOf(body, 'Text')]
  body.refuseOthers()
  if (html === undefined && text === undefined) throw message.wrong('Body', 'must have Html or Text', 'missing')
  if (envelopeOf(recipients).length === 0) throw new SesRefusal('badRequest', 'Destination must have at least one address')
  const [to, cc, bcc] = [recipients.to, recipients.cc, recipients.bcc].map((list) => list.map(decodedMailbox))
  return {
    from: decodedMailbox(from),
    to: to ?? [],
    cc,
    bcc,
    subject: decodedText(contentOf(message, 'Subject', maxSubjectLength) ?? ''),
    ...(html ? { html } : {}),
    ...(text || !html ? { text: text ?? '' } : {}),
    vendor: { replyTo: replyTo.map(decodedMailbox), bounce: false },
  }
}

/** `{Data, Charset}`. The charset is that of the message that SES makes; Postrider writes UTF-8, which has all characters. */
function contentOf(fields: JsonFields, name: string, maxLength = maxTextLength): string | undefined {
  const value = fields.value(name)
  if (value === undefined) return undefined
  const content = new JsonFields(value, name, refuseSesField)
  const data = content.text('Data', maxLength)
  if (data === undefined) throw content.wrong('Data', 'is missing', 'missing')
  content.text('Charset', maxNameLength)
  content.refuseOthers()
  return data
}

/** The base64 of a raw message; some clients write it in lines. */
function dataOf(value: unknown, path: string): string {
  const raw = new JsonFields(value, path, refuseSesField)
  const data = raw.needed('Data', maxRawLength)
  raw.refuseOthers()
  return withoutSpaces(data)
}

function headersOf(message: JsonFields): Record<string, string> {
  const pairs = message.objects('Headers', maxHeaders).map((header): [string, string] => {
    const pair: [string, string] = [header.needed('Name', maxHeaderName), header.text('Value', maxHeaderLength) ?? '']
    header.refuseOthers()
    return pair
  })
  const names = pairs.map(([name]) => name.toLowerCase())
  if (new Set(names).size < names.length) throw message.wrong('Headers', 'names a header twice')
  return Object.fromEntries(pairs)
}

/** The configuration set becomes the email's tag, by which Postrider filters mail and chooses an egress pool. */
function configurationSetOf(fields: JsonFields): string | null {
  const name = fields.text('ConfigurationSetName', maxNameLength)
  if (!name) return null
  if (!setForm.test(name)) throw fields.wrong('ConfigurationSetName', 'must have 1 to 64 letters, digits, dashes and underscores')
  return name
}

function tagsOf(fields: JsonFields, name: string): Record<string, string> {
  const tags = fields.objects(name, maxTags).map((tag): [string, string] => {
    const pair = (['Name', 'Value'] as const).map((member) => {
      const text = tag.needed(member, maxNameLength)
      if (tagForm.test(text)) return text
      throw tag.wrong(member, 'must have only ASCII letters, digits, and the characters _ - . @')
    })
    tag.refuseOthers()
    return pair as [string, string]
  })
  if (new Set(tags.map(([key]) => key)).size < tags.length) throw fields.wrong(name, 'names a tag twice')
  return Object.fromEntries(tags)
}

function attachmentOf(fields: JsonFields): SubmittedAttachment {
  const filename = fields.needed('FileName', maxFilenameLength)
  const disposition = fields.text('ContentDisposition', maxNameLength) || 'ATTACHMENT'
  const contentId = fields.text('ContentId', maxNameLength)?.replace(/^<(.*)>$/, '$1') || null
  if (disposition !== 'INLINE' && disposition !== 'ATTACHMENT') throw fields.wrong('ContentDisposition', 'must be ATTACHMENT or INLINE')
  if (disposition === 'INLINE' && contentId === null)
    throw fields.wrong('ContentId', 'is missing: an inline attachment needs it', 'missing')
  // The encoding on the way, which does not change the attachment: Postrider writes base64.
  const encoding = fields.text('ContentTransferEncoding', maxNameLength)
  if (encoding && !['BASE64', 'QUOTED_PRINTABLE', 'SEVEN_BIT'].includes(encoding))
    throw fields.wrong('ContentTransferEncoding', 'must be BASE64, QUOTED_PRINTABLE or SEVEN_BIT')
  const attachment = {
    filename,
    content: withoutSpaces(fields.needed('RawContent', maxRawLength)),
    contentType: fields.text('ContentType', maxFilenameLength) || contentTypeOf(filename),
    contentId: disposition === 'INLINE' ? contentId : null,
  }
  fields.refuseOthers()
  return attachment
}
