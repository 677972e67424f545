/**
 * Converts a message for servers that accept only 7-bit lines: re-encodes such bodies in quoted-printable or base64 (RFC 2045 section 6,
 * RFC 6152 section 3), and the header fields of parts in encoded words. Must be done before signing.
 */
import { isAscii } from 'node:buffer'
import { encodeBase64, encodeQuotedPrintable } from './encode-body.ts'
import { fieldLines, hasLongLine, withCrlf } from './line-endings.ts'
import { fieldText, parseFields, type RawField, splitMessage, structured } from './parse-fields.ts'
import { decodeBody, partsOf } from './read-message.ts'
import { parameter, plainField, textField } from './write-header.ts'

const maxDepth = 20
/** A million empty parts took 3 s; real messages have fewer. */
const maxParts = 10_000

/** Ends with CRLF. The message's own header fields do not change. */
export const toSevenBit = (message: Buffer): Buffer => (isSevenBit(message) ? message : withCrlf(reencode(message, 0)))

/** RFC 2045 section 2.7: no octet over 127, no NUL, no long line. */
const isSevenBit = (octets: Buffer): boolean => isAscii(octets) && !octets.includes(0) && !hasLongLine(octets)

function reencode(entity: Buffer, depth: number): Buffer {
  if (isSevenBit(entity)) return entity
  const { head, bodyStart } = splitMessage(entity)
  const body = entity.subarray(bodyStart)
  const parsed = parseFields(head)
  // A part without header fields is all body.
  if (!parsed) return leaf([], entity, '', true)
  const fields = parsed.filter(({ name }) => name.toLowerCase() !== 'content-transfer-encoding')
  const headers = fields.map((field) => (depth === 0 ? fieldLines(field) : asciiField(field)))
  if (isSevenBit(body)) {
    const encoding = parsed.filter((field) => !fields.includes(field)).map(fieldLines)
    return whole([...headers, ...encoding], body)
  }
  const valueOf = (name: string) => structured(parsed.find((field) => field.name.toLowerCase() === name)?.value ?? '')
  const type = valueOf('content-type')
  const boundary = type.parameters.get('boundary')
  const isComposite = /^(?:multipart\/|message\/rfc822$)/.test(type.value)
  if (isComposite && depth < maxDepth) {
    const inner = type.value === 'message/rfc822' ? reencodedMessage(body, depth) : boundary && reencodedParts(body, boundary, depth)
    if (inner) return whole(headers, inner)
  }
  // RFC 2045 section 6.4: composite types allow no encoding, so a part that cannot be parsed is sent as octets.
  const kept = isComposite
    ? [...headers.filter((field) => !/^content-type:/i.test(field)), plainField('Content-Type', 'application/octet-stream')]
    : headers
  const isText = type.value === '' || type.value.startsWith('text/')
  return leaf(kept, body, valueOf('content-transfer-encoding').value, isText)
}

const whole = (headers: readonly string[], body: Buffer) => Buffer.concat([Buffer.from(`${headers.join('')}\r\n`, 'latin1'), body])

/** A base64 body may contain text whose line ends are not ASCII line ends, so it stays base64. */
function leaf(headers: readonly string[], body: Buffer, encoding: string, isText: boolean): Buffer {
  const content = decodeBody(body, encoding)
  const quoted = isText && encoding !== 'base64'
  const field = plainField('Content-Transfer-Encoding', quoted ? 'quoted-printable' : 'base64')
  return whole([...headers, field], quoted ? encodeQuotedPrintable(content) : encodeBase64(content))
}

/** Undefined if the enclosed message's own header is not ASCII, which only message/global may carry (RFC 6532 section 3.7). */
function reencodedMessage(body: Buffer, depth: number): Buffer | undefined {
  const { head, bodyStart } = splitMessage(body)
  return isSevenBit(body.subarray(0, bodyStart)) && parseFields(head) ? reencode(body, depth + 1) : undefined
}

/** Text before the first boundary and after the last is not displayed, and is omitted. Undefined if there are no parts, or too many. */
function reencodedParts(body: Buffer, boundary: string, depth: number): Buffer | undefined {
  const parts = partsOf(body, boundary, maxParts + 1)
  if (parts.length === 0 || parts.length > maxParts) return undefined
  const pieces = parts.flatMap((part) => [Buffer.from(`--${boundary}\r\n`, 'latin1'), reencode(part, depth + 1), Buffer.from('\r\n')])
  return Buffer.concat([...pieces, Buffer.from(`--${boundary}--\r\n`, 'latin1')])
}

/** A part's field without octets over 127: parameters by RFC 2231, other text by RFC 2047. */
function asciiField(field: RawField): string {
  if (/^[\u0001-\u007f]*$/.test(field.value)) return fieldLines(field)
  const { value, parameters } = structured(field.value)
  if (!/^content-(?:type|disposition)$/i.test(field.name) || !/^[!-~]+$/.test(value)) return textField(field.name, fieldText(field.value))
  const texts = [...parameters].filter(([name]) => /^[!-~]+$/.test(name)).map(([name, text]) => parameter(name, text))
  return `${field.name}: ${value}${texts.join('')}\r\n`
}
