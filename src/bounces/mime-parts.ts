/**
 * Parses the parts of a machine-generated message, however damaged: a tree, limited in depth, parts and octets, in linear time. Unlike the
 * reader in the mail module it enters attached messages, and finds a boundary in the body if the header has lost it.
 */
import { decodeBody, decodeCharset, fieldText, partsOf, splitMessage, structured } from '#mail'
import { openWork, type Work } from './work-budget.ts'

export interface Part {
  media: string
  parameters: Map<string, string>
  /** In order; lower-case names, decoded and unfolded values. */
  fields: readonly (readonly [name: string, value: string])[]
  /** With its transfer encoding. */
  body: Buffer
  encoding: string
  /** The parts of a multipart, or the message in a message/rfc822. Parsed on first use, once. */
  readonly children: readonly Part[]
  /** The work budget left for the whole message. */
  work: Work
  /** The text, once decoded. */
  memo: { text?: string }
}

const maxDepth = 20
const maxParts = 200
/** Limit of apparent boundaries, of which a part has two. */
const maxMarks = 20_000
const maxHeadOctets = 262_144
const maxFields = 500
const maxFieldText = 8_192
const maxGuessOctets = 32_768
const maxTextOctets = 400_000
const maxTextCharacters = 100_000

/** `work`: the budget of the message that contains these octets; a new one by default. */
export const readParts = (octets: Buffer, work = openWork()): Part =>
  readPart(withoutJunk(octets), 0, { parts: { left: maxParts }, work }, 'text/plain')

/** Removes empty lines and the `From ` line of a mailbox file before saved messages; some files have CR alone as line ends. */
function withoutJunk(octets: Buffer): Buffer {
  const whole = octets.indexOf(10) < 0 && octets.indexOf(13) >= 0 ? withLineFeeds(octets) : octets
  let at = whole[0] === 0xef && whole[1] === 0xbb && whole[2] === 0xbf ? 3 : 0
  while (whole[at] === 10 || whole[at] === 13 || whole[at] === 32) at++
  if (/^>?From /.test(whole.toString('latin1', at, at + 6))) at = Math.max(whole.indexOf(10, at), at - 1) + 1
  return whole.subarray(at)
}

function withLineFeeds(octets: Buffer): Buffer {
  const copy = Buffer.from(octets)
  for (let at = 0; at < copy.length; at++) if (copy[at] === 13) copy[at] = 10
  return copy
}

/** Limits shared by all parts of a message. */
interface Bounds {
  parts: { left: number }
  work: Work
}

function readPart(octets: Buffer, depth: number, bounds: Bounds, otherwise: string): Part {
  bounds.parts.left--
  const { head, bodyStart } = splitMessage(octets.subarray(0, maxHeadOctets))
  bounds.work.read(head.length)
  const fields = readPartFields(head)
  const type = structured(fieldOf({ fields }, 'content-type') ?? '')
  const encoding = (fieldOf({ fields }, 'content-transfer-encoding') ?? '').trim().toLowerCase()
  const own = { media: type.value || otherwise, parameters: type.parameters, fields, body: octets.subarray(bodyStart), encoding }
  let children: Part[] | undefined
  return {
    ...own,
    work: bounds.work,
    memo: {},
    get children() {
      children ??= depth < maxDepth ? childrenOf(own, depth, bounds) : []
      return children
    },
  }
}

type Leaf = Omit<Part, 'children' | 'work' | 'memo'>

const holdsMessage = /^message\/(?:rfc822|global|partial|news)$/

function childrenOf(part: Leaf, depth: number, bounds: Bounds): Part[] {
  const { parts, work } = bounds
  if (parts.left <= 0) return []
  if (holdsMessage.test(part.media)) {
    work.scan(part.body.length)
    const octets = decoded(part)
    return octets.length === 0 ? [] : [readPart(withoutJunk(octets), depth + 1, bounds, 'text/plain')]
  }
  const otherwise = part.media === 'multipart/digest' ? 'message/rfc822' : 'text/plain'
  const children: Part[] = []
  for (const octets of entitiesOf(part, bounds)) {
    if (parts.left <= 0) break
    children.push(readPart(octets, depth + 1, bounds, otherwise))
  }
  return children
}

