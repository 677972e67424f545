/** Facts about the HTML of a message that checks judge. One pass over the tags, linear, limited to the first megabyte. */

export interface HtmlFacts {
  images: number
  imagesWithoutAlt: number
  /** Names of elements that mail programs remove, each once. */
  removedElements: string[]
  hasColorScheme: boolean
  /** Fixed background or text colours in style attributes or `bgcolor`. */
  hasFixedColours: boolean
  /** Visible text without tags. */
  text: string
}

const maxOctets = 1_048_576
const maxTagLength = 10_000
const removed = new Set(['script', 'form', 'iframe', 'object', 'embed', 'video', 'audio', 'input', 'button'])
const unread = /^(?:script|style|title|template)$/

export function scanHtmlFacts(given: string): HtmlFacts {
  const html = given.slice(0, maxOctets)
  // Only ASCII: other letters may change their length, and positions are those of `html`.
  const lower = html.replace(/[A-Z]+/g, (letters) => letters.toLowerCase())
  const facts: HtmlFacts = { images: 0, imagesWithoutAlt: 0, removedElements: [], hasColorScheme: false, hasFixedColours: false, text: '' }
  facts.hasColorScheme = lower.includes('color-scheme')
  const pieces: string[] = []
  let at = 0
  let close = -1
  for (let open = html.indexOf('<'); open >= 0; open = html.indexOf('<', at)) {
    pieces.push(html.slice(at, open))
    if (html.startsWith('<!--', open)) {
      const end = html.indexOf('-->', open + 4)
      at = end < 0 ? html.length : end + 3
      continue
    }
    // Searched once for all tags before it.
    if (close < open) close = lower.indexOf('>', open)
    if (close < 0) {
      at = open
      break
    }
    const [, name = ''] = /^<\/?([a-z][a-z0-9]{0,20})/.exec(lower.slice(open, open + 30)) ?? []
    if (name === '' || close - open > maxTagLength) {
      at = open + 1
      continue
    }
    const tag = lower.slice(open, close)
    noteTag(facts, name, tag)
    at = close + 1
    if (unread.test(name) && tag[1] !== '/') {
      const closed = lower.indexOf(`</${name}`, at)
      at = closed < 0 ? html.length : closed
    }
    pieces.push(' ')
  }
  pieces.push(html.slice(at))
  facts.text = pieces.join('').replace(/\s+/g, ' ').trim()
  return facts
}

function noteTag(facts: HtmlFacts, name: string, tag: string): void {
  if (tag[1] === '/') return
  if (name === 'img') {
    facts.images++
    if (!/[\s"']alt(?=[\s=]|$)/.test(tag)) facts.imagesWithoutAlt++
  }
  if (removed.has(name) && !facts.removedElements.includes(name)) facts.removedElements.push(name)
  if (/\sbgcolor\s?=|[\s"';](?:background(?:-color)?|color)\s?:\s?(?!inherit|transparent)/.test(tag)) facts.hasFixedColours = true
}
