/** Checks of a message against the rules of mailbox providers. Pure: the caller parses the HTML and the headers. */
import { texts } from '../texts.ts'

const words = texts.insights

export interface CheckedMessage {
  /** The From header. */
  from: string
  html: string | undefined
  text: string | undefined
  headers: Record<string, string>
  /** Domains of the message's DKIM signatures. */
  signedBy: readonly string[]
  /** The `href` of its links. */
  links: readonly string[]
  imagesWithoutAlt: number
}

export interface Check {
  state: keyof typeof words.states
  text: string
}

/** Gmail shows no more of a message (octets of HTML). */
const clippedAfterOctets = 102 * 1024
const maxHosts = 3

const good = (text: string): Check => ({ state: 'good', text })
const advice = (text: string): Check => ({ state: 'advice', text })
const problem = (text: string): Check => ({ state: 'problem', text })

const addressOf = (from: string) => (/<([^>]+)>/.exec(from)?.[1] ?? from).trim()
const domainOf = (address: string) => address.slice(address.lastIndexOf('@') + 1).toLowerCase()

/** Equal, or one below the other (relaxed alignment of RFC 7489, 3.1, without the Public Suffix List). */
const isRelated = (one: string, other: string) => one === other || one.endsWith(`.${other}`) || other.endsWith(`.${one}`)

export function checkMessage(message: CheckedMessage): Check[] {
  const address = addressOf(message.from)
  const domain = domainOf(address)
  return [
    dkim(message.signedBy, domain),
    message.text?.trim() ? good(words.text) : problem(words.textNone),
    ...(message.html ? [size(message.html), ...links(message.links, domain), images(message.imagesWithoutAlt)] : []),
    'list-unsubscribe-post' in lower(message.headers) ? good(words.unsubscribe) : advice(words.unsubscribeNone),
    /^(no|do-?not)[-_.]?reply/i.test(address) && !('reply-to' in lower(message.headers))
      ? advice(words.noReply(address))
      : good(words.replies),
  ]
}

const lower = (headers: Record<string, string>) =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))

function dkim(signedBy: readonly string[], domain: string): Check {
  const aligned = signedBy.find((one) => isRelated(one.toLowerCase(), domain))
  if (aligned) return good(words.dkim(aligned))
  return signedBy[0] ? advice(words.dkimOther(signedBy[0])) : problem(words.dkimNone)
}

function size(html: string): Check {
  const octets = new TextEncoder().encode(html).length
  const kilobytes = (octets / 1024).toFixed(1)
  return octets > clippedAfterOctets ? problem(words.sizeClipped(kilobytes)) : good(words.size(kilobytes))
}

function links(given: readonly string[], domain: string): Check[] {
  const urls = given.flatMap((link) => (URL.canParse(link) ? [new URL(link)] : [])).filter(({ protocol }) => /^https?:$/.test(protocol))
  const plain = urls.filter(({ protocol }) => protocol === 'http:').length
  const numeric = urls.some(({ hostname }) => /^[\d.]+$|^\[/.test(hostname))
  const others = [...new Set(urls.map(({ hostname }) => hostname))].filter((host) => !isRelated(host, domain))
  const hosts = `${others.slice(0, maxHosts).join(', ')}${others.length > maxHosts ? ', …' : ''}`
  return [
    plain > 0 ? advice(words.linksPlain(plain)) : good(words.links(urls.length)),
    ...(numeric ? [problem(words.linksNumeric)] : []),
    ...(urls.length === 0 ? [] : [others.length > 0 ? advice(words.hostsOther(hosts)) : good(words.hosts)]),
  ]
}

const images = (withoutAlt: number): Check => (withoutAlt > 0 ? advice(words.altNone(withoutAlt)) : good(words.alt))