function entitiesOf({ media, parameters, body }: Leaf, { parts: { left: most }, work }: Bounds): Buffer[] {
  const boundary = parameters.get('boundary')
  if (media.startsWith('multipart/')) work.scan(body.length)
  const inner = media.startsWith('multipart/') && boundary ? partsOf(body, boundary, most, maxMarks) : []
  if (inner.length > 0) return inner
  // Processed line by line, so it costs more than a search.
  work.scan(4 * Math.min(body.length, maxGuessOctets))
  const guessed = guessedBoundary(body, media.startsWith('multipart/'))
  return guessed === undefined ? [] : partsOf(body, guessed, most, maxMarks)
}

/**
 * A line of two hyphens and a word, followed by a Content- field: the first boundary of a multipart whose header is missing. qmail's `---
 * Below this line is a copy` does not match, and a boundary declared by a field in the body belongs to the copied message.
 */
function guessedBoundary(body: Buffer, isMultipart: boolean): string | undefined {
  const start = body.toString('latin1', 0, maxGuessOctets)
  const lastMessage = isMultipart ? -1 : lastTypeOfMessage(start)
  const copied = isMultipart ? new Map<string, number>() : declaredIn(start)
  for (const match of start.matchAll(/^--(?=[^\s\w]{0,199}\w)(\S{1,200})[ \t]*\r?\n(?=Content-[A-Za-z-]{1,40}:|\r?\n)/gm)) {
    if ((copied.get(match[1] as string) ?? match.index) < match.index) continue
    if (isMultipart || match.index <= lastMessage) return match[1]
  }
  return undefined
}

/** Boundaries, and the position of each first declaration. */
function declaredIn(text: string): Map<string, number> {
  const declared = new Map<string, number>()
  for (const match of text.matchAll(/boundary="?([^"\r\n;]{1,200})/gi)) {
    const boundary = (match[1] as string).trimEnd()
    if (!declared.has(boundary)) declared.set(boundary, match.index)
  }
  return declared
}

