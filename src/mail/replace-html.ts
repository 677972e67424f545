/**
 * Changes the displayed html of a finished message in place; octets outside the changed parts stay the same. Signed and encrypted parts
 * are not changed (RFC 1847, RFC 8551, RFC 3156, RFC 6376), nor are attachments and enclosed messages.
 */
import { encodeBase64, encodeQuotedPrintable } from './encode-body.ts'
import { fieldLines, hasLongLine } from './line-endings.ts'
import { parseFields, type RawField, splitMessage, structured } from './parse-fields.ts'
import { decodeBody, partsOf } from './read-message.ts'
import { plainField } from './write-header.ts'

const maxDepth = 20
const maxParts = 200

interface HtmlPart {
  /** Start of the part in the message, and its properties. */
  at: number
  octets: Buffer
  bodyStart: number
  fields: RawField[]
  encoding: string
  charset: string
}

/** `change` returns undefined for html to be left unchanged. Returns the same octets if no part changed; line ends must be CRLF. */
export function changeHtml(message: Buffer, change: (html: Buffer, charset: string) => Buffer | undefined): Buffer {
  const parts: HtmlPart[] = []
  collect(message, message, parts, 0, { left: maxParts })
  const pieces: Buffer[] = []
  let from = 0
  for (const part of parts) {
    const html = decodeBody(part.octets.subarray(part.bodyStart), part.encoding)
    // Clear-signed text inside html (RFC 9580 section 7).
    const changed = html.includes('-----BEGIN PGP') ? undefined : change(html, part.charset)
    if (!changed) continue
    pieces.push(message.subarray(from, part.at), encoded(changed, part))
    from = part.at + part.octets.length
  }
  return from === 0 ? message : Buffer.concat([...pieces, message.subarray(from)])
}

const sealed = /^(?:multipart\/(?:signed|encrypted)$|application\/(?:x-)?pkcs7-)/
const seals = /^(?:dkim-signature|arc-seal|arc-message-signature|domainkey-signature)$/i

function collect(message: Buffer, entity: Buffer, parts: HtmlPart[], depth: number, budget: { left: number }): void {
  if (budget.left-- <= 0) return
  const { head, bodyStart } = splitMessage(entity)
  const fields = parseFields(head)
  if (!fields || (depth === 0 && fields.some(({ name }) => seals.test(name)))) return
  const valueOf = (name: string) => structured(fields.find((field) => field.name.toLowerCase() === name)?.value ?? '')
  const type = valueOf('content-type')
  const boundary = type.parameters.get('boundary')
  if (sealed.test(type.value)) return
  if (type.value.startsWith('multipart/')) {
    if (!boundary || depth >= maxDepth) return
    for (const part of partsOf(entity.subarray(bodyStart), boundary, budget.left)) collect(message, part, parts, depth + 1, budget)
    return
  }
  const disposition = valueOf('content-disposition')
  const isShown = disposition.value !== 'attachment' && !disposition.parameters.has('filename') && !type.parameters.has('name')
  const encoding = valueOf('content-transfer-encoding').value
  if (type.value !== 'text/html' || !isShown || !/^(?:|7bit|8bit|binary|quoted-printable|base64)$/.test(encoding)) return
  parts.push({
    at: entity.byteOffset - message.byteOffset,
    octets: entity,
    bodyStart,
    fields,
    encoding,
    charset: type.parameters.get('charset') ?? '',
  })
}

/** The part with another body; its header changes only if the encoding must. */
function encoded(body: Buffer, { octets, bodyStart, fields, encoding }: HtmlPart): Buffer {
  const to = encodingFor(body, encoding)
  const isSame = to === encoding
  const isField = ({ name }: RawField) => name.toLowerCase() === 'content-transfer-encoding'
  const kept = fields.filter((field) => !isField(field)).map(fieldLines)
  const head = isSame
    ? octets.subarray(0, bodyStart)
    : Buffer.from(`${kept.join('')}${plainField('Content-Transfer-Encoding', to)}\r\n`, 'latin1')
  if (to === 'quoted-printable') return Buffer.concat([head, encodeQuotedPrintable(body)])
  if (to !== 'base64') return Buffer.concat([head, body])
  const isEnded = octets.subarray(-2).equals(crlf)
  return Buffer.concat([head, encodeBase64(body), isEnded ? crlf : Buffer.alloc(0)])
}

const crlf = Buffer.from('\r\n')

/** The same encoding if it can carry the body; only base64 preserves a line end other than CRLF. */
function encodingFor(body: Buffer, encoding: string): string {
  if (encoding === 'base64') return encoding
  if (encoding !== 'quoted-printable' && !hasLongLine(body)) return encoding
  return hasBareLineEnd(body) ? 'base64' : 'quoted-printable'
}

function hasBareLineEnd(body: Buffer): boolean {
  for (let at = 0; at < body.length; at++) {
    if (body[at] === 10) return true
    if (body[at] !== 13) continue
    if (body[at + 1] !== 10) return true
    at++
  }
  return false
}
