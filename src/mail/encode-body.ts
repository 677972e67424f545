/**
 * Encodes bodies with a transfer encoding that every server accepts: 7bit where the text allows it, otherwise quoted-printable or base64
 * (RFC 2045).
 */

const lineFeed = 10
const carriageReturn = 13
const equals = 61
const space = 32
const tab = 9
const dot = 46
const maxPlainLineLength = 900
const quotedLine = 76
const base64Line = 76

export interface EncodedBody {
  encoding: '7bit' | 'quoted-printable' | 'base64'
  /** A string contains only ASCII. */
  content: string | Buffer
}

const hexDigits = Buffer.from('0123456789ABCDEF')
/** 1 for octets that quoted-printable may leave literal (RFC 2045 section 6.7 rules 1 and 2). */
const literal = new Uint8Array(256)
for (let octet = 33; octet <= 126; octet++) literal[octet] = 1
literal[equals] = 0

/** Encodes text; converts its line ends to CRLF. */
export function encodeText(text: string): EncodedBody {
  if (Buffer.byteLength(text) === text.length && !controlCharacters.test(text) && !hasLongLine(text)) {
    return { encoding: '7bit', content: withCrlf(text) }
  }
  const source = Buffer.from(text)
  let high = 0
  for (const octet of source) if (octet > 126) high++
  // Quoted-printable triples each such octet; base64 adds a third to all octets.
  if (high * 6 > source.length) {
    return { encoding: 'base64', content: encodeBase64(Buffer.from(withCrlf(text))) }
  }
  return { encoding: 'quoted-printable', content: encodeQuotedPrintable(source) }
}

/** Characters not allowed in 7bit; tab, CR and LF are allowed. */
const controlCharacters = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f]/

function hasLongLine(text: string): boolean {
  let from = 0
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', from)) {
    if (at - from > maxPlainLineLength) return true
    from = at + 1
  }
  return text.length - from > maxPlainLineLength
}

const withCrlf = (text: string) => text.replace(/\r\n|\r|\n/g, '\r\n')

/** Lines of 76 characters, the last one without CRLF. */
export function encodeBase64(octets: Buffer): Buffer {
  const text = octets.toString('base64')
  const lines = Math.ceil(text.length / base64Line)
  const out = Buffer.allocUnsafe(text.length + Math.max(0, lines - 1) * 2)
  let at = 0
  for (let start = 0; start < text.length; start += base64Line) {
    if (start > 0) {
      out[at++] = carriageReturn
      out[at++] = lineFeed
    }
    at += out.write(text.slice(start, start + base64Line), at, 'latin1')
  }
  return out
}

/** RFC 2045 section 6.7; CR, LF and CRLF in the source are line ends. */
export function encodeQuotedPrintable(source: Buffer): Buffer {
  let special = 1
  for (const octet of source) if (literal[octet] === 0) special++
  // Two more octets for each octet that must be encoded, and for a dot after a line end; five for every soft line break and its dot.
  const maxLength = source.length + special * 3
  const out = Buffer.allocUnsafe(maxLength + Math.ceil(maxLength / 73) * 5)
  let at = 0
  let column = 0
  const length = source.length
  for (let index = 0; index < length; index++) {
    const octet = source[index] as number
    if (octet === carriageReturn || octet === lineFeed) {
      if (octet === carriageReturn && source[index + 1] === lineFeed) index++
      out[at++] = carriageReturn
      out[at++] = lineFeed
      column = 0
      continue
    }
    const next = source[index + 1]
    const atEnd = next === undefined || next === lineFeed || next === carriageReturn
    // White space at a line's end would be lost on the way; a dot at a line's start is encoded so that no server has to handle it.
    const asItIs = literal[octet] === 1 ? !(octet === dot && column === 0) : (octet === space || octet === tab) && !atEnd
    const width = asItIs ? 1 : 3
    if (column + width > (atEnd ? quotedLine : quotedLine - 1)) {
      out[at++] = equals
      out[at++] = carriageReturn
      out[at++] = lineFeed
      column = 0
      index--
      continue
    }
    if (asItIs) out[at++] = octet
    else {
      out[at++] = equals
      out[at++] = hexDigits[octet >> 4] as number
      out[at++] = hexDigits[octet & 15] as number
    }
    column += width
  }
  return out.subarray(0, at)
}

/** Doubles dots at the start of lines (RFC 5321 section 4.5.2) and ends with CRLF; returns the same buffer if no change is needed. */
export function dotStuff(octets: Buffer): Buffer {
  const ends = octets.length >= 2 && octets[octets.length - 2] === carriageReturn && octets[octets.length - 1] === lineFeed
  const cuts: number[] = []
  if (octets[0] === dot) cuts.push(0)
  for (let found = octets.indexOf('\n.'); found >= 0; found = octets.indexOf('\n.', found + 1)) cuts.push(found + 1)
  if (cuts.length === 0 && ends) return octets
  const out = Buffer.allocUnsafe(octets.length + cuts.length + (ends ? 0 : 2))
  let at = 0
  let from = 0
  for (const cut of cuts) {
    at += octets.copy(out, at, from, cut)
    out[at++] = dot
    from = cut
  }
  at += octets.copy(out, at, from)
  if (!ends) out.write('\r\n', at, 'latin1')
  return out
}
