/** The DKIM signatures of a message as it was sent. Pure; the other checks of a message are those of the service. */
import { texts } from '../texts.ts'

const words = texts.insights

export interface Check {
  /** As the findings of the service. */
  severity: keyof typeof words.states
  message: string
}

const addressOf = (from: string) => (/<([^>]+)>/.exec(from)?.[1] ?? from).trim()
const domainOf = (address: string) => address.slice(address.lastIndexOf('@') + 1).toLowerCase()

/** Equal, or one below the other (relaxed alignment of RFC 7489, 3.1, without the Public Suffix List). */
const isRelated = (one: string, other: string) => one === other || one.endsWith(`.${other}`) || other.endsWith(`.${one}`)

/** The domains of the signatures in a message, which is given as text of its octets. */
export function signersOf(message: string): string[] {
  const head = (message.split(/\r?\n\r?\n/)[0] ?? '').replace(/\r?\n[ \t]+/g, ' ')
  return [...head.matchAll(/^dkim-signature:.*?[;\s]d=([^;\s]+)/gim)].map(([, domain = '']) => domain)
}

/** `from`: the From header. */
export function checkSignatures(signedBy: readonly string[], from: string): Check {
  const domain = domainOf(addressOf(from))
  const aligned = signedBy.find((one) => isRelated(one.toLowerCase(), domain))
  if (aligned) return { severity: 'ok', message: words.dkim(aligned) }
  if (signedBy[0]) return { severity: 'advice', message: words.dkimOther(signedBy[0]) }
  return { severity: 'problem', message: words.dkimNone }
}
