/**
 * A message that a caller wrote: understood as far as acceptance needs, and made sendable with as few changes as possible (contract
 * section 7.6): CRLF line ends, no Bcc, missing fields added, no line over 998 octets.
 */
import { type Mailbox, parseMailbox } from './address.ts'
import { encodeBase64, encodeQuotedPrintable } from './body.ts'
import { fieldText, headerMap, parseFields, type RawField, splitMessage, structured } from './fields.ts'
import { dateText, isAscii, plainField } from './header.ts'
import { decodeBody, partsOf } from './read.ts'
import type { BuiltMessage } from './types.ts'

export interface RawFacts {
  from: Mailbox | undefined
  subject: string
  messageId: string | undefined
  headers: Record<string, string>
}

export type RawProblem = 'no-header-block' | 'no-from' | 'several-from' | 'bad-from' | 'header-line-malformed'

const longestLine = 998
const mostDepth = 20

const valuesOf = (fields: readonly RawField[], name: string) =>
  fields.filter((field) => field.name.toLowerCase() === name).map((field) => field.value)

export function readRaw(octets: Buffer): RawFacts | RawProblem {
  const { head } = splitMessage(octets)
  const fields = parseFields(head)
  if (!fields) return head.includes(':') ? 'header-line-malformed' : 'no-header-block'
  if (fields.length === 0) return 'no-header-block'
  const from = valuesOf(fields, 'from')
  if (from.length === 0) return 'no-from'
  if (from.length > 1) return 'several-from'
  const mailbox = parseMailbox(fieldText(from[0] as string))
  if (!mailbox) return 'bad-from'
  const messageId = /^<[!-;=?-~]{1,990}>$/.exec(fieldText(valuesOf(fields, 'message-id')[0] ?? ''))?.[0]
  return { from: mailbox, subject: fieldText(valuesOf(fields, 'subject')[0] ?? ''), messageId, headers: headerMap(fields) }
}

const dropped = new Set(['bcc', 'return-path'])

/** The octets to send; the given ones where nothing had to change. */
export function prepareRaw(octets: Buffer, add: { dateMs: number; messageId: string }): BuiltMessage {
  const { head, bodyStart } = splitMessage(octets)
  const fields = (parseFields(head) ?? []).filter(
    ({ name }) => !dropped.has(name.toLowerCase()) && !(name.toLowerCase() === 'message-id' && !keepsMessageId(head)),
  )
  const has = (name: string) => fields.some((field) => field.name.toLowerCase() === name)
  const lines = fields.map(({ name, value }) => `${name}:${value}\r\n`)
  if (!has('date')) lines.push(plainField('Date', dateText(add.dateMs)))
  if (!has('message-id')) lines.push(plainField('Message-ID', add.messageId))
  if (!has('mime-version')) lines.push(plainField('MIME-Version', '1.0'))
  const block = lines.map(foldLong).join('')
  const body = withCrlf(octets.subarray(bodyStart))
  const needsSmtpUtf8 = !isAscii(block)
  let built: Buffer = Buffer.concat([Buffer.from(`${block}\r\n`, 'latin1'), body])
  if (hasLongLine(body)) built = toSevenBit(built)
  return { octets: built, needs8bit: built.some((octet) => octet > 127), needsSmtpUtf8 }
}

/** A Message-ID that is none is replaced. */
const keepsMessageId = (head: string) => {
  const value = valuesOf(parseFields(head) ?? [], 'message-id')[0]
  return value !== undefined && /^<[!-;=?-~]{1,990}>$/.test(fieldText(value))
}

/** CR, LF and CRLF all become CRLF, and the last line ends with one. */
function withCrlf(body: Buffer): Buffer {
  const text = body.toString('latin1')
  const normal = /(?:^|[^\r])\n|\r(?!\n)/.test(text) ? text.replace(/\r\n|\r|\n/g, '\r\n') : text
  return Buffer.from(normal === '' || normal.endsWith('\r\n') ? normal : `${normal}\r\n`, 'latin1')
}

function foldLong(field: string): string {
  if (field.split('\r\n').every((line) => line.length <= longestLine)) return field
  return field
    .split('\r\n')
    .map((line) =>
      (line.match(/.{1,900}(?:\s|$)|.{1,900}/g) ?? [''])
        .map((piece, index) => (index === 0 ? piece : ` ${piece.trimStart()}`))
        .join('\r\n'),
    )
    .join('\r\n')
}

function hasLongLine(body: Buffer): boolean {
  let from = 0
  for (let at = body.indexOf(10); at >= 0; at = body.indexOf(10, from)) {
    if (at - from - 1 > longestLine) return true
    from = at + 1
  }
  return body.length - from > longestLine
}

/** Bodies that are not 7 bits, or have lines over 998 octets, in quoted-printable or base64: to be done before signing. */
export function toSevenBit(message: Buffer): Buffer {
  return reencode(message, 0)
}

function reencode(entity: Buffer, depth: number): Buffer {
  const { head, bodyStart } = splitMessage(entity)
  const body = entity.subarray(bodyStart)
  if (!hasLongLine(body) && !body.some((octet) => octet > 127)) return entity
  const fields = parseFields(head) ?? []
  const type = structured(valuesOf(fields, 'content-type')[0] ?? '')
  const boundary = type.parameters.get('boundary')
  if (type.value.startsWith('multipart/') && boundary && depth < mostDepth) return withParts(entity, bodyStart, boundary, depth)
  const encoding = structured(valuesOf(fields, 'content-transfer-encoding')[0] ?? '').value
  const content = decodeBody(body, encoding)
  const isText = type.value === '' || type.value.startsWith('text/')
  const kept = fields
    .filter(({ name }) => name.toLowerCase() !== 'content-transfer-encoding')
    .map(({ name, value }) => `${name}:${value}\r\n`)
  const fieldsOut = [...kept, plainField('Content-Transfer-Encoding', isText ? 'quoted-printable' : 'base64')].join('')
  return Buffer.concat([
    Buffer.from(`${fieldsOut}\r\n`, 'latin1'),
    isText ? encodeQuotedPrintable(content) : encodeBase64(content),
    Buffer.from(isText && content.at(-1) === 10 ? '' : '\r\n'),
  ])
}

function withParts(entity: Buffer, bodyStart: number, boundary: string, depth: number): Buffer {
  const head = entity
    .subarray(0, bodyStart)
    .toString('latin1')
    .replace(/^content-transfer-encoding:.*(?:\r\n[ \t].*)*\r\n/im, '')
  const parts = partsOf(entity.subarray(bodyStart), boundary).map((part) => reencode(part, depth + 1))
  const pieces = parts.flatMap((part) => [Buffer.from(`--${boundary}\r\n`, 'latin1'), part, Buffer.from('\r\n')])
  return Buffer.concat([Buffer.from(head, 'latin1'), ...pieces, Buffer.from(`--${boundary}--\r\n`, 'latin1')])
}
