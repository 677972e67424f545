/**
 * Parses email addresses: strict about the input, one normal form as output (RFC 5321 section 4.1.2, RFC 6531 for other scripts).
 */
import { domainToASCII } from 'node:url'

export interface Address {
  local: string
  /** Lower-case A-labels. */
  domain: string
  /** `local@domain` in the form used in the envelope. */
  text: string
  /** The local part is not ASCII: the server must offer SMTPUTF8. */
  needsSmtpUtf8: boolean
}

export interface Mailbox {
  name: string | undefined
  address: Address
}

const maxAddressLength = 254
const maxDomainLength = 253
const maxLocalOctets = 64
const maxLabelLength = 63

/** Letters of other scripts, but no control, format (bidi, zero width), separator, private or unassigned characters. */
const atom = /^[A-Za-z0-9!#$%&'*+/=?^_`{|}~\u00a1-\u{10ffff}-]+$/u
const forbidden = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cn}\p{Cs}]/u
const quotedText = /^"(?:[\x20!#-[\]-~\u00a1-\u{10ffff}]|\\[\x20-\x7e])*"$/u
const label = /^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?$/
const ascii = /^[\u0000-\u007f]*$/

/** A bare address; undefined if the text is not one. */
export function parseAddress(text: string): Address | undefined {
  if (text.length > maxAddressLength || forbidden.test(text)) return undefined
  // The domain follows the last @: a quoted local part may hold others.
  const at = text.lastIndexOf('@')
  if (at < 1) return undefined
  const local = text.slice(0, at)
  if (Buffer.byteLength(local) > maxLocalOctets || !isLocal(local)) return undefined
  const domain = parseDomain(text.slice(at + 1))
  if (domain === undefined) return undefined
  const whole = `${local}@${domain}`
  return whole.length > maxAddressLength ? undefined : { local, domain, text: whole, needsSmtpUtf8: !ascii.test(local) }
}

const isLocal = (local: string) =>
  local.startsWith('"') ? local.length > 2 && quotedText.test(local) : local.split('.').every((part) => atom.test(part))

/** A host name of at least two labels as lower-case A-labels; undefined if the text is not one. */
export function parseDomain(text: string): string | undefined {
  if (text.length === 0 || text.length > maxDomainLength || forbidden.test(text) || /[\s%:/?#[\]@\\<>^|"]/.test(text)) return undefined
  // Checked first, because the conversion takes microseconds. UTS 46 maps the other three to the first.
  if (!/[.\u3002\uff0e\uff61]/.test(text)) return undefined
  const domain = (ascii.test(text) ? text : domainToASCII(text)).toLowerCase()
  const labels = domain.split('.')
  if (domain.length > maxDomainLength || labels.length < 2 || labels.some((one) => one.length > maxLabelLength || !label.test(one)))
    return undefined
  // Resolvers treat a name whose last label is a number as an IPv4 address.
  return /^\d+$/.test(labels.at(-1) as string) ? undefined : domain
}
