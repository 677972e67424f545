/** The text alternative of an html body that came without one; bounded and linear, whatever the html. */
import { compile } from 'html-to-text'

/** Above these the converter's tree costs too much; the tags are then taken out by a plain scan. */
const mostCharacters = 300_000
const mostTags = 20_000
const mostDepth = 200

const convert = compile({
  wordwrap: 76,
  selectors: [
    { selector: 'img', format: 'skip' },
    { selector: 'a', options: { hideLinkHrefIfSameAsText: true, ignoreHref: false } },
  ],
  limits: { maxInputLength: mostCharacters, maxDepth: mostDepth },
})

export function textFromHtml(html: string): string {
  if (html.length > mostCharacters || isDense(html)) return withoutTags(html)
  try {
    return convert(html)
  } catch {
    return withoutTags(html)
  }
}

/** More tags than a person writes. */
function isDense(html: string): boolean {
  let tags = 0
  for (let at = html.indexOf('<'); at >= 0; at = html.indexOf('<', at + 1)) if (++tags > mostTags) return true
  return false
}

const skipped = ['style', 'script', 'head']
const entities: Readonly<Record<string, string>> = { '&nbsp;': ' ', '&lt;': '<', '&gt;': '>', '&quot;': '"', '&#39;': "'", '&amp;': '&' }

function withoutTags(html: string): string {
  const lower = html.toLowerCase()
  let text = ''
  let at = 0
  while (at < html.length) {
    const open = html.indexOf('<', at)
    if (open < 0) {
      text += html.slice(at)
      break
    }
    text += html.slice(at, open)
    const name = skipped.find((one) => lower.startsWith(one, open + 1))
    const end = name === undefined ? html.indexOf('>', open) : lower.indexOf(`</${name}`, open)
    if (end < 0) break
    if (/^<\/?(p|div|br|tr|li|h[1-6])\b/.test(lower.slice(open, open + 8))) text += '\n'
    at = name === undefined ? end + 1 : Math.max(end + 1, html.indexOf('>', end) + 1)
  }
  return text
    .replace(/&(?:nbsp|lt|gt|quot|#39|amp);/g, (entity) => entities[entity] ?? entity)
    .replace(/[ \t]+/g, ' ')
    .replace(/\n\s*\n+/g, '\n\n')
    .trim()
}
