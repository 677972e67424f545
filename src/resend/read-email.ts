/** Translates the body of `POST /emails` and the elements of `POST /emails/batch` to submissions. */
import { type BatchElement, parseScheduledTime, type ScheduledTime, type Submission } from '#accept'
import { Refusal } from '#base'
import { parseMailbox } from '#mail'
import { contentTypeOf, isMailerField, JsonFields, withoutSpaces } from '#vendors'
import { ResendRefusal, refuseResendField } from './errors.ts'

export const maxResendBatch = 100
const maxRecipients = 50
const maxAddressLength = 1000
const maxTextLength = 14_680_064
const maxSubjectLength = 998
const maxHeaders = 50
const maxHeaderLength = 998
const maxTags = 75
const maxTagLength = 256
const maxAttachments = 100
const maxFilenameLength = 255
const maxTimeLength = 100
const maxTypeLength = 255
const tagForm = /^[\w-]+$/

/** The tag of this name is also the email's tag, by which Postrider filters and routes. */
const tagOfEmails = 'category'

/** Throws a `ResendRefusal` or a `Refusal`. `mode`: of the key; only test keys may write to Resend's test addresses. */
export function readResendEmail(body: unknown, mode: 'live' | 'test'): Submission {
  const fields = new JsonFields(body, '', refuseResendField)
  for (const name of ['template', 'topic_id']) if (fields.value(name) !== undefined) throw fields.wrong(name, 'is not served', 'not served')
  const from = fields.needed('from', maxAddressLength)
  const to = addressesOf(fields, 'to', mode)
  if (to.length === 0) throw fields.wrong('to', 'is missing', 'missing')
  const subject = fields.needed('subject', maxSubjectLength)
  const html = fields.text('html', maxTextLength)
  const text = fields.text('text', maxTextLength)
  if (!html && !text) throw new ResendRefusal(422, 'missing_required_field', 'Missing `html` or `text` field.')
  const tags = tagsOf(fields)
  const submission: Submission = {
    from,
    to,
    cc: addressesOf(fields, 'cc', mode),
    bcc: addressesOf(fields, 'bcc', mode),
    subject,
    ...(html ? { html } : {}),
    ...(text === undefined ? {} : { text }),
    headers: headersOf(fields),
    attachments: fields.objects('attachments', maxAttachments).map(attachmentOf),
    metadata: tags,
    tag: tags[tagOfEmails] ?? null,
    scheduledAt: scheduledTimeIn(fields),
    vendor: { replyTo: fields.texts('reply_to', maxRecipients, maxAddressLength), bounce: false },
  }
  fields.refuseOthers()
  return submission
}

/** The body of `PATCH /emails/:id`. */
export function readResendSchedule(body: unknown): ScheduledTime {
  const fields = new JsonFields(body, '', refuseResendField)
  const at = scheduledTimeIn(fields)
  if (at === undefined) throw fields.wrong('scheduled_at', 'is missing', 'missing')
  fields.refuseOthers()
  return at
}

const unitMs = new Map<string, number>([
  ['s', 1000],
  ['sec', 1000],
  ['second', 1000],
  ['m', 60_000],
  ['min', 60_000],
  ['minute', 60_000],
  ['h', 3_600_000],
  ['hr', 3_600_000],
  ['hour', 3_600_000],
  ['day', 86_400_000],
  ['week', 604_800_000],
])
const fromNow = /^in\s+(\d{1,6}|an?|one)\s*([a-z]+?)s?$/i

/** ISO 8601 with a zone, or `in 5 minutes`; other words would depend on a zone that the request does not name. */
function scheduledTimeIn(fields: JsonFields): ScheduledTime | undefined {
  const text = fields.text('scheduled_at', maxTimeLength)?.trim()
  if (text === undefined) return undefined
  const [, count = '', unit = ''] = fromNow.exec(text) ?? []
  const ms = unitMs.get(unit.toLowerCase())
  if (ms !== undefined) return { inMs: ms * (/^\d/.test(count) ? Number(count) : 1) }
  if (parseScheduledTime(text) === undefined)
    throw fields.wrong('scheduled_at', 'must be an ISO 8601 time with a zone, or such as `in 5 minutes`')
  return text
}

