/**
 * Generates the text alternative of an html body without one; limited in size, and linear in time for any html.
 */
import { createRequire } from 'node:module'

/** Above this size the converter's tree is too costly, or its recursion too deep; a plain scan then removes the tags. */
const maxCharacters = 300_000
const maxTags = 20_000
const maxDepth = 500
/** Each line repeats all its quotes and indents: 490 of them turned 80 KB into 17 MB. */
const maxIndents = 20
/** The converter copies a word again for each piece of it between tags: 9,000 pieces after a word of 200 KB took 1.6 seconds. */
const maxWordCharacters = 4000

/** Loaded when it is first needed: it takes 19 ms of processor time, and most senders write their texts. */
const loadConverter = () => {
  const { compile } = createRequire(import.meta.url)('html-to-text') as typeof import('html-to-text')
  return compile({
    wordwrap: 76,
    selectors: [
      { selector: 'img', format: 'skip' },
      { selector: 'a', options: { hideLinkHrefIfSameAsText: true, ignoreHref: false } },
    ],
    limits: { maxInputLength: maxCharacters },
  })
}
let convert: ReturnType<typeof loadConverter> | undefined

export function textFromHtml(html: string): string {
  if (html.length > maxCharacters || isDense(html)) return withoutTags(html)
  convert ??= loadConverter()
  try {
    return convert(html)
  } catch {
    return withoutTags(html)
  }
}

/** Void tags, and tags that end where the next of their kind begins: without an end tag they add no depth. */
const flat = /^<\/?(?:area|base|br|col|embed|hr|img|input|link|meta|source|track|wbr|p|li|tr|td|th|dt|dd|option)(?=[\s/>])/i
const indenting = /^<\/?(?:blockquote|ul|ol)(?=[\s>])/i
const maxNameLength = 12

/** More tags, or deeper nesting, than a person writes. */
function isDense(html: string): boolean {
  let tags = 0
  let depth = 0
  let indents = 0
  let word = 0
  let before = 0
  for (let at = html.indexOf('<'); at >= 0; at = html.indexOf('<', at + 1)) {
    const tag = html.slice(at, at + maxNameLength)
    word = wordLength(html.slice(before, at), word)
    if (word > maxWordCharacters) return true
    if (breaking.test(tag)) word = 0
    before = at
    const step = tag[1] === '/' ? -1 : isLetter(tag[1] ?? '') ? 1 : 0
    if (!flat.test(tag)) depth = Math.max(0, depth + step)
    if (indenting.test(tag)) indents = Math.max(0, indents + step)
    if (++tags > maxTags || depth > maxDepth || indents > maxIndents) return true
  }
  return false
}

/**
 * The length of the word at the end of `piece`, a tag with the text after it, or the text before the first tag. `before`: the length so far.
 * A space ends the word only where it is certainly text: not in a comment, in a style, or behind a > that may belong to an attribute.
 */
function wordLength(piece: string, before: number): number {
  const tagEnd = piece.startsWith('<') ? piece.indexOf('>') : -1
  if (tagEnd < 0 && piece.startsWith('<')) return before
  const text = piece.slice(tagEnd + 1)
  const space = Math.max(text.lastIndexOf(' '), text.lastIndexOf('\n'), text.lastIndexOf('\t'))
  const isText = !piece.startsWith('<!') && !unread.test(piece.slice(0, maxNameLength)) && hasWholeQuotes(piece.slice(0, tagEnd + 1))
  return space >= 0 && isText ? text.length - space - 1 : before + text.length
}

const hasWholeQuotes = (tag: string) => ['"', "'"].every((quote) => tag.split(quote).length % 2 === 1)

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
    const tag = html.slice(open, open + maxNameLength)
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

/** The position after the tag, the comment, or the element whose content is not displayed; -1 if it never ends. */
function tagEnd(html: string, open: number, tag: string): number {
  const mark = tag.startsWith('<!--') ? '-->' : '>'
  const name = unread.exec(tag)?.[1]
  const close = name === undefined ? open : indexOfClose(html, name, open)
  const end = close < 0 ? -1 : html.indexOf(mark, close)
  return end < 0 ? -1 : end + mark.length
}

/** Case-insensitive; no text is searched twice, because the caller continues after the match. */
function indexOfClose(html: string, name: string, from: number): number {
  const close = new RegExp(`</${name}`, 'gi')
  close.lastIndex = from
  return close.exec(html)?.index ?? -1
}
