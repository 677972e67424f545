/**
 * The header fields that say who a message is from, read by the grammar of RFC 5322 section 3.4 (with RFC 6532, and with dots in names
 * as section 4.1 has them). Accepted is only what other readers take for the same address: readers differ over groups, routes, white space
 * and comments within an address, encoded words, and addresses hidden in names, so a field with one of these is none. Linear in its length.
 */
import { domainToUnicode } from 'node:url'
import { type Address, type Mailbox, parseAddress } from './address.ts'
import { fieldText } from './fields.ts'

/** Names of a thousand characters fit in it, encoded. */
const longestField = 10_000
const deepestComment = 8

interface Token {
  kind: 'atom' | 'quoted' | 'special'
  /** As it stands in the field. */
  source: string
  /** Without quotes and backslashes. */
  text: string
  /** What stands before it. */
  afterSpace: boolean
  afterComment: boolean
}

interface Comment {
  text: string
  /** Some readers end a comment at its first `)`. */
  isFlat: boolean
}

interface Scanned {
  tokens: Token[]
  comments: Comment[]
  /** A line ends within quotes or a comment. */
  isFoldedInside: boolean
}

/** Control characters, line separators, halves of characters, and what stands for octets that were no UTF-8. */
const unprintable = /[\0-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029\ufffd\p{Cs}]/u
const atomAt = /[A-Za-z0-9!#$%&'*+/=?^_`{|}~\u00a0-\u{10ffff}-]+/uy
const quotedAt = /"((?:[^"\\]|\\.)*)"/uy
/** Others are cut by those who look for brackets, commas or the first @. */
const quotedLocal = /^"[\w!#$%&'*+/=?^`{|}~.-]+(?: [\w!#$%&'*+/=?^`{|}~.-]+)*"$/
const commentPieceAt = /[^()\\]+|\\./uy
const encodedWord = /=\?[A-Za-z0-9_.*-]{1,60}\?(?:[Bb]\?[A-Za-z0-9+/]*={0,2}|[Qq]\?(?:[!#-'*+\-./0-9A-Z^_`a-z{|}~]|=[0-9A-Fa-f]{2})*)\?=/g

/** The only mailbox of a field such as From, given as octets in Latin-1 with its folds; undefined when it is not one to every reader. */
export function parseMailboxField(value: string): Mailbox | undefined {
  const scanned = scanField(value)
  // To readers that end quotes where a line ends, the next quotes are turned inside out.
  if (!scanned || (scanned.isFoldedInside && value.indexOf('@') !== value.lastIndexOf('@'))) return undefined
  return mailboxIn(scanned, parseStrictly)
}

/** Whether a field such as Reply-To has mailboxes only, if any, and every reader finds the same. */
export function isMailboxListField(value: string): boolean {
  const scanned = scanField(value)
  if (!scanned) return false
  if (scanned.tokens.length === 0) return true
  // One look at each comment for all mailboxes.
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
  if (value.length > longestField) return undefined
  const folded = Buffer.from(value, 'latin1').toString()
  const text = folded.replace(/\r\n(?=[ \t])/g, '')
  // What begins like an encoded word and is none, readers end where they like.
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

/** Some readers end quotes and comments where a line ends, and read on behind it. */
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

/** White space of other scripts, at which some readers cut. */
const wideSpace = /[\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]/

/** A domain in letters that are another's in disguise, such as full-width ones, is not the domain that it would be looked up as. */
const parseStrictly: ParseSpec = (local, domain) => {
  if (wideSpace.test(local)) return undefined
  const address = parseAddress(`${local}@${domain}`)
  const isItself = address && (/^[!-~]*$/.test(domain) || domainToUnicode(address.domain) === domain.toLowerCase())
  return isItself ? address : undefined
}

/** Answers may go to a host without a dot in its name. */
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

/** `local@domain` without white space; a comment may touch the `@` where readers take it out. */
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

/** The name in front of angle brackets, decoded; undefined when it is none, or leads some reader to another address. */
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
 * Whether a reader that looks for addresses in a name would find another one: between angle brackets in any name, and without them where
 * quotes do not keep it apart (`isQuoted`), as in encoded words that some decode before they look.
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