/** The elements of a batch; a wrong element is refused for itself. */
export function readResendBatch(body: unknown, mode: 'live' | 'test'): BatchElement<Submission>[] {
  if (!Array.isArray(body) || body.length < 1 || body.length > maxResendBatch)
    throw new ResendRefusal(422, 'validation_error', `The batch must be an array of 1 to ${maxResendBatch} emails.`)
  return body.map((one: unknown) => {
    try {
      return { submission: readResendEmail(one, mode) }
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      return { refused: error, recipients: 0 }
    }
  })
}

/** Resend's test addresses, and the simulator's with the same outcome. */
const testAddresses: Readonly<Record<string, string>> = {
  delivered: 'delivered',
  bounced: 'bounce',
  complained: 'complaint',
  suppressed: 'suppressed',
}
const testDomain = 'resend.dev'

function addressesOf(fields: JsonFields, name: string, mode: 'live' | 'test'): string[] {
  return fields.texts(name, maxRecipients, maxAddressLength).map((text) => {
    const address = parseMailbox(text)?.address
    if (address?.domain.toLowerCase() !== testDomain) return text
    if (mode !== 'test') throw fields.wrong(name, `has a test address: ${testDomain} needs a key that begins with svc_test_`)
    const [name_ = '', label] = address.text.slice(0, -testDomain.length - 1).split('+', 2)
    const outcome = testAddresses[name_.toLowerCase()]
    if (outcome === undefined) throw fields.wrong(name, `has an unknown test address: ${address.text.slice(0, 100)}`)
    return `${outcome}${label === undefined ? '' : `+${label}`}@simulator.test`
  })
}

const headersOf = (fields: JsonFields): Record<string, string> =>
  Object.fromEntries(Object.entries(fields.pairs('headers', maxHeaders, maxHeaderLength)).filter(([name]) => !isMailerField(name)))

function tagsOf(fields: JsonFields): Record<string, string> {
  const tags = fields.objects('tags', maxTags).map((tag): [string, string] => {
    const pair = (['name', 'value'] as const).map((member) => {
      const text = tag.needed(member, maxTagLength)
      if (tagForm.test(text)) return text
      throw tag.wrong(member, 'must have only ASCII letters, digits, underscores and dashes')
    })
    tag.refuseOthers()
    return pair as [string, string]
  })
  return Object.fromEntries(tags)
}

function attachmentOf(fields: JsonFields) {
  if (fields.value('path') !== undefined) throw fields.wrong('path', 'is not served: send the file in `content`', 'wrong')
  const filename = fields.text('filename', maxFilenameLength) || 'attachment'
  const attachment = {
    filename,
    content: contentOf(fields),
    contentType: fields.text('content_type', maxTypeLength) ?? contentTypeOf(filename),
    contentId: fields.text('content_id', maxTypeLength) || null,
  }
  fields.refuseOthers()
  return attachment
}

/** Base64, or octets as JSON has Node's Buffer: SDKs up to 6.4 send these. */
function contentOf(fields: JsonFields): string {
  const value = fields.value('content')
  if (value === undefined) throw fields.wrong('content', 'is missing', 'missing')
  if (typeof value === 'string') return withoutSpaces(value)
  const data: unknown = typeof value === 'object' && !Array.isArray(value) ? (value as { data?: unknown }).data : value
  if (Array.isArray(data) && data.every((one) => Number.isInteger(one) && one >= 0 && one <= 255))
    return Buffer.from(data).toString('base64')
  throw fields.wrong('content', 'must be base64, or a Buffer')
}
