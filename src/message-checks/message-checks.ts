/**
 * Checks of a message before it is sent: authentication, alignment, size, links, images, words, unsubscription, dark mode.
 * Owns: no tables. Uses: base, mail, net. Used by: http.
 * Promises: the work is limited for any message. `checkMessage` is pure; only `LinkChecks`, which a caller asks for, uses the network.
 */
import { linksOf } from '#mail'
import type { CheckedLink } from './check-links.ts'
import { scanHtmlFacts } from './scan-html.ts'
import { spamWordsIn } from './spam-words.ts'

export { type CheckedLink, type LinkChecks, maxCheckedLinks, openLinkChecks } from './check-links.ts'

export type Severity = 'ok' | 'advice' | 'problem'

export interface Finding {
  /** Such as `size`; stable. */
  check: string
  severity: Severity
  message: string
  /** null: nothing to do. */
  suggestion: string | null
}

export interface CheckedMessage {
  /** The address in From. */
  from: string
  subject: string
  html: string | undefined
  text: string | undefined
  headers: Readonly<Record<string, string>>
  replyTo: string | undefined
  unsubscribe: boolean
  attachmentOctets: number
}

/** The sending domain of From, by its last check. */
export interface SenderFacts {
  verified: boolean
  returnPathFound: boolean
  /** `invalid`: receivers ignore it. */
  dmarc: 'found' | 'invalid' | 'missing' | 'unknown'
}

/** Gmail shows no more of the HTML. */
const clippedAfterOctets = 102 * 1024
const largeAttachmentsOctets = 5 * 1_048_576
const manyWords = 3
const maxNamed = 3
const shorteners = new Set(['bit.ly', 'tinyurl.com', 'goo.gl', 't.co', 'ow.ly', 'is.gd', 'buff.ly', 'cutt.ly', 'rb.gy'])

const ok = (check: string, message: string): Finding => ({ check, severity: 'ok', message, suggestion: null })
const advice = (check: string, message: string, suggestion: string): Finding => ({ check, severity: 'advice', message, suggestion })
const problem = (check: string, message: string, suggestion: string): Finding => ({ check, severity: 'problem', message, suggestion })

/** `sender` is undefined if From is not of a sending domain. In the order of the checks. */
export function checkMessage(message: CheckedMessage, sender: SenderFacts | undefined): Finding[] {
  const domain = message.from.slice(message.from.lastIndexOf('@') + 1).toLowerCase()
  const html = message.html === undefined ? undefined : scanHtmlFacts(message.html)
  const words = `${message.subject}\n${message.text ?? ''}\n${html?.text ?? ''}`
  return [
    ...authentication(domain, sender),
    ...subject(message.subject),
    textPart(message),
    ...size(message),
    ...links(linksOf(message), domain),
    ...(html === undefined ? [] : [images(html), elements(html.removedElements), darkMode(html)]),
    spamWords(words),
    unsubscription(message),
    replies(message),
  ]
}

function authentication(domain: string, sender: SenderFacts | undefined): Finding[] {
  if (!sender) return [problem('authentication', `${domain} is not a sending domain of the tenant`, 'Add the domain, or send from another')]
  if (!sender.verified) return [problem('authentication', `${domain} is not verified`, 'Publish its DNS records, then verify the domain')]
  return [
    ok('authentication', `DKIM signs for ${domain}, the domain of From`),
    sender.returnPathFound
      ? ok('alignment', 'DKIM and SPF are both aligned with From')
      : advice('alignment', 'Only DKIM is aligned with From: the return path was not found', 'Publish the CNAME record of the return path'),
    ...policy(domain, sender),
  ]
}

function policy(domain: string, { dmarc }: SenderFacts): Finding[] {
  const required = 'Gmail and Yahoo require one of bulk senders'
  if (dmarc === 'found') return [ok('dmarc', `${domain} has a DMARC policy`)]
  if (dmarc === 'missing') return [problem('dmarc', `${domain} has no DMARC record`, `Publish a DMARC record: ${required}`)]
  if (dmarc === 'invalid')
    return [problem('dmarc', `The DMARC record of ${domain} is not valid`, `Publish exactly one record, with a tag p: ${required}`)]
  return []
}

function subject(text: string): Finding[] {
  const letters = text.replace(/[^\p{L}]/gu, '')
  if (letters.length >= 8 && letters === letters.toUpperCase() && letters !== letters.toLowerCase())
    return [advice('subject', 'The subject is in capitals', 'Write it in sentence case')]
  if (/[!?]{2}/.test(text)) return [advice('subject', 'The subject repeats punctuation marks', 'Use one mark at most')]
  return [ok('subject', 'The subject has no signs of spam')]
}

function textPart({ html, text }: CheckedMessage): Finding {
  if (text !== undefined && text.trim() !== '') return ok('text', 'The message has a text part')
  if (html === undefined) return problem('text', 'The message has neither text nor HTML', 'Give text, html or both')
  return advice(
    'text',
    'The message has no text of its own: Postrider makes one from the HTML',
    'Give text, which programs and watches read',
  )
}

function size({ html = '', attachmentOctets }: CheckedMessage): Finding[] {
  const octets = Buffer.byteLength(html)
  const kilobytes = `${(octets / 1024).toFixed(1)} kB`
  return [
    octets > clippedAfterOctets
      ? problem('size', `The HTML has ${kilobytes}: Gmail hides all beyond 102 kB`, 'Shorten it, or move styles and pictures out of it')
      : ok('size', `The HTML has ${kilobytes}`),
    ...(attachmentOctets > largeAttachmentsOctets
      ? [advice('attachments', `The attachments have ${(attachmentOctets / 1_048_576).toFixed(1)} MB`, 'Link to large files instead')]
      : []),
  ]
}

