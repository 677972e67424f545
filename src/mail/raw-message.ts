/**
 * Raw messages from callers: parses them as far as acceptance needs, and makes them sendable with the fewest changes (contract section
 * 7.6): CRLF line ends, no Bcc, missing fields added, no line over 998 octets.
 */
import { isAscii } from 'node:buffer'
import type { Mailbox } from './address.ts'
import { fieldLines, hasLongLine, withCrlf } from './line-endings.ts'
import { parseMailboxField } from './mailbox-field.ts'
import { type Originator, readOriginators } from './originators.ts'
import { fieldText, headerMap, parseFields, type RawField, splitMessage } from './parse-fields.ts'
import { toSevenBit } from './seven-bit.ts'
import type { BuiltMessage } from './types.ts'
import { dateText, plainField } from './write-header.ts'

export { toSevenBit } from './seven-bit.ts'

export interface RawFacts {
  from: Mailbox
  subject: string
  /** With angle brackets; undefined if it is missing or invalid. */
  messageId: string | undefined
  headers: Record<string, string>
  /** In addition to From. */
  originators: Originator[] | { unreadable: string }
  /** A Feedback-ID can be added: the message does not have one, and no signature of its own covers the field. */
  takesFeedbackId: boolean
}

export type RawProblem = 'no-header-block' | 'no-from' | 'several-from' | 'bad-from' | 'header-line-malformed'

const valuesOf = (fields: readonly RawField[], name: string) =>
  fields.filter((field) => field.name.toLowerCase() === name).map((field) => field.value)

/** Header limits: 256 KB and 1000 fields; line ends may be CRLF, LF or CR. */
export function readRaw(octets: Buffer): RawFacts | RawProblem {
  const { head } = splitMessage(octets)
  const fields = parseFields(head)
  if (!fields) return head.includes(':') ? 'header-line-malformed' : 'no-header-block'
  if (fields.length === 0) return 'no-header-block'
  if (head.includes('\0')) return 'header-line-malformed'
  const [from, second] = valuesOf(fields, 'from')
  if (from === undefined) return 'no-from'
  if (second !== undefined) return 'several-from'
  const mailbox = parseMailboxField(from)
  if (!mailbox) return 'bad-from'
  return {
    from: mailbox,
    subject: fieldText(valuesOf(fields, 'subject')[0] ?? ''),
    messageId: messageIdOf(fields),
    headers: headerMap(fields),
    originators: readOriginators(fields),
    takesFeedbackId:
      valuesOf(fields, 'feedback-id').length === 0 && !valuesOf(fields, 'dkim-signature').some((value) => /feedback-id/i.test(value)),
  }
}

function messageIdOf(fields: readonly RawField[]): string | undefined {
  const values = valuesOf(fields, 'message-id')
  return values.length === 1 ? /^<[!-;=?-~]{1,990}>$/.exec(fieldText(values[0] ?? ''))?.[0] : undefined
}

/** The header fields as written, from the top; undefined if the header block cannot be parsed. */
export const readFields = (octets: Buffer): RawField[] | undefined => parseFields(splitMessage(octets).head)

/** Removes the fields whose names begin with `prefix` (lower case); all other octets are unchanged. */
export function withoutFields(octets: Buffer, prefix: string): Buffer {
  const { head } = splitMessage(octets)
  let isKept = true
  const lines = head.split(/(?<=\n)/).filter((line) => {
    if (!/^[ \t]/.test(line)) isKept = !line.slice(0, prefix.length).toLowerCase().startsWith(prefix)
    return isKept
  })
  const kept = lines.join('')
  return kept.length === head.length ? octets : Buffer.concat([Buffer.from(kept, 'latin1'), octets.subarray(head.length)])
}

/** Postrider's trace header, which identifies one recipient's email; one in the given message would identify another's. */
export const traceHeaderField = 'X-Message-Mark'

/**
 * Fields that only Postrider may write, and results of servers that received the message: mail programs may trust these, although no
 * server on this path checked them.
 */
const dropped = new Set(['bcc', 'resent-bcc', 'return-path', 'authentication-results', traceHeaderField.toLowerCase()])

/** Fields to add, and whether the ARC chain stays: in a message of an author it is a claim, in a forwarded one receivers verify it. */
export interface RawAdditions {
  dateMs: number
  messageId: string
  feedbackId?: string | undefined
  keepsArc?: boolean | undefined
}

/** The octets to send, for a message accepted by `readRaw`; an invalid or repeated Message-ID is replaced by `messageId`. */
export function prepareRaw(octets: Buffer, add: RawAdditions): BuiltMessage {
  const { head, bodyStart } = splitMessage(octets)
  const written = parseFields(head) ?? []
  const keepsId = messageIdOf(written) !== undefined
  const isDropped = (name: string) => dropped.has(name) || (name.startsWith('arc-') && add.keepsArc !== true)
  const isKept = (name: string) => !isDropped(name) && (keepsId || name !== 'message-id')
  const fields = written.filter(({ name }) => isKept(name.toLowerCase()))
  const has = (name: string) => fields.some((field) => field.name.toLowerCase() === name)
  const lines = fields.map(fieldLines)
  if (!has('date')) lines.push(plainField('Date', dateText(add.dateMs)))
  if (!has('message-id')) lines.push(plainField('Message-ID', add.messageId))
  if (add.feedbackId !== undefined && !has('feedback-id')) lines.push(plainField('Feedback-ID', add.feedbackId))
  if (!has('mime-version')) lines.push(plainField('MIME-Version', '1.0'))
  const block = Buffer.from(lines.join(''), 'latin1')
  const body = withCrlf(octets.subarray(bodyStart))
  const whole = Buffer.concat([block, Buffer.from('\r\n'), body])
  const sendable = hasLongLine(body) || body.includes(0) ? toSevenBit(whole) : whole
  return { octets: sendable, needs8bit: !isAscii(sendable), needsSmtpUtf8: !isAscii(block) }
}
