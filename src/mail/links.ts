/**
 * Extracts the links that a recipient can follow, in order and each once; linear in the size of the message.
 */

const maxLinks = 500
const maxTagLength = 10_000
const maxLinkLength = 4000

const link = /^<(?:a|area)(?=[\s/])/i
const hrefs = /[\s/"']href\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))/i
const schemes = /^(?:https?|mailto|tel|sms):/i
const inText = /\bhttps?:\/\/[^\s<>"'`{}|\\^]+/gi

/** The `href` values of the html, then the URLs that a mail program makes clickable in the text. */
export function linksOf({ html, text }: { html?: string | undefined; text?: string | undefined }): string[] {
  const found = new Set<string>()
  for (const one of [...linksInHtml(html ?? ''), ...linksInText(text ?? '')]) {
    if (found.size >= maxLinks) break
    if (one.length <= maxLinkLength) found.add(one)
  }
  return [...found]
}

function* linksInHtml(html: string): Generator<string> {
  for (let at = html.indexOf('<'); at >= 0; at = html.indexOf('<', at + 1)) {
    if (html.startsWith('<!--', at)) {
      const end = html.indexOf('-->', at)
      if (end < 0) return
      at = end
      continue
    }
    if (!link.test(html.slice(at, at + 6))) continue
    const end = endOfTag(html, at)
    const [, double, single, bare] = hrefs.exec(html.slice(at, end)) ?? []
    const url = decodeEntities(double ?? single ?? bare ?? '').trim()
    if (schemes.test(url)) yield url
    at = end - 1
  }
}

/** The position after the tag that begins at `from`; quotes may contain `>`. */
function endOfTag(html: string, from: number): number {
  let quote = ''
  const end = Math.min(html.length, from + maxTagLength)
  for (let at = from; at < end; at++) {
    const character = html[at] as string
    if (quote !== '') quote = character === quote ? '' : quote
    else if (character === '"' || character === "'") quote = character
    else if (character === '>') return at + 1
  }
  return end
}

function* linksInText(text: string): Generator<string> {
  for (const [found] of text.matchAll(inText)) {
    // Backwards, because an expression for the end would start again at each punctuation mark.
    let end = Math.min(found.length, maxLinkLength + 1)
    while (end > 0 && '.,;:!?]'.includes(found[end - 1] as string)) end--
    const trimmed = found.slice(0, end)
    yield trimmed.endsWith(')') && !trimmed.includes('(') ? trimmed.slice(0, -1) : trimmed
  }
}

const named: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" }

const decodeEntities = (text: string) =>
  text.replace(/&(?:#(\d{1,7})|#x([0-9a-f]{1,6})|(amp|lt|gt|quot|apos));/gi, (whole, decimal, hex, name) => {
    if (name !== undefined) return named[String(name).toLowerCase()] ?? whole
    const code = decimal === undefined ? Number.parseInt(hex, 16) : Number(decimal)
    return code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : whole
  })
