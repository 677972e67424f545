/**
 * Finds the links and the end of the body in html, as a browser's tokeniser does (WHATWG html section 13.2.5), without a tree. One pass:
 * an unterminated construct ends the scan, so hostile html costs no more than its length.
 */

/** Half-open, in characters. */
export interface TextRange {
  start: number
  end: number
}

export interface Scanned {
  /** The href values of `a` and `area`, without quotes, in order; not those of elements that carry `data-no-track`. */
  links: TextRange[]
  /**
   * The position for an addition at the end of the displayed content: before the last `</body>`, otherwise after the last complete
   * construct.
   */
  tail: number
}

const tab = 9
const lineFeed = 10
const formFeed = 12
const carriageReturn = 13
const space = 32
const exclamation = 33
const quote = 34
const apostrophe = 39
const slash = 47
const equals = 61
const greater = 62
const question = 63

/** Elements whose content is text until their own end tag, with or without decoded references. */
const textEnds = new Map(
  ['style', 'title', 'textarea', 'xmp', 'iframe', 'noembed', 'noframes'].map((name) => [
    name,
    new RegExp(`</${name}(?=[\\t\\n\\f\\r />])`, 'gi'),
  ]),
)
const maxNeededNameLength = 12

export function scanHtml(html: string): Scanned {
  const links: TextRange[] = []
  let bodyEnd: number | undefined
  /** Open templates, and the start of the outermost: their content is not displayed. */
  let templates = 0
  let templateAt = 0
  const finished = (complete: number): Scanned => ({ links, tail: bodyEnd ?? (templates > 0 ? templateAt : complete) })

  let at = 0
  for (let open = html.indexOf('<'); open >= 0; open = html.indexOf('<', at)) {
    const next = html.charCodeAt(open + 1)
    if (next === exclamation || next === question) {
      at = afterComment(html, open)
      if (at < 0) return finished(open)
      continue
    }
    const ends = next === slash
    if (!isLetter(ends ? html.charCodeAt(open + 2) : next)) {
      // `</` before any character except a letter is a comment too; any other `<` is text.
      at = ends && open + 2 < html.length ? behind(html, '>', open + 2) : open + 1
      if (at < 0) return finished(open)
      continue
    }
    const tag = readTag(html, ends ? open + 2 : open + 1)
    if (!tag) return finished(open)
    at = tag.end
    if (ends) {
      if (tag.name === 'template') templates = Math.max(0, templates - 1)
      if (tag.name === 'body' && templates === 0) bodyEnd = open
      continue
    }
    if (tag.name === 'plaintext') return finished(open)
    if (tag.name === 'template' && templates++ === 0) templateAt = open
    if (tag.link && templates === 0) links.push(tag.link)
    const text = textEnds.get(tag.name)
    if (text) at = nextOf(text, html, at)?.start ?? -1
    else if (tag.name === 'script') at = scriptEnd(html, at)
    if (at < 0) return finished(open)
  }
  return finished(html.length)
}

interface Tag {
  name: string
  /** After its `>`. */
  end: number
  link: TextRange | undefined
}

/** The tag whose name begins at `from`; undefined if it never ends, and so is not a tag. */
function readTag(html: string, from: number): Tag | undefined {
  const { length } = html
  let at = from
  while (at < length && !endsName(html.charCodeAt(at))) at++
  const name = html.slice(from, Math.min(at, from + maxNeededNameLength)).toLowerCase()
  const isLink = name === 'a' || name === 'area'
  let hasHref = false
  let untracked = false
  let link: TextRange | undefined
  for (;;) {
    while (isSpace(html.charCodeAt(at)) || html.charCodeAt(at) === slash) at++
    if (at >= length) return undefined
    if (html.charCodeAt(at) === greater) return { name, end: at + 1, link: untracked ? undefined : link }
    const nameStart = at++ // even a `=` begins a name here
    while (at < length && html.charCodeAt(at) !== equals && !endsName(html.charCodeAt(at))) at++
    const isHref = isLink && at - nameStart === 4 && html.slice(nameStart, at).toLowerCase() === 'href'
    if (isLink && at - nameStart === 13 && html.slice(nameStart, at).toLowerCase() === 'data-no-track') untracked = true
    while (isSpace(html.charCodeAt(at))) at++
    let value: TextRange | undefined
    if (html.charCodeAt(at) === equals) {
      at++
      while (isSpace(html.charCodeAt(at))) at++
      const mark = html.charCodeAt(at)
      if (mark === quote || mark === apostrophe) {
        const end = html.indexOf(mark === quote ? '"' : "'", at + 1)
        if (end < 0) return undefined
        value = { start: at + 1, end }
        at = end + 1
      } else {
        const start = at
        while (at < length && html.charCodeAt(at) !== greater && !isSpace(html.charCodeAt(at))) at++
        if (at > start) value = { start, end: at }
      }
    }
    // Of attributes with one name, the first counts.
    if (isHref && !hasHref) link = value
    hasHref ||= isHref
  }
}

/** The position after a comment, or after a construct parsed as one (`<!doctype>`, `<![if]>`, `<?xml>`); -1 if it never ends. */
function afterComment(html: string, open: number): number {
  if (!html.startsWith('<!--', open)) return behind(html, '>', open + 2)
  if (html.startsWith('>', open + 4)) return open + 5
  if (html.startsWith('->', open + 4)) return open + 6
  return nextOf(/--!?>/g, html, open + 4)?.end ?? -1
}

/**
 * Start of a script's end tag, or -1. After `<!--` a script may contain `<script>` and its end tag, which do not end it (WHATWG html
 * section 4.12.1.3).
 */
function scriptEnd(html: string, from: number): number {
  const marks = /<!--|-->|<\/?script(?=[\t\n\f\r />])/gi
  let state: 'plain' | 'escaped' | 'escaped twice' = 'plain'
  for (let found = nextOf(marks, html, from); found; found = nextOf(marks, html, found.end)) {
    const { start, end } = found
    const mark = html.slice(start, end).toLowerCase()
    if (mark === '-->') state = 'plain'
    else if (mark === '<!--') {
      if (state === 'plain') state = 'escaped'
      // Its two dashes may also be those of `-->`.
      found = { start, end: start + 2 }
    } else if (mark === '<script') {
      if (state === 'escaped') state = 'escaped twice'
    } else if (state === 'escaped twice') state = 'escaped'
    else return start
  }
  return -1
}

function nextOf(mark: RegExp, html: string, from: number): TextRange | undefined {
  mark.lastIndex = from
  const found = mark.exec(html)
  return found ? { start: found.index, end: mark.lastIndex } : undefined
}

function behind(html: string, mark: string, from: number): number {
  const found = html.indexOf(mark, from)
  return found < 0 ? -1 : found + mark.length
}

const isLetter = (code: number) => (code >= 97 && code <= 122) || (code >= 65 && code <= 90)
const isSpace = (code: number) => code === space || code === lineFeed || code === carriageReturn || code === tab || code === formFeed
const endsName = (code: number) => isSpace(code) || code === slash || code === greater
