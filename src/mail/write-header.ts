/**
 * Writes header fields as octets: folded, with encoded words where the text is not ASCII (RFC 5322 section 2.2, RFC 2047). No line exceeds
 * 998 octets, and no value can insert CR, LF or NUL.
 */
import type { Mailbox } from './address.ts'

const preferredLine = 78
const maxEncodedWordLength = 75

const printable = /^[\x20-\x7e\t]*$/
const asciiText = /^[\u0000-\u007f]*$/

/** Callers have validated the value; remaining control characters become spaces. */
export const oneLine = (value: string): string => value.replace(/[\u0000-\u0008\u000a-\u001f\u007f]+/g, ' ')

/** A field of free text, such as Subject. Ends with CRLF. */
export function textField(name: string, value: string): string {
  const line = oneLine(value)
  // The URLs of a list's fields (RFC 2369) may contain `=?`; programs do not decode them.
  const looksEncoded = line.includes('=?') && !/^list-/i.test(name)
  const plain = printable.test(line) && line.trim() === line && !looksEncoded && !/[^ ]{900}/.test(line)
  // Further spaces stay with the word after them: a line of only white space would be an invalid fold (RFC 5322 section 3.2.2).
  return foldTokens(`${name}:`, plain ? line.split(/(?<! ) /) : encodedWords(line))
}

/** A field of addresses. */
export function addressField(name: string, entries: readonly string[]): string {
  return foldTokens(
    `${name}:`,
    entries.map((entry, index) => (index < entries.length - 1 ? `${entry},` : entry)),
  )
}

/** Display name and address in header form. */
export function mailboxText({ name, address }: Mailbox): string {
  if (name === undefined) return address.text
  const line = oneLine(name)
  if (printable.test(line) && !line.includes('=?') && line.length < 300) {
    const phrase = /^[A-Za-z0-9!#$%&'*+/=?^_`{|}~ -]+$/.test(line) ? line : `"${line.replace(/["\\]/g, '\\$&')}"`
    return `${phrase} <${address.text}>`
  }
  return `${encodedWords(line).join('\r\n ')} <${address.text}>`
}

/** A field with unencoded text, such as Message-ID. */
export const plainField = (name: string, value: string): string => `${name}: ${value}\r\n`

/** Appends tokens to the name, each after a space, and folds lines that would become too long. */
function foldTokens(name: string, tokens: readonly string[]): string {
  const pieces = [name]
  let column = name.length
  for (const token of tokens) {
    const lines = token.split('\r\n')
    const length = Buffer.byteLength(lines[0] as string)
    if (pieces.length > 1 && column + 1 + length > preferredLine) {
      pieces.push('\r\n')
      column = 0
    }
    pieces.push(' ', token)
    column = lines.length === 1 ? column + 1 + length : Buffer.byteLength(lines.at(-1) as string)
  }
  pieces.push('\r\n')
  return pieces.join('')
}

/** Words of at most 75 characters that split no character; B if that is shorter, otherwise Q. */
function encodedWords(text: string): string[] {
  if (text === '') return ['']
  const octets = Buffer.byteLength(text)
  const special = octets - (text.match(/[A-Za-z0-9!*+\-/ ]/g)?.length ?? 0)
  const useQ = special * 3 + (octets - special) <= Math.ceil(octets / 3) * 4
  const room = maxEncodedWordLength - '=?UTF-8?Q??='.length
  const words: string[] = []
  let chunk = ''
  let size = 0
  const close = () => {
    words.push(useQ ? `=?UTF-8?Q?${chunk}?=` : `=?UTF-8?B?${Buffer.from(chunk).toString('base64')}?=`)
    chunk = ''
    size = 0
  }
  for (const character of text) {
    const encoded = useQ ? qEncoded(character) : character
    const length = useQ ? encoded.length : Buffer.byteLength(character)
    if (size > 0 && (useQ ? size + length > room : Math.ceil((size + length) / 3) * 4 > room)) close()
    chunk += encoded
    size += length
  }
  close()
  return words
}

function qEncoded(character: string): string {
  if (/[A-Za-z0-9!*+\-/]/.test(character)) return character
  if (character === ' ') return '_'
  return Buffer.from(character).toString('hex').toUpperCase().replace(/../g, '=$&')
}

/** `; name="value"`, or with RFC 2231 encoding and continuations; each piece on its own line. */
export function parameter(name: string, value: string): string {
  const line = oneLine(value)
  // Many mail programs decode apparent encoded words here, although RFC 2047 section 5 forbids it.
  if (printable.test(line) && line.length <= 60 && !line.includes('=?')) return `;\r\n ${name}="${line.replace(/["\\]/g, '\\$&')}"`
  const pieces: string[] = []
  let piece = ''
  for (const character of line) {
    const encoded = /[A-Za-z0-9._-]/.test(character)
      ? character
      : Buffer.from(character).toString('hex').toUpperCase().replace(/../g, '%$&')
    if (piece.length + encoded.length > 50) {
      pieces.push(piece)
      piece = ''
    }
    piece += encoded
  }
  pieces.push(piece)
  if (pieces.length === 1) return `;\r\n ${name}*=UTF-8''${pieces[0]}`
  return pieces.map((part, index) => `;\r\n ${name}*${index}*=${index === 0 ? "UTF-8''" : ''}${part}`).join('')
}

/** RFC 5322 section 3.3, always in UTC. */
export function dateText(atMs: number): string {
  return new Date(atMs).toUTCString().replace(/GMT$/, '+0000')
}

export const isAscii = (text: string): boolean => asciiText.test(text)
