/**
 * Finds addresses in the forms that reports use: in brackets or quotes, with a type before or words after. Linear: each is found from its
 * @.
 */
import { parseAddress } from '#mail'

const maxLocalLength = 64
const maxDomainLength = 253
const isLocal = /[^\s<>()[\],;:"'`|\\@\u3000-\u303f\uff00-\uffef]/u
const isDomain = /[\p{L}\p{N}.-]/u

export interface FoundAddress {
  address: string
  start: number
  end: number
}

/** Most texts around an @ that are examined for addresses; the others are taken for body text. */
const maxTries = 2000

/** The first `most` addresses in a text, in order. `tries`: how many more texts around an @ may be examined, for several calls together. */
export function addressesIn(text: string, most = 200, tries = { left: maxTries }): FoundAddress[] {
  const found: FoundAddress[] = []
  for (let at = text.indexOf('@'); at >= 0 && found.length < most && tries.left > 0; at = text.indexOf('@', at + 1)) {
    tries.left--
    const start = localStart(text, at)
    let end = at + 1
    while (end < text.length && end - at <= maxDomainLength && isDomain.test(text[end] as string)) end++
    while (end > at && /[.-]/.test(text[end - 1] as string)) end--
    const address = parseAddress(text.slice(start, end).replace(/^mailto:/i, ''))
    if (address) found.push({ address: address.text, start, end })
  }
  return found
}

function localStart(text: string, at: number): number {
  if (text[at - 1] === '"') {
    const quote = text.slice(Math.max(0, at - 1 - maxLocalLength), at - 1).lastIndexOf('"')
    if (quote >= 0) return Math.max(0, at - 1 - maxLocalLength) + quote
  }
  let start = at
  while (start > 0 && at - start < maxLocalLength && isLocal.test(text[start - 1] as string)) start--
  // `*ann@`, `=ann@`, `.ann@`: list and punctuation marks.
  while (start < at && /[.*=\u2022\u00b7>-]/.test(text[start] as string)) start++
  return start
}

/** `rfc822;<ann@example.org>`, `utf-8;…`, `LOCAL; ann+40example.org`: RFC 3464 section 2.3.1, RFC 6533 section 3. */
export function typedAddress(value: string | undefined): string | null {
  if (value === undefined) return null
  const semicolon = value.indexOf(';')
  const type = semicolon < 0 ? '' : value.slice(0, semicolon).trim().toLowerCase()
  const text = (semicolon < 0 ? value : value.slice(semicolon + 1)).trim()
  const first = type === 'utf-8' ? undefined : addressesIn(text, 1)[0]?.address
  if (first !== undefined) return first
  const unescaped =
    type === 'utf-8'
      ? text.replace(/\\x\{([0-9a-f]{2,6})\}/gi, (whole, hex: string) => fromPoint(Number.parseInt(hex, 16), whole))
      : text.replace(/\+([0-9A-F]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16))).replace(/\\40/g, '@')
  return addressesIn(unescaped, 1)[0]?.address ?? null
}

const fromPoint = (point: number, otherwise: string) => (point < 0x110000 ? String.fromCodePoint(point) : otherwise)
