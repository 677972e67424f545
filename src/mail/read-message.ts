/**
 * Parses a message: headers, text, html, attachments. Depth and number of parts are limited; never throws, for any octets.
 */
import { decodeCharset } from './charsets.ts'
import { headerMap, parseFields, type RawField, splitMessage, structured } from './parse-fields.ts'

export interface ReadMessage {
  /** Decoded; repeated fields are joined with `, `. */
  headers: Record<string, string>
  html: string | undefined
  text: string | undefined
  attachments: { filename: string; contentType: string; content: Buffer }[]
}

const maxDepth = 20
const maxParts = 200

export function readMessage(octets: Buffer): ReadMessage {
  const message: ReadMessage = { headers: readHeaders(octets), html: undefined, text: undefined, attachments: [] }
  readEntity(octets, message, 0, { left: maxParts })
  return message
}

/** `headers` of `readMessage`. */
export const readHeaders = (octets: Buffer): ReadMessage['headers'] => headerMap(parseFields(splitMessage(octets).head) ?? [])

const fieldOf = (fields: readonly RawField[], name: string) => fields.find((field) => field.name.toLowerCase() === name)?.value ?? ''

function readEntity(octets: Buffer, message: ReadMessage, depth: number, budget: { left: number }): void {
  if (budget.left-- <= 0) return
  const { head, bodyStart } = splitMessage(octets)
  const fields = parseFields(head) ?? []
  const type = structured(fieldOf(fields, 'content-type'))
  const disposition = structured(fieldOf(fields, 'content-disposition'))
  const body = octets.subarray(bodyStart)
  const boundary = type.parameters.get('boundary')
  if (type.value.startsWith('multipart/') && boundary && depth < maxDepth) {
    for (const part of partsOf(body, boundary, budget.left)) readEntity(part, message, depth + 1, budget)
    return
  }
  const content = decodeBody(body, structured(fieldOf(fields, 'content-transfer-encoding')).value)
  const filename = disposition.parameters.get('filename') ?? type.parameters.get('name')
  const media = type.value || 'text/plain'
  const attached = disposition.value === 'attachment' || filename !== undefined || !/^text\/(plain|html)$/.test(media)
  const text = () => decodeCharset(content, type.parameters.get('charset') ?? 'utf-8')
  if (!attached && media === 'text/html' && message.html === undefined) message.html = text()
  else if (!attached && media === 'text/plain' && message.text === undefined) message.text = text()
  else message.attachments.push({ filename: filename ?? 'attachment', contentType: media, content })
}

/**
 * The first `maximum` parts between boundary lines (RFC 2046 section 5.1.1); the last one may lack its closing line. After `maxMarks`
 * apparent boundaries, the rest is one part.
 */
export function partsOf(body: Buffer, boundary: string, maximum: number, maxMarks = Number.POSITIVE_INFINITY): Buffer[] {
  const mark = Buffer.from(`--${boundary}`, 'latin1')
  const parts: Buffer[] = []
  let start = -1
  let looks = maxMarks
  for (let at = body.indexOf(mark); at >= 0 && parts.length < maximum && looks-- > 0; at = body.indexOf(mark, at + mark.length)) {
    const after = at + mark.length
    const closes = body[after] === 45 && body[after + 1] === 45
    if ((at > 0 && body[at - 1] !== 10) || !(closes || isBlankUntilLineEnd(body, after))) continue
    if (start >= 0) parts.push(body.subarray(start, Math.max(start, body[at - 2] === 13 ? at - 2 : at - 1)))
    const lineEnd = body.indexOf(10, after)
    start = closes || lineEnd < 0 ? -1 : lineEnd + 1
    if (closes) break
  }
  if (start >= 0 && parts.length < maximum) parts.push(body.subarray(start))
  return parts
}

/** `--outer1` is not a boundary line of `outer`: only white space may follow. */
function isBlankUntilLineEnd(body: Buffer, from: number): boolean {
  let at = from
  while (body[at] === 32 || body[at] === 9 || body[at] === 13) at++
  return at >= body.length || body[at] === 10
}

/** Decodes a transfer encoding (RFC 2045 section 6); an unknown one leaves the body unchanged. */
export function decodeBody(body: Buffer, encoding: string): Buffer {
  if (encoding === 'base64') return Buffer.from(body.toString('latin1'), 'base64')
  return encoding === 'quoted-printable' ? decodeQuotedPrintable(body) : body
}

/** The values of hexadecimal digits in either case; -1 for other octets. */
const hexValues = new Int8Array(256).fill(-1)
for (const digit of '0123456789abcdefABCDEF') hexValues[digit.charCodeAt(0)] = Number.parseInt(digit, 16)
const hexValue = (octet: number | undefined) => (octet === undefined ? -1 : (hexValues[octet] as number))

/** RFC 2045 section 6.7: white space before a line end was added in transit; an invalid `=` sequence stays unchanged. */
function decodeQuotedPrintable(body: Buffer): Buffer {
  const out = Buffer.allocUnsafe(body.length)
  let at = 0
  let kept = 0
  for (let index = 0; index < body.length; index++) {
    const octet = body[index] as number
    if (octet === 61) {
      const high = hexValue(body[index + 1])
      const low = hexValue(body[index + 2])
      const softEnd = high < 0 ? softBreakEnd(body, index + 1) : -1
      if (high >= 0 && low >= 0) {
        out[at++] = high * 16 + low
        index += 2
      } else if (softEnd >= 0) index = softEnd
      else out[at++] = octet
      kept = at
      continue
    }
    const isLineEnd = octet === 10 || (octet === 13 && body[index + 1] === 10)
    if (isLineEnd) at = kept
    out[at++] = octet
    if (octet !== 32 && octet !== 9) kept = at
  }
  return out.subarray(0, at)
}

/** The position of the line feed that ends a soft line break begun before `from`; -1 if not found. */
function softBreakEnd(body: Buffer, from: number): number {
  let at = from
  while (body[at] === 32 || body[at] === 9) at++
  if (body[at] === 13) at++
  return body[at] === 10 ? at : -1
}
