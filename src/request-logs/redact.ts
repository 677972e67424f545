/**
 * Redacts and truncates bodies for the log: the first 25,600 bytes, without secrets and attachment content. Scans no more of a large body
 * than needed, skips redacted values by searching for the closing quote, and accepts broken JSON.
 */
import { endOfJsonString } from '#base'

export const maxOctets = 25_600
export const cutMark = '... [truncated]'
export const blankedNames: ReadonlySet<string> = new Set([
  'key',
  'secret',
  'password',
  'smtpUsername',
  'content',
  'rawMessage',
  'data',
  // The same values in the APIs of Postal, Postmark, Resend and Mailgun.
  'raw_message',
  'Content',
  'Body',
  'signing_secret',
  'signing_keys',
])
export const blanked = '[redacted]'
/** In place of both bodies of an entry. */
export const notKept = "[not kept: the tenant's retention of content has ended]"
const blankedJson = Buffer.from(JSON.stringify(blanked))

const quote = 0x22
const colon = 0x3a
const openers = new Set([0x5b, 0x7b])
const closers = new Set([0x5d, 0x7d])
const spaces = new Set([0x20, 0x09, 0x0a, 0x0d])
const comma = 0x2c

function skipSpaces(json: Uint8Array, at: number): number {
  while (spaces.has(json[at] as number)) at++
  return at
}

/** The end of the value begun at `start`; the end of the text if it is unterminated. */
function endOfValue(json: Uint8Array, start: number): number {
  let depth = 0
  for (let at = start; at < json.length; at++) {
    const octet = json[at] as number
    if (octet === quote) {
      at = endOfJsonString(json, at)
      if (at === -1) return json.length
      if (depth === 0) return at + 1
    } else if (openers.has(octet)) depth++
    else if (closers.has(octet)) {
      if (depth <= 1) return depth === 0 ? at : at + 1
      depth--
    } else if (depth === 0 && (octet === comma || spaces.has(octet))) return at
  }
  return json.length
}

const maxNameLength = 100

const nameIn = (json: Buffer, start: number, end: number) => unescaped(json.toString('latin1', start + 1, end))

function isBlanked(json: Buffer, start: number, end: number): boolean {
  return end - start <= maxNameLength && blankedNames.has(nameIn(json, start, end))
}

const isNamed = (json: Buffer, start: number, end: number, name: string) => nameIn(json, start, end) === name

/** Decodes JSON escapes as far as they are well-formed. */
export const unescaped = (text: string): string =>
  text.includes('\\')
    ? text.replace(/\\(?:u([0-9a-f]{4})|(["\\/]))/gi, (_, code: string | undefined, plain: string | undefined) =>
        code === undefined ? (plain as string) : String.fromCharCode(Number.parseInt(code, 16)),
      )
    : text

/**
 * Returns the text with the values of `blankedNames` replaced at any depth, or the unchanged text. `cut`: it is longer than `maximum` bytes;
 * then a few more than that are returned.
 */
export function blankValues(json: Buffer, maximum: number): { octets: Buffer; cut: boolean } {
  const pieces: Uint8Array[] = []
  let length = 0
  /** The text before it is already returned or redacted. */
  let from = 0
  let needed = json.subarray(0, maximum + 1)
  for (let at = 0; ; ) {
    while (at < needed.length && needed[at] !== quote) at++
    const end = at < needed.length ? endOfJsonString(needed, at) : -1
    if (end === -1) break
    const start = at
    at = end + 1
    const separator = skipSpaces(needed, at)
    if (needed[separator] !== colon || !isBlanked(json, start, end)) continue
    const value = skipSpaces(needed, separator + 1)
    if (value >= needed.length) break
    // The envelope's `data` is an object; text under that name is attachment content.
    if (json[value] !== quote && isNamed(json, start, end, 'data')) continue
    pieces.push(json.subarray(from, value), blankedJson)
    length += value - from + blankedJson.length
    at = from = endOfValue(json, value)
    if (length > maximum) break
    // Everything that begins after this is not needed.
    needed = json.subarray(0, from + maximum - length + 1)
  }
  const rest = json.subarray(from, Math.max(from, from + maximum - length + 1))
  const cut = length + rest.length > maximum
  // Most bodies contain no value to redact, and are not copied.
  if (pieces.length === 0) return { octets: rest, cut }
  return { octets: Buffer.concat([...pieces, rest]), cut }
}

const anyName = [...blankedNames].join('|')
// A missing comma may leave a digit before a name.
const brokenName = new RegExp(`(?<![A-Za-z_])(?:${anyName})(?=\\s*\\\\*["':={[])`, 'g')
const wholePair = /(["']?\s*[:=]\s*)"(?:[^"\\]|\\[^])*"(?=\s*(?:[,}\]]|$))/y
const escapedLetter = /\\u00(4[1-9a-f]|5[0-9a]|6[1-9a-f]|7[0-9a])/gi

/**
 * In broken text the string boundaries are unknown. The names are searched everywhere, and the text after one is omitted to the end unless
 * it is a complete pair.
 */
function blankBroken(broken: string): string {
  const text = broken.replace(escapedLetter, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)))
  let out = ''
  let from = 0
  for (const { 0: name, index } of text.matchAll(brokenName)) {
    if (index < from) continue
    const end = index + name.length
    wholePair.lastIndex = end
    const pair = wholePair.exec(text)
    out += text.slice(from, end)
    if (!pair) return `${out}":"${blanked}"`
    out += `${pair[1]}"${blanked}"`
    from = wholePair.lastIndex
  }
  return out + text.slice(from)
}

/** A body on its way to the log. A large one is redacted and truncated at once, to free its memory; a small one when it is written. */
export interface HeldBody {
  /** Bytes of the original body. */
  size: number
  octets: Buffer
  cut: boolean
  /** The unredacted beginning, if `octets` was redacted; used if the body is not valid JSON. */
  head?: Buffer
}

/** Up to this size it is cheaper to keep the body unchanged. */
const smallOctets = 65_536

export function holdBody(body: Buffer | string): HeldBody {
  const octets = typeof body === 'string' ? Buffer.from(body) : body
  const size = octets.length
  if (size <= smallOctets) return { size, octets, cut: false }
  const kept = blankValues(octets, maxOctets)
  return { size, octets: Buffer.from(kept.octets), cut: kept.cut, head: Buffer.from(octets.subarray(0, maxOctets)) }
}

/** The stored part of a body, ending in `... [truncated]` if it is incomplete. */
export function keptOf(body: HeldBody, { isBroken }: { isBroken: boolean }): Buffer {
  const { octets, cut } = isBroken ? brokenOf(body) : blankValues(body.octets, maxOctets)
  if (octets.length <= maxOctets && !cut && !body.cut) return octets
  let end = Math.min(octets.length, maxOctets)
  // Not within a UTF-8 character.
  while (end > 0 && ((octets[end] ?? 0) & 0xc0) === 0x80) end--
  return Buffer.concat([octets.subarray(0, end), Buffer.from(cutMark)])
}

function brokenOf({ octets, head = octets, size }: HeldBody): { octets: Buffer; cut: boolean } {
  return { octets: Buffer.from(blankBroken(head.toString('utf8', 0, maxOctets))), cut: size > maxOctets }
}
