/** Validates the attachments of a submission: their number, names, types, sizes and base64. */
import { rejectUnstorableText } from '#base'
import { refuseField, unfitForHeader } from './field-text.ts'
import type { SubmittedAttachment } from './submission.ts'

const largestAttachmentOctets = 10 * 1_048_576
/** In base64 with padding; longer values are refused without decoding. */
const maxAttachmentLength = Math.ceil(largestAttachmentOctets / 3) * 4
const maxAttachments = 100

/**
 * Decoded size of base64 text in octets; undefined if it is not base64 (padding is optional). Decoding is ten times as fast as a regular
 * expression over megabytes: the decoder skips invalid characters, and the size is then wrong.
 */
export function base64Octets(text: string): number | undefined {
  const digits = text.endsWith('==') ? text.length - 2 : text.endsWith('=') ? text.length - 1 : text.length
  if (digits % 4 === 1 || (text.length !== digits && text.length % 4 !== 0)) return undefined
  const octets = Math.floor((digits * 3) / 4)
  // The decoder also accepts the digits of base64url, and the low octet of a character beyond ASCII.
  if (text.includes('-') || text.includes('_') || Buffer.byteLength(text) !== text.length) return undefined
  return Buffer.from(text, 'base64').length === octets ? octets : undefined
}

const mediaType = /^[A-Za-z0-9!#$&^_.+-]+\/[A-Za-z0-9!#$&^_.+-]+(\s*;[\x20-\x7e]*)?$/

/** `octets`: of all decoded contents. */
export function checkAttachments(attachments: readonly SubmittedAttachment[] | null | undefined): {
  list: SubmittedAttachment[]
  octets: number
} {
  const list = [...(attachments ?? [])]
  if (list.length > maxAttachments) refuseField('attachments', `has more than ${maxAttachments} elements`)
  const octets = list.reduce((sum, one, index) => sum + checkAttachment(`attachments[${index}]`, one), 0)
  return { list, octets }
}

/** Returns the size of the decoded content in octets. */
function checkAttachment(field: string, { content, filename, contentType, contentId }: SubmittedAttachment): number {
  const octets = content.length > maxAttachmentLength ? content.length : base64Octets(content)
  if (octets === undefined) return refuseField(`${field}.content`, 'is not standard base64')
  if (octets > largestAttachmentOctets) refuseField(`${field}.content`, 'is larger than 10 MB', 'payload_too_large')
  rejectUnstorableText(`${field}.filename`, filename)
  if (filename.length < 1 || [...filename].length > 255) refuseField(`${field}.filename`, 'must have 1 to 255 characters')
  if (/[/\\\t]/.test(filename) || unfitForHeader.test(filename))
    refuseField(`${field}.filename`, 'must not contain path separators or control characters')
  if (contentType.length > 255 || !mediaType.test(contentType))
    refuseField(`${field}.contentType`, 'is not a media type such as application/pdf')
  if (contentId != null && !/^[!-;=?-~]{1,250}$/.test(contentId))
    refuseField(`${field}.contentId`, 'must be 1 to 250 printable characters without spaces or angle brackets')
  return octets
}
