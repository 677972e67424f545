/** A message read back: headers, text, html, attachments. Bounded in depth and parts; never throws. */
import { decodeCharset, headerMap, parseFields, type RawField, splitMessage, structured } from './fields.ts'

export interface ReadMessage {
  headers: Record<string, string>
  html: string | undefined
  text: string | undefined
  attachments: { filename: string; contentType: string; content: Buffer }[]
}

const mostDepth = 20
const mostParts = 200

export function readMessage(octets: Buffer): ReadMessage {
  const { head } = splitMessage(octets)
  const message: ReadMessage = { headers: headerMap(parseFields(head) ?? []), html: undefined, text: undefined, attachments: [] }
  readEntity(octets, message, 0, { left: mostParts })
  return message
}

const fieldOf = (fields: readonly RawField[], name: string) => fields.find((field) => field.name.toLowerCase() === name)?.value ?? ''

function readEntity(octets: Buffer, message: ReadMessage, depth: number, budget: { left: number }): void {
  if (budget.left-- <= 0) return
  const { head, bodyStart } = splitMessage(octets)
  const fields = parseFields(head) ?? []
  const type = structured(fieldOf(fields, 'content-type'))
  const disposition = structured(fieldOf(fields, 'content-disposition'))
  const body = octets.subarray(bodyStart)
  const boundary = type.parameters.get('boundary')
  if (type.value.startsWith('multipart/') && boundary && depth < mostDepth) {
    for (const part of partsOf(body, boundary)) readEntity(part, message, depth + 1, budget)
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

/** The parts between boundary lines (RFC 2046 section 5.1.1). */
export function partsOf(body: Buffer, boundary: string): Buffer[] {
  const mark = Buffer.from(`--${boundary}`, 'latin1')
  const parts: Buffer[] = []
  let start = -1
  for (let at = body.indexOf(mark); at >= 0 && parts.length <= mostParts; at = body.indexOf(mark, at + mark.length)) {
    if (at > 0 && body[at - 1] !== 10) continue
    const after = at + mark.length
    const closes = body[after] === 45 && body[after + 1] === 45
    if (start >= 0) parts.push(body.subarray(start, Math.max(start, body[at - 2] === 13 ? at - 2 : at - 1)))
    const lineEnd = body.indexOf(10, after)
    start = closes || lineEnd < 0 ? -1 : lineEnd + 1
    if (closes) break
  }
  if (start >= 0) parts.push(body.subarray(start))
  return parts
}

export function decodeBody(body: Buffer, encoding: string): Buffer {
  if (encoding === 'base64') return Buffer.from(body.toString('latin1'), 'base64')
  if (encoding !== 'quoted-printable') return body
  const out = Buffer.allocUnsafe(body.length)
  let at = 0
  for (let index = 0; index < body.length; index++) {
    const octet = body[index] as number
    if (octet !== 61) {
      out[at++] = octet
      continue
    }
    if (body[index + 1] === 13 && body[index + 2] === 10) index += 2
    else if (body[index + 1] === 10) index += 1
    else {
      const value = Number.parseInt(body.toString('latin1', index + 1, index + 3), 16)
      if (/^[0-9A-Fa-f]{2}$/.test(body.toString('latin1', index + 1, index + 3))) {
        out[at++] = value
        index += 2
      } else out[at++] = octet
    }
  }
  return out.subarray(0, at)
}
