/** Translates the parameters of `/api/v1/send/message` to a submission, in the order of Postal's own checks. */
import type { Submission } from '#accept'
import { parseMailbox } from '#mail'
import { splitAddresses, withoutSpaces } from '#vendors'
import { PostalRefusal, parameterError } from './envelope.ts'
import { addressesParameter, isBlank, maxAddresses, maxAddressList, type Parameters, textParameter } from './parameters.ts'

const maxBodyLength = 5_242_880
const maxTagLength = 255

/** Fields that the request's own parameters give, or that Postrider writes. Postal overwrites most of them too. */
const writtenFields = new Set([
  'from',
  'to',
  'cc',
  'bcc',
  'subject',
  'sender',
  'reply-to',
  'message-id',
  'date',
  'mime-version',
  'received',
  'return-path',
  'dkim-signature',
  'x-postal-tag',
])

const tooMany = { to: 'To', cc: 'CC', bcc: 'BCC' } as const

/** Throws a `PostalRefusal`, or a `Refusal` for a parameter error. */
export function readSendMessage(parameters: Parameters): Submission {
  const to = addressesParameter(parameters, 'to')
  const cc = addressesParameter(parameters, 'cc')
  const bcc = addressesParameter(parameters, 'bcc')
  if (to.length + cc.length + bcc.length === 0)
    throw new PostalRefusal('NoRecipients', 'There are no recipients defined to receive this message')
  for (const [name, list] of Object.entries({ to, cc, bcc }) as [keyof typeof tooMany, string[]][])
    if (list.length > maxAddresses)
      throw new PostalRefusal(
        `TooMany${tooMany[name]}Addresses`,
        `The maximum number of ${tooMany[name]} addresses has been reached (maximum ${maxAddresses})`,
      )
  const text = textParameter(parameters, 'plain_body', maxBodyLength)
  const html = textParameter(parameters, 'html_body', maxBodyLength)
  if (isBlank(text) && isBlank(html)) throw new PostalRefusal('NoContent', 'There is no content defined for this e-mail')
  const from = textParameter(parameters, 'from', maxAddressList)
  if (from === undefined || isBlank(from)) throw new PostalRefusal('FromAddressMissing', 'The From address is missing and is required')
  refuseOtherSender(textParameter(parameters, 'sender', maxAddressList), from)
  return {
    from,
    to,
    cc,
    bcc,
    subject: textParameter(parameters, 'subject', maxAddressList) ?? '',
    ...(isBlank(text) ? {} : { text }),
    ...(isBlank(html) ? {} : { html }),
    tag: textParameter(parameters, 'tag', maxTagLength),
    headers: headersOf(parameters.headers),
    attachments: attachmentsOf(parameters.attachments),
    vendor: { replyTo: replyToOf(parameters), bounce: !isBlank(parameters.bounce) },
  }
}

function replyToOf(parameters: Parameters): string[] {
  const value = parameters.reply_to
  return Array.isArray(value)
    ? addressesParameter(parameters, 'reply_to')
    : splitAddresses(textParameter(parameters, 'reply_to', maxAddressList) ?? '', maxAddresses)
}

/** The domain of `from` always decides, so a Sender field of another address could not be authenticated. */
function refuseOtherSender(sender: string | undefined, from: string): void {
  if (sender === undefined || isBlank(sender)) return
  if (parseMailbox(sender)?.address.text.toLowerCase() === parseMailbox(from)?.address.text.toLowerCase()) return
  throw parameterError('`sender` is not served, except with the address of `from`: omit it, and send from the address in `from`')
}

function headersOf(value: unknown): Record<string, string> {
  if (isBlank(value)) return {}
  if (typeof value !== 'object' || Array.isArray(value)) throw parameterError('`headers` must be an object of strings')
  const headers: [string, string][] = []
  for (const [name, text] of Object.entries(value as object)) {
    const lower = name.toLowerCase()
    if (text === null || writtenFields.has(lower) || lower.startsWith('content-')) continue
    if (typeof text === 'object') throw parameterError(`\`headers\`: ${name.slice(0, 76)} must be a string`)
    headers.push([name, String(text)])
  }
  return Object.fromEntries(headers)
}

const mediaType = /^[A-Za-z0-9!#$&^_.+-]+\/[A-Za-z0-9!#$&^_.+-]+(\s*;[\x20-\x7e]*)?$/
/** Path separators, control characters and line separators. */
const unfitForName = /[/\\\p{Cc}\u2028\u2029]/gu
const maxNameLength = 255

function attachmentsOf(value: unknown): NonNullable<Submission['attachments']> {
  if (isBlank(value)) return []
  if (!Array.isArray(value)) throw parameterError('`attachments` must be an array of objects')
  return value.flatMap((one: unknown) =>
    typeof one === 'object' && one !== null && !Array.isArray(one) ? [attachmentOf(one as Parameters)] : [],
  )
}

function attachmentOf(one: Parameters) {
  const { name, content_type: type, data } = one
  if (isBlank(name)) throw new PostalRefusal('AttachmentMissingName', 'An attachment is missing a name')
  if (isBlank(data)) throw new PostalRefusal('AttachmentMissingData', 'An attachment is missing data')
  if (typeof name !== 'string' || typeof data !== 'string') throw parameterError('`attachments` must have `name` and `data` as strings')
  return {
    filename: [
      ...name
        .slice(0, maxNameLength * 2)
        .toWellFormed()
        .replace(unfitForName, '_'),
    ]
      .slice(0, maxNameLength)
      .join(''),
    contentType: typeof type === 'string' && type.length <= maxNameLength && mediaType.test(type) ? type : 'application/octet-stream',
    content: withoutSpaces(data),
  }
}
