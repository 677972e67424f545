/**
 * Builds a message from its parts (RFC 5322, 2045 to 2047, 2231, 6532): only CRLF, no line over 998 octets, bodies in 7 bits except
 * attached messages, so that no server on the way needs to change it. The same parts and seed give the same octets.
 */
import { isAscii as isAsciiOctets } from 'node:buffer'
import { hash } from 'node:crypto'
import { encodeBase64, encodeText } from './encode-body.ts'
import { hasLongLine, withCrlf } from './line-endings.ts'
import { readFields, toSevenBit } from './raw-message.ts'
import type { Attachment, BuiltMessage, MessageParts } from './types.ts'
import { addressField, dateText, isAscii, mailboxText, oneLine, parameter, plainField, textField } from './write-header.ts'

/** A MIME entity: its own header fields, and the pieces of its body. */
interface Entity {
  fields: string
  body: Piece[]
  /** The body has an octet over 127. */
  needs8bit?: boolean
}

type Piece = string | Buffer

export function buildMessage(parts: MessageParts): BuiltMessage {
  const addresses = [...parts.to, ...parts.cc, parts.replyTo ?? '', parts.from.address.text]
  const needsSmtpUtf8 = addresses.some((address) => !isAscii(address))
  const boundary = boundaries(parts.boundarySeed)
  const { fields, body, needs8bit = false } = contentOf(parts, boundary)
  const head = [
    plainField('Date', dateText(parts.dateMs)),
    `From: ${mailboxText(parts.from)}\r\n`,
    parts.replyTo === undefined ? '' : plainField('Reply-To', parts.replyTo),
    parts.to.length === 0 ? plainField('To', 'undisclosed-recipients:;') : addressField('To', parts.to),
    parts.cc.length === 0 ? '' : addressField('Cc', parts.cc),
    textField('Subject', parts.subject),
    plainField('Message-ID', oneLine(parts.messageId)),
    ...parts.headers.map(([name, value]) => textField(name, value)),
    plainField('MIME-Version', '1.0'),
    fields,
    '\r\n',
  ]
  return { octets: written([head.join(''), ...body, '\r\n']), needs8bit: needs8bit || needsSmtpUtf8, needsSmtpUtf8 }
}

/** Joins the pieces in one buffer: intermediate copies are garbage outside the heap, and V8 then collects as often as they are made. */
function written(pieces: readonly Piece[]): Buffer {
  const out = Buffer.allocUnsafe(pieces.reduce((sum, piece) => sum + Buffer.byteLength(piece), 0))
  let at = 0
  for (const piece of pieces) at += typeof piece === 'string' ? out.write(piece, at) : piece.copy(out, at)
  return out
}

/** Boundaries that cannot occur in a body: encoded bodies never contain `=_`, and plain ones would have to guess a hash. */
function boundaries(seed: string): () => string {
  let count = 0
  return () => `=_${hash('sha256', `${seed} ${count++}`).slice(0, 32)}`
}

function contentOf(parts: MessageParts, boundary: () => string): Entity {
  const inline = parts.html === undefined ? [] : parts.attachments.filter((one) => one.contentId !== undefined)
  const attached = parts.attachments.filter((one) => !inline.includes(one))
  const text = parts.text === undefined && parts.html !== undefined ? undefined : textEntity('plain', parts.text ?? '')
  const html = parts.html === undefined ? undefined : textEntity('html', parts.html)
  let entity = text && html ? multipart('alternative', [text, html], boundary()) : ((text ?? html) as Entity)
  if (inline.length > 0) entity = multipart('related', [entity, ...inline.map(attachmentEntity)], boundary())
  return attached.length > 0 ? multipart('mixed', [entity, ...attached.map(attachmentEntity)], boundary()) : entity
}

function textEntity(subtype: 'plain' | 'html', text: string): Entity {
  const { encoding, content } = encodeText(text)
  return { fields: `Content-Type: text/${subtype}; charset=utf-8\r\nContent-Transfer-Encoding: ${encoding}\r\n`, body: [content] }
}

function attachmentEntity(attachment: Attachment): Entity {
  const { filename, contentType, contentId } = attachment
  const media = oneLine(contentType)
  const message = /^message\/rfc822\s*(?:;|$)/i.test(media) ? attachedMessage(attachment.content) : undefined
  // Other composite types must not be base64 either (RFC 2046 section 5.2), nor must an attachment declared as a message that is not one:
  // they are sent as application data.
  const type = message
    ? 'message/rfc822'
    : /^(message|multipart)\//i.test(media) || media.length > 255
      ? 'application/octet-stream'
      : media.replace(/\s*;\s*name\*?\d*\*?=[^;]*/gi, '')
  const typeField = type.length > 60 ? type.replace(/;\s*/g, ';\r\n ') : type
  const disposition = contentId === undefined ? 'attachment' : 'inline'
  const idField = contentId === undefined ? '' : `Content-ID: <${oneLine(contentId)}>\r\n`
  const { encoding, content } = message ?? { encoding: 'base64', content: encodeBase64(attachment.content) }
  return {
    fields: `Content-Type: ${typeField}${parameter('name', filename)}\r\nContent-Transfer-Encoding: ${encoding}\r\nContent-Disposition: ${disposition}${parameter('filename', filename)}\r\n${idField}`,
    body: [content],
    needs8bit: encoding === '8bit',
  }
}

/**
 * A message/rfc822 part allows no other encoding than these (RFC 2046 section 5.2.1). Its octets are unchanged, so that its signatures
 * stay valid, except lines that SMTP cannot carry. Undefined if the content is not a message.
 */
function attachedMessage(content: Buffer): { encoding: '7bit' | '8bit'; content: Buffer } | undefined {
  const fields = readFields(content)
  if (!fields || fields.length === 0) return undefined
  const octets = withCrlf(content)
  const sendable = hasLongLine(octets) || octets.includes(0) ? toSevenBit(octets) : octets
  if (hasLongLine(sendable) || sendable.includes(0)) return undefined
  return { encoding: isAsciiOctets(sendable) ? '7bit' : '8bit', content: sendable }
}

function multipart(subtype: string, entities: readonly Entity[], boundary: string): Entity {
  const body = entities.flatMap((entity, index) => [`${index === 0 ? '' : '\r\n'}--${boundary}\r\n${entity.fields}\r\n`, ...entity.body])
  const needs8bit = entities.some((entity) => entity.needs8bit === true)
  const encoding = needs8bit ? plainField('Content-Transfer-Encoding', '8bit') : ''
  return {
    fields: `Content-Type: multipart/${subtype};\r\n boundary="${boundary}"\r\n${encoding}`,
    body: [...body, `\r\n--${boundary}--`],
    needs8bit,
  }
}
