/** Translates the body of `POST /email` and the elements of `POST /email/batch` to submissions. */
import type { AcceptedSubmission, BatchElement, Submission } from '#accept'
import { Refusal } from '#base'
import { isMailerField, JsonFields, splitAddresses, withoutSpaces } from '#vendors'
import { postmarkStreamKey, usualPostmarkStream } from '#webhooks'
import { inactiveNote, PostmarkRefusal, refusePostmarkField } from './errors.ts'

export const maxPostmarkBatch = 500
const maxRecipients = 50
const maxAddressList = 50_000
const maxAddressLength = 1000
const maxSubjectLength = 2000
const maxBodyLength = 14_680_064
const maxTagLength = 1000
const maxStreamLength = 100
const maxHeaders = 50
const maxHeaderName = 76
const maxHeaderLength = 998
const maxMetadata = 10
const maxMetadataLength = 500
const maxAttachments = 100
const maxNameLength = 255

const streamForm = /^[a-z0-9][a-z0-9-]*$/

/** Throws a `PostmarkRefusal` or a `Refusal`. */
export function readPostmarkEmail(body: unknown): Submission {
  const fields = new JsonFields(body, '', refusePostmarkField)
  const from = fields.needed('From', maxAddressLength)
  const [to, cc, bcc] = (['To', 'Cc', 'Bcc'] as const).map((name) => splitAddresses(fields.text(name, maxAddressList) ?? '', maxRecipients))
  const recipients = [to, cc, bcc].reduce((sum, list) => sum + (list?.length ?? 0), 0)
  if (recipients === 0) throw new PostmarkRefusal(300, "Zero recipients specified. The 'To' field is missing.")
  if (recipients > maxRecipients) throw new PostmarkRefusal(300, `A message has more than ${maxRecipients} recipients.`)
  const html = fields.text('HtmlBody', maxBodyLength)
  const text = fields.text('TextBody', maxBodyLength)
  if (!html && !text) throw new PostmarkRefusal(300, "Provide either 'TextBody' or 'HtmlBody' (or both).")
  const stream = streamOf(fields)
  const submission: Submission = {
    from,
    to: to ?? [],
    cc: cc ?? [],
    bcc: bcc ?? [],
    subject: fields.text('Subject', maxSubjectLength) ?? '',
    ...(html ? { html } : {}),
    ...(text ? { text } : {}),
    tag: fields.text('Tag', maxTagLength) || (stream ?? null),
    headers: headersOf(fields),
    attachments: fields.objects('Attachments', maxAttachments).map(attachmentOf),
    metadata: { ...metadataOf(fields), ...(stream === undefined ? {} : { [postmarkStreamKey]: stream }) },
    vendor: {
      replyTo: splitAddresses(fields.text('ReplyTo', maxAddressList) ?? '', maxRecipients),
      bounce: false,
      tracking: { opens: fields.flag('TrackOpens'), clicks: clicksOf(fields) },
    },
  }
  fields.refuseOthers()
  return submission
}

/** The elements of a batch; a wrong element is refused for itself. */
export function readPostmarkBatch(body: unknown): BatchElement<Submission>[] {
  if (!Array.isArray(body) || body.length < 1) throw new PostmarkRefusal(403, 'The batch must be an array of messages.')
  if (body.length > maxPostmarkBatch) throw new PostmarkRefusal(410, `A batch has more than ${maxPostmarkBatch} messages.`)
  return body.map((one: unknown) => {
    try {
      return { submission: readPostmarkEmail(one) }
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      return { refused: error, recipients: 0 }
    }
  })
}

/** undefined: the default stream. */
function streamOf(fields: JsonFields): string | undefined {
  const stream = fields.text('MessageStream', maxStreamLength)
  if (!stream || stream === usualPostmarkStream) return undefined
  if (!streamForm.test(stream)) throw fields.wrong('MessageStream', 'must have only lower-case letters, digits and dashes')
  return stream
}

function clicksOf(fields: JsonFields): boolean | undefined {
  const links = fields.text('TrackLinks', maxNameLength)
  if (links === undefined || links === '') return undefined
  if (links === 'None') return false
  if (links === 'HtmlOnly' || links === 'HtmlAndText') return true
  throw fields.wrong('TrackLinks', 'must be None, HtmlOnly or HtmlAndText')
}

function headersOf(fields: JsonFields): Record<string, string> {
  const headers = fields.objects('Headers', maxHeaders).map((header): [string, string] => {
    const pair: [string, string] = [header.needed('Name', maxHeaderName), header.text('Value', maxHeaderLength) ?? '']
    header.refuseOthers()
    return pair
  })
  if (headers.some(([name, value]) => name.toLowerCase() === 'x-pm-keepid' && /^true$/i.test(value)))
    throw fields.wrong('Headers', 'has X-PM-KeepID, which is not served: Postrider writes the Message-ID')
  const own = headers.filter(([name]) => !isMailerField(name))
  const names = own.map(([name]) => name.toLowerCase())
  if (new Set(names).size < names.length) throw fields.wrong('Headers', 'names a header twice')
  return Object.fromEntries(own)
}

function metadataOf(fields: JsonFields): Record<string, string> {
  const metadata = fields.pairs('Metadata', maxMetadata, maxMetadataLength)
  if (Object.hasOwn(metadata, postmarkStreamKey)) throw fields.wrong(`Metadata.${postmarkStreamKey}`, 'is reserved')
  return metadata
}

function attachmentOf(fields: JsonFields) {
  const filename = fields.needed('Name', maxNameLength)
  const contentId = contentIdOf(fields, filename)
  const disposition = fields.text('Disposition', maxNameLength)
  if (disposition && disposition !== (contentId === null ? 'attachment' : 'inline'))
    throw fields.wrong('Disposition', 'is served only as `inline` with a ContentID and as `attachment` without')
  // The SDK's own count of the octets, which the content shows.
  fields.value('ContentLength')
  const attachment = {
    filename,
    content: withoutSpaces(fields.needed('Content', maxBodyLength * 2)),
    contentType: fields.text('ContentType', maxNameLength) || 'application/octet-stream',
    contentId,
  }
  fields.refuseOthers()
  return attachment
}

/** null: not inline. Postmark's PHP client writes `ContentId` in place of `ContentID`, with the name of every attachment that has no id. */
function contentIdOf(fields: JsonFields, filename: string): string | null {
  const [given, ofPhp] = (['ContentID', 'ContentId'] as const).map((name) => fields.text(name, maxNameLength))
  const id = given || (ofPhp === filename ? undefined : ofPhp)
  return id ? id.replace(/^cid:/, '') : null
}

/** The answer to a message: recipients as given. `inactive`: recipients that are suppressed. */
export function postmarkSent(
  { id }: Pick<AcceptedSubmission, 'id'>,
  { to, cc, bcc }: Pick<Submission, 'to' | 'cc' | 'bcc'>,
  { nowMs, inactive = [], message = 'OK' }: { nowMs: number; inactive?: readonly string[]; message?: string },
) {
  return {
    ...(to.length > 0 ? { To: to.join(', ') } : {}),
    ...(cc && cc.length > 0 ? { Cc: cc.join(', ') } : {}),
    ...(bcc && bcc.length > 0 ? { Bcc: bcc.join(', ') } : {}),
    SubmittedAt: new Date(nowMs).toISOString(),
    MessageID: id,
    ErrorCode: 0,
    Message: inactive.length > 0 ? inactiveNote(inactive) : message,
  }
}