function links(given: readonly string[], domain: string): Finding[] {
  const web = given.filter((link) => /^https?:/i.test(link))
  if (web.length === 0) return [ok('links', 'The message has no links')]
  const broken = web.filter((link) => !URL.canParse(link))
  const urls = web.flatMap((link) => (URL.canParse(link) ? [new URL(link)] : []))
  const plain = urls.filter(({ protocol }) => protocol === 'http:')
  const numeric = urls.filter(({ hostname }) => /^[\d.]+$|^\[/.test(hostname))
  const short = urls.filter(({ hostname }) => shorteners.has(hostname))
  const others = [...new Set(urls.map(({ hostname }) => hostname))].filter((host) => !isRelated(host, domain))
  const wrong = [
    ...(broken.length > 0 ? [problem('links', `${countOf(broken.length)} malformed: ${namedIn(broken)}`, 'Correct the address')] : []),
    ...(numeric.length > 0
      ? [problem('links', 'A link has an IP address instead of a name', 'Use a host name, which filters trust more')]
      : []),
    ...(short.length > 0
      ? [
          problem(
            'links',
            `Links use a URL shortener: ${namedIn(short.map(({ hostname }) => hostname))}`,
            'Use the full address: filters distrust shorteners',
          ),
        ]
      : []),
    ...(plain.length > 0 ? [advice('links', `${countOf(plain.length)} not encrypted`, 'Use https')] : []),
    ...(others.length > 0
      ? [
          advice(
            'links',
            `Links lead to other domains than ${domain}: ${namedIn(others)}`,
            'Use names below the domain of From where possible',
          ),
        ]
      : []),
  ]
  return wrong.length > 0 ? wrong : [ok('links', `${web.length === 1 ? '1 link is' : `${web.length} links are`} well-formed and encrypted`)]
}

const countOf = (count: number) => (count === 1 ? '1 link is' : `${count} links are`)
const maxShownLength = 100
const namedIn = (names: readonly string[]) =>
  `${[...new Set(names)]
    .slice(0, maxNamed)
    .map((name) => name.slice(0, maxShownLength))
    .join(', ')}${new Set(names).size > maxNamed ? ', …' : ''}`

/** Equal, or one below the other. */
const isRelated = (one: string, other: string) => one === other || one.endsWith(`.${other}`) || other.endsWith(`.${one}`)

type Html = ReturnType<typeof scanHtmlFacts>

function images({ images: count, imagesWithoutAlt, text }: Html): Finding {
  if (imagesWithoutAlt > 0)
    return advice(
      'images',
      `${imagesWithoutAlt} of ${count} images have no alt text`,
      'Add alt, empty for decoration: many programs block images',
    )
  if (count > 0 && text.length < 20) return problem('images', 'The HTML is only images', 'Add text: filters distrust mail without it')
  return ok('images', count === 0 ? 'The HTML has no images' : 'All images have alt text')
}

const elements = (removed: readonly string[]): Finding =>
  removed.length > 0
    ? problem('html', `Mail programs remove these elements: ${removed.join(', ')}`, 'Remove them, and link to a page instead')
    : ok('html', 'The HTML has no elements that mail programs remove')

const darkMode = ({ hasColorScheme, hasFixedColours }: Html): Finding =>
  hasFixedColours && !hasColorScheme
    ? advice('dark-mode', 'Colours are fixed, and dark mode is not considered', 'Declare color-scheme, and check the colours in dark mode')
    : ok('dark-mode', hasColorScheme ? 'The HTML declares a color scheme' : 'No colours are fixed')

function spamWords(text: string): Finding {
  const found = spamWordsIn(text)
  return found.length >= manyWords
    ? advice('words', `Phrases that filters know from spam: ${found.slice(0, maxNamed).join(', ')}`, 'Say it in other words')
    : ok('words', 'Few phrases are known from spam')
}

function unsubscription({ headers, unsubscribe }: CheckedMessage): Finding {
  const names = new Set(Object.keys(headers).map((name) => name.toLowerCase()))
  if (unsubscribe || names.has('list-unsubscribe-post')) return ok('unsubscribe', 'The message offers one-click unsubscription')
  return advice(
    'unsubscribe',
    'The message has no one-click unsubscription',
    'For subscribed mail, set unsubscribe: Gmail and Yahoo require it of bulk senders',
  )
}

const replies = ({ from, replyTo }: CheckedMessage): Finding =>
  /^(?:no|do-?not)[-_.]?reply/i.test(from) && replyTo === undefined
    ? advice('replies', `${from} accepts no replies`, 'Use an address that is read, or set replyTo')
    : ok('replies', 'Recipients can reply')

/** One finding about all requested links. */
export function findingOfLinks(links: readonly CheckedLink[]): Finding {
  const broken = links.filter(({ state }) => state === 'broken')
  const requested = links.filter(({ state }) => state !== 'unchecked').length
  if (broken.length > 0)
    return problem('link-targets', `${countOf(broken.length)} broken: ${namedIn(broken.map(({ url }) => url))}`, 'Correct the address')
  return ok(
    'link-targets',
    requested === 0 ? 'No link was requested' : `${requested} of ${links.length} links were requested, and none is broken`,
  )
}
