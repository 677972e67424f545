/**
 * Parses the header block of a received message: splits, unfolds and decodes fields (RFC 5322 section 2.2, RFC 2047, RFC 2231).
 */
import { decodeCharset } from './charsets.ts'

export interface RawField {
  /** As written in the message. */
  name: string
  /** With its folds, without the last line end. */
  value: string
}

const maxHeaderOctets = 262_144
const maxFields = 1000

/**
 * The header, and where the body begins. Line ends may be CRLF or LF. A header above the length limit is cut there, and the message then
 * has no body.
 */
export function splitMessage(octets: Buffer): { head: string; bodyStart: number } {
  let at = 0
  while (at <= Math.min(maxHeaderOctets, octets.length - 1)) {
    const end = octets.indexOf(10, at)
    const lineEnd = end < 0 ? octets.length : end
    const empty = lineEnd === at || (lineEnd === at + 1 && octets[at] === 13)
    if (empty && end >= 0) return { head: octets.toString('latin1', 0, at), bodyStart: end + 1 }
    if (end < 0) break
    at = end + 1
  }
  return { head: octets.toString('latin1', 0, maxHeaderOctets + 1), bodyStart: octets.length }
}

/** Undefined if a line is not a field, or there are too many fields. */
export function parseFields(head: string): RawField[] | undefined {
  if (head.length > maxHeaderOctets) return undefined
  const fields: RawField[] = []
  for (const line of head.split(/\r\n|\n|\r/)) {
    if (line === '') continue
    const last = fields.at(-1)
    if (/^[ \t]/.test(line)) {
      if (!last) return undefined
      last.value += `\r\n${line}`
      continue
    }
    const colon = line.indexOf(':')
    const name = line.slice(0, colon).trimEnd()
    if (colon < 1 || !/^[!-9;-~]+$/.test(name) || fields.length >= maxFields) return undefined
    fields.push({ name, value: line.slice(colon + 1) })
  }
  return fields
}

/** Unfolded and decoded text of a field; octets over 127 are read as UTF-8. */
export function fieldText(value: string): string {
  const unfolded = Buffer.from(value.replace(/\r\n/g, ''), 'latin1').toString().trim()
  if (!unfolded.includes('=?')) return unfolded
  return unfolded
    .replace(/(=\?[^?\s]{1,60}\?[BbQq]\?[^?\s]*\?=)\s+(?==\?[^?\s]{1,60}\?[BbQq]\?)/g, '$1')
    .replace(/(?:=\?[^?\s]{1,60}\?[BbQq]\?[^?\s]*\?=)+/g, decodeRun)
}

/** Adjacent words of one charset are decoded together: some programs split a character between them. */
function decodeRun(run: string): string {
  let text = ''
  /** One character for each octet: a buffer for each of many short words would cost more than they do. */
  let pending: { charset: string; octets: string } | undefined
  const flush = () => {
    if (pending) text += decodeCharset(Buffer.from(pending.octets, 'latin1'), pending.charset)
    pending = undefined
  }
  for (const [, charset = '', encoding = '', body = ''] of run.matchAll(/=\?([^?\s]+)\?([BbQq])\?([^?\s]*)\?=/g)) {
    const octets =
      encoding.toUpperCase() === 'B'
        ? Buffer.from(body, 'base64').toString('latin1')
        : body.replace(/_/g, ' ').replace(/=([0-9A-Fa-f]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
    if (pending && pending.charset !== charset.toLowerCase()) flush()
    pending ??= { charset: charset.toLowerCase(), octets: '' }
    pending.octets += octets
  }
  flush()
  return text
}

/** Decoded texts by field name, spelled as at its first occurrence; repeated fields are joined with `, `. */
export function headerMap(fields: readonly RawField[]): Record<string, string> {
  const byName = new Map<string, { name: string; texts: string[] }>()
  for (const { name, value } of fields) {
    const key = name.toLowerCase()
    const known = byName.get(key)
    if (known) known.texts.push(fieldText(value))
    else byName.set(key, { name, texts: [fieldText(value)] })
  }
  return Object.fromEntries([...byName.values()].map(({ name, texts }) => [name, texts.join(', ')]))
}

/** The value of a structured field without parameters, and its parameters by lower-case name (RFC 2231 continuations joined). */
export function structured(value: string): { value: string; parameters: Map<string, string> } {
  const unfolded = value.replace(/\r\n/g, '').slice(0, 20_000)
  const semicolon = unfolded.indexOf(';')
  const parameters = new Map<string, string>()
  const pieces = new Map<string, { index: number; text: string; encoded: boolean }[]>()
  if (semicolon >= 0) {
    for (const match of unfolded.slice(semicolon).matchAll(/;\s*([^=\s;*]+)(?:\*(\d{1,3}))?(\*)?=(?:"((?:[^"\\]|\\.)*)"|([^;\s]*))/g)) {
      const [, name = '', index, star, quoted, plain = ''] = match
      const text = quoted === undefined ? plain : quoted.replace(/\\(.)/g, '$1')
      const list = pieces.get(name.toLowerCase()) ?? []
      list.push({ index: Number(index ?? 0), text, encoded: star === '*' })
      pieces.set(name.toLowerCase(), list)
    }
  }
  for (const [name, list] of pieces) parameters.set(name, joinPieces(list))
  return { value: (semicolon < 0 ? unfolded : unfolded.slice(0, semicolon)).trim().toLowerCase(), parameters }
}

function joinPieces(list: { index: number; text: string; encoded: boolean }[]): string {
  const encoded = list.filter((one) => one.encoded)
  if (encoded.length === 0)
    return fieldText(
      list
        .sort((a, b) => a.index - b.index)
        .map((one) => one.text)
        .join(''),
    )
  const ordered = encoded.sort((a, b) => a.index - b.index)
  const charset = /^([^']*)'[^']*'/.exec(ordered[0]?.text ?? '')
  const octets = ordered
    .map((one, at) =>
      (at === 0 && charset ? one.text.slice(charset[0].length) : one.text).replace(/%([0-9A-Fa-f]{2})/g, (_, hex: string) =>
        String.fromCharCode(Number.parseInt(hex, 16)),
      ),
    )
    .join('')
  return decodeCharset(Buffer.from(octets, 'latin1'), charset?.[1] ?? 'utf-8')
}