/** Position of the last declaration of an attached message; -1 if not found. */
const lastTypeOfMessage = (text: string) => [...text.matchAll(/Content-Type:[ \t]*message\//gi)].at(-1)?.index ?? -1

/** A line that is not a field continues the previous field, because some gateways break lines without folding them. */
export function readPartFields(head: string): [string, string][] {
  const raw: [string, string][] = []
  for (const line of head.slice(0, maxHeadOctets).split(/\r\n|\n|\r/)) {
    const match = /^([!-9;-~]{1,100})[ \t]*:(.*)$/s.exec(line)
    const last = raw.at(-1)
    if (match && !/^[ \t]/.test(line)) {
      if (raw.length >= maxFields) break
      raw.push([(match[1] as string).toLowerCase(), match[2] as string])
    } else if (last && last[1].length < maxFieldText) last[1] += ` ${line.trim()}`
  }
  return raw.map(([name, value]) => [name, fieldText(value.slice(0, maxFieldText))])
}

export const fieldOf = ({ fields }: Pick<Part, 'fields'>, name: string): string | undefined =>
  fields.find(([one]) => one === name)?.[1] || undefined

const decoded = ({ body, encoding }: Pick<Part, 'body' | 'encoding'>) => decodeBody(body, encoding)

/** The text of a part, with html converted to lines; the first 100,000 characters. Decoded once, however often it is used. */
export function textOf(part: Part): string {
  if (part.memo.text !== undefined) return part.memo.text
  const octets = decodeBody(part.body.subarray(0, maxTextOctets), part.encoding)
  const text = decodeCharset(octets, charsetOf(part, octets)).slice(0, maxTextCharacters).replace(/\r\n?/g, '\n').replaceAll('\0', '')
  part.work.read(text.length)
  const isHtml = part.media === 'text/html' || (part.media === 'text/plain' && /^\s{0,20}<(?:!doctype|html|body)\b/i.test(text))
  const read = isHtml ? textFromTags(text) : text
  part.memo.text = read
  return read
}

/** Many programs omit the charset and write UTF-8 or Latin-1, or declare US-ASCII and write another. */
function charsetOf({ parameters }: Part, octets: Buffer): string {
  const charset = (parameters.get('charset') ?? '').trim().toLowerCase()
  if (charset === '' || charset === 'us-ascii' || charset === 'ascii' || charset === 'utf-8') {
    if (octets.includes('\u001b$B', 0, 'latin1')) return 'iso-2022-jp'
    return octets.toString('utf8').includes('\ufffd') ? 'windows-1252' : 'utf-8'
  }
  return charset
}

const maxTagLength = 2_000
const breaking = /^<\/?(?:p|div|br|tr|li|ul|ol|table|h[1-6]|hr|pre|blockquote|td|dt|dd)(?=[\s/>])/i
const unread = /^<(style|script|title)(?=[\s/>])/i
const entities: Readonly<Record<string, string>> = { nbsp: ' ', lt: '<', gt: '>', quot: '"', apos: "'", amp: '&', auml: 'ä', ouml: 'ö' }
Object.assign(entities, { uuml: 'ü', szlig: 'ß', eacute: 'é', egrave: 'è', agrave: 'à', ccedil: 'ç', ocirc: 'ô', ecirc: 'ê' })
Object.assign(entities, { ntilde: 'ñ', oacute: 'ó', aacute: 'á', iacute: 'í', uacute: 'ú', atilde: 'ã', otilde: 'õ', rsquo: "'" })

/** Converts html in one scan: reports need lines and words, not layout. */
function textFromTags(html: string): string {
  const lower = html.toLowerCase()
  let text = ''
  let at = 0
  while (at < html.length) {
    const open = html.indexOf('<', at)
    if (open < 0) return withEntities(text + html.slice(at))
    text += html.slice(at, open)
    const tag = html.slice(open, open + 20)
    const closing = unread.exec(tag)
    const length = html.slice(open, open + maxTagLength).indexOf('>')
    const end = length < 0 ? -1 : open + length
    // Careless programs write `<ann@example.org>` unescaped; it is not a tag.
    const isAddress = end > open && end - open < 300 && html.slice(open, end).includes('@') && !/[\s=]/.test(html.slice(open, end))
    if (end < 0 || isAddress || !/^<[A-Za-z/!?]/.test(tag)) {
      text += '<'
      at = open + 1
      continue
    }
    if (breaking.test(tag)) text += '\n'
    at = end + 1
    if (closing) {
      const closed = lower.indexOf(`</${(closing[1] as string).toLowerCase()}`, at)
      at = closed < 0 ? html.length : closed
    }
  }
  return withEntities(text)
}

const withEntities = (text: string) =>
  text.replace(/&(?:#(\d{1,7})|#x([0-9a-f]{1,6})|([a-z]{2,8}));/gi, (whole, decimal?: string, hex?: string, name?: string) => {
    if (name !== undefined) return entities[name.toLowerCase()] ?? whole
    const point = decimal === undefined ? Number.parseInt(hex ?? '', 16) : Number(decimal)
    return point > 0 && point < 0x110000 ? String.fromCodePoint(point) : ' '
  })

/** The part and all below it, parents first; `into` decides about attached messages. */
export function* below(part: Part, into: 'attached messages' | 'this message'): Generator<Part> {
  yield part
  if (into === 'this message' && holdsMessage.test(part.media)) return
  for (const child of part.children) yield* below(child, into)
}
