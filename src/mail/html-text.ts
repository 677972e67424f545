/** The text alternative of an html body that came without one; bounded and linear, whatever the html. */
import { compile } from 'html-to-text'

/** Above these the converter's tree costs too much, or its recursion too deep; the tags are then taken out by a plain scan. */
const mostCharacters = 300_000
const mostTags = 20_000
const mostDepth = 500
/** Each line repeats all its quotes and indents: 490 of them made 17 MB of 80 KB. */
const mostIndents = 20

const convert = compile({
  wordwrap: 76,
  selectors: [
    { selector: 'img', format: 'skip' },
    { selector: 'a', options: { hideLinkHrefIfSameAsText: true, ignoreHref: false } },
  ],
  limits: { maxInputLength: mostCharacters },
})

export function textFromHtml(html: string): string {
  if (html.length > mostCharacters || isDense(html)) return withoutTags(html)
  try {
    return convert(html)
  } catch {
    return withoutTags(html)
  }
}

/** Tags that hold nothing, or end where the next of their kind begins: unclosed ones are not depth. */
const flat = /^<\/?(?:area|base|br|col|embed|hr|img|input|link|meta|source|track|wbr|p|li|tr|td|th|dt|dd|option)(?=[\s/>])/i
const indenting = /^<\/?(?:blockquote|ul|ol)(?=[\s>])/i
const longestName = 12

/** More tags, or more of them inside each other, than a person writes. */
function isDense(html: string): boolean {
  let tags = 0
  let depth = 0
  let indents = 0
  for (let at = html.indexOf('<'); at >= 0; at = html.indexOf('<', at + 1)) {
    const tag = html.slice(at, at + longestName)
    const step = tag[1] === '/' ? -1 : isLetter(tag[1] ?? '') ? 1 : 0
    if (!flat.test(tag)) depth = Math.max(0, depth + step)
    if (indenting.test(tag)) indents = Math.max(0, indents + step)
    if (++tags > mostTags || depth > mostDepth || indents > mostIndents) return true
  }
  return false
}

const isLetter = (character: string) => /[A-Za-z]/.test(character)

const unread = /^<(style|script|head|title)(?=[\s/>])/i
const breaking = /^<\/?(?:p|div|br|tr|li|ul|ol|table|h[1-6])(?=[\s/>])/i
const entities: Readonly<Record<string, string>> = {
  '&nbsp;': ' ',
  '&lt;': '<',
  '&gt;': '>',
  '&quot;': '"',
  '&#39;': "'",
  '&apos;': "'",
  '&amp;': '&',
}

function withoutTags(html: string): string {
  const pieces: string[] = []
  let at = 0
  while (at < html.length) {
    const open = html.indexOf('<', at)
    pieces.push(html.slice(at, open < 0 ? html.length : open))
    if (open < 0) break
    const tag = html.slice(open, open + longestName)
    if (!/^<[A-Za-z/!?]/.test(tag)) {
      pieces.push('<')
      at = open + 1
      continue
    }
    if (breaking.test(tag)) pieces.push('\n')
    const end = tagEnd(html, open, tag)
    if (end < 0) break
    at = end
  }
  return pieces
    .join('')
    .replace(/&(?:nbsp|lt|gt|quot|#39|apos|amp);/g, (entity) => entities[entity] ?? entity)
    .replace(/[ \t]+/g, ' ')
    .replace(/\n\s*\n+/g, '\n\n')
    .trim()
}

/** Behind the tag, the comment, or the element whose content is for no reader; -1 when it never ends. */
function tagEnd(html: string, open: number, tag: string): number {
  const mark = tag.startsWith('<!--') ? '-->' : '>'
  const name = unread.exec(tag)?.[1]
  const close = name === undefined ? open : indexOfClose(html, name, open)
  const end = close < 0 ? -1 : html.indexOf(mark, close)
  return end < 0 ? -1 : end + mark.length
}

/** Without case; no other text is searched twice, because the caller goes on behind what is found. */
function indexOfClose(html: string, name: string, from: number): number {
  const close = new RegExp(`</${name}`, 'gi')
  close.lastIndex = from
  return close.exec(html)?.index ?? -1
}
