/**
 * Reads the header fields that identify the sender, by the grammar of RFC 5322 section 3.4 (with RFC 6532, and with dots in names as in
 * section 4.1). It accepts a field only if other mail programs find the same address in it. Programs differ over groups, routes, white
 * space and comments within an address, encoded words, and addresses hidden in names, so a field with one of these is refused. Linear in
 * its length.
 */
import { domainToUnicode } from 'node:url'
import { type Address, type Mailbox, parseAddress } from './address.ts'
import { fieldText } from './parse-fields.ts'

/** Enough for encoded names of a thousand characters. */
const maxFieldLength = 10_000
const deepestComment = 8

interface Token {
  kind: 'atom' | 'quoted' | 'special'
  /** The token as written in the field. */
  source: string
  /** Without quotes and backslashes. */
  text: string
  /** White space stands before it. */
  afterSpace: boolean
  afterComment: boolean
}

interface Comment {
  text: string
  /** False for nested comments: some mail programs end a comment at its first `)`. */
  isFlat: boolean
}

interface Scanned {
  tokens: Token[]
  comments: Comment[]
  /** A line ends within quotes or a comment. */
  isFoldedInside: boolean
}

/** Control characters, line separators, unpaired surrogates, and the replacement character of invalid UTF-8. */
const unprintable = /[\0-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029\ufffd\p{Cs}]/u
const atomAt = /[A-Za-z0-9!#$%&'*+/=?^_`{|}~\u00a0-\u{10ffff}-]+/uy
const quotedAt = /"((?:[^"\\]|\\.)*)"/uy
/** Parsers that search for brackets, commas or the first @ split other forms wrongly. */
const quotedLocal = /^"[\w!#$%&'*+/=?^`{|}~.-]+(?: [\w!#$%&'*+/=?^`{|}~.-]+)*"$/
const commentPieceAt = /[^()\\]+|\\./uy
const encodedWord = /=\?[A-Za-z0-9_.*-]{1,60}\?(?:[Bb]\?[A-Za-z0-9+/]*={0,2}|[Qq]\?(?:[!#-'*+\-./0-9A-Z^_`a-z{|}~]|=[0-9A-Fa-f]{2})*)\?=/g

/**
 * The only mailbox of a field such as From, given as Latin-1 octets with its folds; undefined if some mail program would read it
 * differently.
 */
export function parseMailboxField(value: string): Mailbox | undefined {
  const scanned = scanField(value)
  // For mail programs that end quotes at a line end, the quotes after it are inverted.
  if (!scanned || (scanned.isFoldedInside && value.indexOf('@') !== value.lastIndexOf('@'))) return undefined
  return mailboxIn(scanned, parseStrictly)
}

/** Whether a field such as Reply-To contains only mailboxes, if any, and every mail program finds the same ones. */
export function isMailboxListField(value: string): boolean {
  const scanned = scanField(value)
  if (!scanned) return false
  if (scanned.tokens.length === 0) return true
  // Each comment is checked once for all mailboxes.
  if (!scanned.comments.every(({ text, isFlat }) => isFlat && !/[@<>]/.test(`${text}${decoded(text)}`) && !unprintable.test(decoded(text))))
    return false
  const lists: Token[][] = [[]]
  for (const token of scanned.tokens) {
    if (token.kind === 'special' && token.text === ',') lists.push([])
    else lists.at(-1)?.push(token)
  }
  return lists.every((tokens) => mailboxIn({ tokens, comments: [], isFoldedInside: false }, parseLoosely) !== undefined)
}

function scanField(value: string): Scanned | undefined {
  if (value.length > maxFieldLength) return undefined
  const folded = Buffer.from(value, 'latin1').toString()
  const text = folded.replace(/\r\n(?=[ \t])/g, '')
  // Mail programs disagree about the end of a malformed encoded word.
  if (unprintable.test(text) || text.replace(encodedWord, '').includes('=?') || /=\?(?:unicode-1-1-)?utf-?7[?*]/i.test(text))
    return undefined
  return scan(folded)
}

function scan(text: string): Scanned | undefined {
  const tokens: Token[] = []
  const comments: Comment[] = []
  let afterSpace = false
  let afterComment = false
  let isFoldedInside = false
  for (let at = 0; at < text.length; ) {
    const character = text[at] as string
    if (' \t\r\n'.includes(character)) {
      afterSpace = true
      at++
      continue
    }
    if (character === '(') {
      const found = commentAt(text, at)
      if (!found) return undefined
      comments.push(found.comment)
      afterComment = true
      isFoldedInside ||= text.slice(at, found.end).includes('\r')
      at = found.end
      continue
    }
    const token = tokenAt(text, at)
    if (!token) return undefined
    tokens.push({ ...token, afterSpace, afterComment })
    afterSpace = false
    afterComment = false
    isFoldedInside ||= token.source.includes('\r')
    at += token.source.length
  }
  return { tokens, comments, isFoldedInside }
}

function tokenAt(text: string, at: number): Pick<Token, 'kind' | 'source' | 'text'> | undefined {
  const character = text[at] as string
  if ('<>@,;:.'.includes(character)) return { kind: 'special', source: character, text: character }
  const form = character === '"' ? quotedAt : atomAt
  form.lastIndex = at
  const [source, content] = form.exec(text) ?? []
  if (source === undefined) return undefined
  if (content === undefined) return { kind: 'atom', source, text: source }
  return isCut(content) ? undefined : { kind: 'quoted', source, text: content.replace(/\\(.)|\r\n/gu, '$1') }
}

/** Some mail programs end quotes and comments at a line end, and continue parsing after it. */
const isCut = (text: string) => text.includes('\r') && /[\\"<>@()[\]:;]/.test(text)

function commentAt(text: string, start: number): { comment: Comment; end: number } | undefined {
  let depth = 0
  let isFlat = true
  let content = ''
  for (let at = start; at < text.length; ) {
    const character = text[at] as string
    if (character === '(') {
      depth++
      if (depth > deepestComment) return undefined
      isFlat &&= depth === 1
      at++
    } else if (character === ')') {
      depth--
      at++
      if (depth === 0) return isCut(content) ? undefined : { comment: { text: content.replaceAll('\r\n', ''), isFlat }, end: at }
    } else {
      commentPieceAt.lastIndex = at
      const [piece] = commentPieceAt.exec(text) ?? []
      if (piece === undefined) return undefined
      isFlat &&= !piece.startsWith('\\')
      content += piece.startsWith('\\') ? piece.slice(1) : piece
      at += piece.length
    }
  }
  return undefined
}

type ParseSpec = (local: string, domain: string) => Address | undefined

/** White space of other scripts, at which some mail programs split. */
const wideSpace = /[\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]/

/** A domain in look-alike characters, such as full-width letters, differs from the domain that would be looked up. */
const parseStrictly: ParseSpec = (local, domain) => {
  if (wideSpace.test(local)) return undefined
  const address = parseAddress(`${local}@${domain}`)
  const isItself = address && (/^[!-~]*$/.test(domain) || domainToUnicode(address.domain) === domain.toLowerCase())
  return isItself ? address : undefined
}

/** Replies may go to a host without a dot in its name. */
const parseLoosely: ParseSpec = (local, domain) =>
  parseStrictly(local, domain) ?? (/^[A-Za-z0-9_-]+$/.test(domain) ? parseStrictly(local, `${domain}.invalid`) : undefined)

function mailboxIn({ tokens, comments }: Scanned, parse: ParseSpec): Mailbox | undefined {
  const open = tokens.findIndex(({ source }) => source === '<')
  if (open < 0) {
    const address = addressIn(tokens, 'bare', parse)
    if (!address || !comments.every(({ isFlat }) => isFlat) || !areFair(comments, address)) return undefined
    return { name: nameOf(comments.map(({ text }) => decoded(text)).join(' ')), address }
  }
  const close = tokens.at(-1) as Token
  const inner = tokens.slice(open + 1, -1)
  const [first] = inner
  if (close.source !== '>' || close.afterComment || first?.afterComment) return undefined
  const address = addressIn(inner, 'in angle brackets', parse)
  if (!address || !areFair(comments, address)) return undefined
  const phrase = tokens.slice(0, open)
  // Many programs write the address itself as the name, without quotes.
  if (phrase.some(({ source }) => source === '@'))
    return addressIn(phrase, 'in angle brackets', parse)?.text.toLowerCase() === address.text.toLowerCase()
      ? { name: undefined, address }
      : undefined
  const name = phraseOf(phrase, address)
  return name === undefined ? undefined : { name: nameOf(name), address }
}

const nameOf = (text: string) => text.trim() || undefined

/** `local@domain` without white space; a comment may touch the `@` where mail programs remove it. */
function addressIn(tokens: readonly Token[], where: 'bare' | 'in angle brackets', parse: ParseSpec): Address | undefined {
  const at = tokens.findIndex(({ source }) => source === '@')
  const isApart = ({ afterSpace, afterComment }: Token, index: number) =>
    index > 0 && (afterSpace || (afterComment && (where !== 'bare' || (index !== at && index !== at + 1))))
  if (at < 1 || tokens.some(isApart)) return undefined
  const local = tokens.slice(0, at)
  const domain = tokens.slice(at + 1)
  const isQuoted = local.length === 1 && local[0]?.kind === 'quoted'
  if (isQuoted ? !quotedLocal.test(local[0]?.source ?? '') : !local.every(isAtomOrDot)) return undefined
  if (!domain.every(isAtomOrDot)) return undefined
  const [localText, domainText] = [local, domain].map((some) => some.map(({ source }) => source).join('')) as [string, string]
  return `${localText}${domainText}`.includes('=?') ? undefined : parse(localText, domainText)
}

const isAtomOrDot = ({ kind, source }: Token) => kind === 'atom' || source === '.'

/** The decoded name in front of angle brackets; undefined if it is invalid, or leads some mail program to another address. */
function phraseOf(tokens: readonly Token[], address: Address): string | undefined {
  if (tokens[0]?.source === '.' || !tokens.every((token) => isAtomOrDot(token) || token.kind === 'quoted')) return undefined
  const spaced = tokens.map((token, index) => `${index > 0 && token.afterSpace ? ' ' : ''}${token.text}`).join('')
  const name = decoded(spaced)
  for (const token of tokens) {
    const isPlain = !token.source.includes('\\') && !token.text.includes('=?')
    if (token.kind === 'quoted' && isMisleading(decoded(token.text), address, isPlain)) return undefined
  }
  return name !== spaced && isMisleading(name, address, false) ? undefined : name
}

function areFair(comments: readonly Comment[], address: Address): boolean {
  return comments.every(
    ({ text, isFlat }) => !/[<>]/.test(text) && !isMisleading(decoded(text), address, false) && (isFlat || !/[@",;:]/.test(text)),
  )
}

const decoded = (text: string) => (text.includes('=?') ? fieldText(Buffer.from(text).toString('latin1')) : text)

/**
 * Whether a mail program that searches a name for addresses would find another one. It may find one between angle brackets in any name.
 * Without brackets it may find one where quotes do not protect it (`isQuoted`), as in encoded words that some programs decode first.
 */
export function isMisleading(name: string, address: Address, isQuoted: boolean): boolean {
  if (unprintable.test(name) || (/[<>]/.test(name) && name.includes('@'))) return true
  return !isQuoted && namesAnother(name, address)
}

const domainAfter = /^\s*([\p{L}\p{N}\p{M}_-]{1,63}(?:\s?[.\u3002\uff0e]\s?[\p{L}\p{N}\p{M}_-]{1,63})+)/u

function namesAnother(name: string, { text, domain }: Address): boolean {
  if (name.trim().toLowerCase() === text.toLowerCase()) return false
  const local = name.search(/\S/)
  for (let at = name.indexOf('@'); at >= 0; at = name.indexOf('@', at + 1)) {
    const [, found] = domainAfter.exec(name.slice(at + 1, at + 255)) ?? []
    if (at > local && found !== undefined && found.replace(/\s/g, '').toLowerCase() !== domain) return true
  }
  return false
}
