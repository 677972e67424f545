/**
 * Rewrites html for one recipient: links through the track domain, and the open pixel. It works by position: every character outside the
 * affected href values and the pixel stays as the sender wrote it.
 */
import { isUtf8 } from 'node:buffer'
import { decodeHTMLAttribute } from 'entities/decode'
import type { Tracking } from '#emails'
import { scanHtml, type TextRange } from './html-scanner.ts'
import { maxUrlLength, type Tokens, type Tracked } from './link-tokens.ts'
import { trimmedUrl } from './trimmed-url.ts'

/** The recipient of this copy. */
export interface TrackedRecipient {
  tenantId: string
  emailId: string
}

/** Links beyond this number in one message stay unchanged. */
const maxLinks = 2000
/** Length of a URL with character references; longer values stay unchanged. */
const maxValueLength = 16_384

/** Returns the same text if it has no tracked part. */
export function trackHtml(html: string, tracking: Tracking, recipient: TrackedRecipient, tokens: Tokens): string {
  return track(html, tracking, recipient, tokens, false)
}

/**
 * Html in octets of `charset`; undefined if it has no tracked part, or the charset may give `<` another meaning. A link with characters
 * beyond US-ASCII is not rewritten unless the octets are UTF-8.
 */
export function trackHtmlOctets(
  html: Buffer,
  charset: string,
  tracking: Tracking,
  recipient: TrackedRecipient,
  tokens: Tokens,
): Buffer | undefined {
  if (!likeAscii.test(charset)) return undefined
  const encoding = /^(?:utf-?8|us-ascii|)$/i.test(charset) && isUtf8(html) ? 'utf8' : 'latin1'
  const text = html.toString(encoding)
  const tracked = track(text, tracking, recipient, tokens, encoding === 'latin1')
  return tracked === text ? undefined : Buffer.from(tracked, encoding)
}

/** Charsets in which the octets of markup have no other meaning, even after a lead octet. */
const likeAscii =
  /^(?:|utf-?8|us-ascii|ascii|iso-8859-\d{1,2}|latin\d|windows-125\d|koi8-[ru]|gb2312|gbk|gb18030|big5|euc-(?:kr|jp)|shift_jis)$/i

function track(html: string, tracking: Tracking, recipient: TrackedRecipient, tokens: Tokens, asciiOnly: boolean): string {
  const { links, tail } = scanHtml(html)
  const edits: (TextRange & { text: string })[] = tracking.clicks ? rewritten(html, links, tracking, recipient, tokens, asciiOnly) : []
  if (tracking.opens && html !== '') {
    const at = edits.findIndex((one) => one.start >= tail)
    edits.splice(at < 0 ? edits.length : at, 0, { start: tail, end: tail, text: pixel(tracking, recipient, tokens) })
  }
  const pieces: string[] = []
  let from = 0
  for (const { start, end, text } of edits) {
    pieces.push(html.slice(from, start), text)
    from = end
  }
  pieces.push(html.slice(from))
  return pieces.join('')
}

function rewritten(
  html: string,
  links: readonly TextRange[],
  { origin, excluded }: Tracking,
  recipient: TrackedRecipient,
  tokens: Tokens,
  asciiOnly: boolean,
): (TextRange & { text: string })[] {
  const left = [new URL(origin).hostname, ...excluded]
  const known = new Map<string, string>()
  const edits: (TextRange & { text: string })[] = []
  for (const { start, end } of links) {
    if (edits.length >= maxLinks) break
    if (end - start > maxValueLength) continue
    const value = html.slice(start, end)
    if (asciiOnly && notAscii.test(value)) continue
    const url = targetOf(value, left)
    if (url === undefined) continue
    let text = known.get(url)
    if (text === undefined) {
      text = urlOf('click', url, origin, recipient, tokens)
      known.set(url, text)
    }
    edits.push({ start, end, text })
  }
  return edits
}

const notAscii = /[^\u0000-\u007f]/
const controlCharacters = /[\u0000-\u001f\u007f]/

/** The URL that a browser opens for an href value; undefined if it is not to be counted. */
function targetOf(value: string, left: readonly string[]): string | undefined {
  const decoded = value.includes('&') ? decodeHTMLAttribute(value) : value
  const url = trimmedUrl(decoded).replace(/[\t\n\r]/g, '')
  // A browser also accepts `http:host` and `https:\\host`; a Location header with one would lead elsewhere.
  if (!/^https?:\/\/[^/\\]/i.test(url) || controlCharacters.test(url) || Buffer.byteLength(url) > maxUrlLength) return undefined
  const host = URL.parse(url)?.hostname.replace(/\.$/, '')
  if (!host || left.some((name) => host === name || host.endsWith(`.${name}`))) return undefined
  return url
}

const letters = { click: 'c', open: 'o', unsubscribe: 'u' } as const

const urlOf = (kind: Tracked['kind'], url: string, origin: string, recipient: TrackedRecipient, tokens: Tokens) =>
  `${origin}/${letters[kind]}/${tokens.make({ kind, url, ...recipient })}`

/** The style keeps the pixel at its size where a style sheet stretches all images, and out of the layout where text follows. */
function pixel({ origin }: Tracking, recipient: TrackedRecipient, tokens: Tokens): string {
  const style = ['position:absolute', 'display:block', 'width:1px', 'height:1px', 'border:0', 'margin:0', 'padding:0'].map(
    (one) => `${one}!important`,
  )
  return `<img src="${urlOf('open', '', origin, recipient, tokens)}" width="1" height="1" alt="" style="${style.join(';')}">`
}

/** The header fields for one-click unsubscription (RFC 2369, RFC 8058). */
export function unsubscribeFields(origin: string, recipient: TrackedRecipient, tokens: Tokens): [name: string, value: string][] {
  return [
    ['List-Unsubscribe', `<${urlOf('unsubscribe', '', origin, recipient, tokens)}>`],
    ['List-Unsubscribe-Post', 'List-Unsubscribe=One-Click'],
  ]
}
