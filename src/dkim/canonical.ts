/**
 * Canonical forms of headers and bodies (RFC 6376 section 3.4); the relaxed body, which all outgoing mail needs, is made in one pass over
 * the octets.
 */

const carriageReturn = 13
const lineFeed = 10
const space = 32
const tab = 9

export interface HeaderField {
  /** Lower case. */
  name: string
  /** With its folds, as it stands after the colon. */
  value: string
}

/** The start of the body: after the empty line, or the end of the message. */
export function bodyStart(message: Buffer): number {
  if (message[0] === carriageReturn && message[1] === lineFeed) return 2
  const end = message.indexOf('\r\n\r\n')
  return end < 0 ? message.length : end + 4
}

/** The fields of the header block, in order. */
export function headerFields(block: string): HeaderField[] {
  const fields: HeaderField[] = []
  for (const line of block.split(/\r\n(?![ \t])/)) {
    const colon = line.indexOf(':')
    if (colon > 0) fields.push({ name: line.slice(0, colon).trim().toLowerCase(), value: line.slice(colon + 1) })
  }
  return fields
}

/**
 * `name:value` with the value unfolded, runs of white space reduced to one space, ends trimmed; without CRLF. Octet A0 is not white space
 * (RFC 6376 section 2.8).
 */
export const relaxedHeader = ({ name, value }: HeaderField): string =>
  `${name}:${value
    .replace(/\r\n/g, '')
    .replace(/[ \t]+/g, ' ')
    .replace(/^ | $/g, '')}`

/** The relaxed body; the same octets if no change is needed. Valid until the next call. */
export function relaxedBody(message: Buffer, start: number): Buffer {
  const body = message.subarray(start)
  const first = firstToSqueeze(body)
  const out = first === body.length ? body : squeezed(body, first)
  let end = out.length
  while (
    end >= 4 &&
    out[end - 1] === lineFeed &&
    out[end - 2] === carriageReturn &&
    out[end - 3] === lineFeed &&
    out[end - 4] === carriageReturn
  )
    end -= 2
  if (end === 2 && out[0] === carriageReturn && out[1] === lineFeed) end = 0
  if (end === 0) return out.subarray(0, 0)
  const trimmed = out.subarray(0, end)
  return end >= 2 && out[end - 1] === lineFeed && out[end - 2] === carriageReturn ? trimmed : Buffer.concat([trimmed, Buffer.from('\r\n')])
}

/** The unchanged body, ended by one CRLF (RFC 6376 section 3.4.3). */
export function simpleBody(message: Buffer, start: number): Buffer {
  let end = message.length
  while (end >= start + 2 && message[end - 1] === lineFeed && message[end - 2] === carriageReturn) end -= 2
  return Buffer.concat([message.subarray(start, end), Buffer.from('\r\n')])
}

/** The position of the first tab, or of the first space before another space, a tab, a line end or the end; the length if not found. */
function firstToSqueeze(body: Buffer): number {
  for (let index = 0; index < body.length; index++) {
    const octet = body[index] as number
    if (octet > space || (octet !== space && octet !== tab)) continue
    if (octet === tab) return index
    const next = body[index + 1]
    if (next === space || next === tab || next === carriageReturn || next === undefined) return index
  }
  return body.length
}

/** Buffer for bodies up to this size: a buffer for each would be garbage at once. */
const scratch = Buffer.allocUnsafeSlow(131_072)

/** Reduces runs of white space to one space and removes it before line ends, starting at `first`. */
function squeezed(body: Buffer, first: number): Buffer {
  const out = body.length <= scratch.length ? scratch : Buffer.allocUnsafe(body.length)
  body.copy(out, 0, 0, first)
  let at = first
  let blank = false
  for (let index = first; index < body.length; index++) {
    const octet = body[index] as number
    if (octet === space || octet === tab) {
      blank = true
      continue
    }
    if (blank) {
      const lineEnd = octet === carriageReturn && body[index + 1] === lineFeed
      if (!lineEnd) out[at++] = space
      blank = false
    }
    out[at++] = octet
  }
  return out.subarray(0, at)
}
