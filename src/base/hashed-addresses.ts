/**
 * Keyed hashes in place of addresses: equal for the same address in any case, so that a search can hash its query. A hash has the form of
 * an address at a name that cannot exist (RFC 6761 section 6.4), without the domain of the address, which may name a person too.
 */
import type { Secrets } from './secrets.ts'

const hashedDomain = 'hashed.invalid'
const goneDomains: readonly string[] = [hashedDomain, 'erased.invalid']
const hashedForm = /^hashed-[0-9a-f]{32}@hashed\.invalid$/
const purpose = 'hashed address'

/** Ends an address in a text, in a URL and in JSON. */
const delimiter = /[ \t\r\n"\\<>()[\],;:?&/]/
/** After the domain of an address in prose. */
const trailing = ".'!*`}-"

/**
 * For PostgreSQL: matches a text with an address that `AddressHasher.hashIn` would replace. Both have the same delimiters, and take the letter of
 * an escape in JSON, such as `\\n`, for no part of an address.
 */
export const unhashedPattern =
  '[^ \\t\\r\\n"\\\\<>()\\[\\],;:?&/](?<!\\\\[nrtbf])(@|%40)' +
  '(?!(hashed|erased)\\.invalid[.\'!*`}-]*([ \\t\\r\\n"\\\\<>()\\[\\],;:?&/]|$))' +
  '[^ \\t\\r\\n"\\\\<>()\\[\\],;:?&/@.-]'

/** For PostgreSQL: matches a recipient that was hashed. */
export const hashedPattern = hashedForm.source

export const isHashedAddress = (address: string): boolean => hashedForm.test(address)

export interface AddressHasher {
  hash(address: string): string
  /** Replaces every address, also where its `@` is percent-encoded. Takes time in proportion to the text. */
  hashIn(text: string): string
  /** The same in every name and text of a JSON value. */
  hashInJson(value: unknown): unknown
}

const hashOf = (mac: Buffer) => `hashed-${mac.toString('hex').slice(0, 32)}@${hashedDomain}`

/** The possible hashes of an address: under the current secret and under each older one. */
export const addressHashesOf = (secrets: Secrets, address: string): string[] => secrets.macs(purpose, address.toLowerCase()).map(hashOf)

export function openAddressHasher(secrets: Secrets): AddressHasher {
  const hash = (address: string) => (isHashedAddress(address) ? address : hashOf(secrets.mac(purpose, address.toLowerCase())))
  const hashIn = (text: string) => replaceAddresses(text, hash)
  const hashInJson = (value: unknown): unknown => {
    if (typeof value === 'string') return hashIn(value)
    if (Array.isArray(value)) return value.map(hashInJson)
    if (typeof value !== 'object' || value === null) return value
    return Object.fromEntries(Object.entries(value).map(([name, one]) => [hashIn(name), hashInJson(one)]))
  }
  return { hash, hashIn, hashInJson }
}

const isDelimiter = (character: string | undefined) => character === undefined || delimiter.test(character)

/** Each character is read a fixed number of times: backwards only before an address that is then left behind. */
function replaceAddresses(text: string, hash: (address: string) => string): string {
  let result = ''
  let from = 0
  for (const { 0: sign, index: at } of text.matchAll(/@|%40/g)) {
    const domainAt = at + sign.length
    const first = text[domainAt]
    if (at <= from || isDelimiter(first) || first === '@' || first === '.' || first === '-') continue
    let start = at
    while (start > from && !isDelimiter(text[start - 1])) start--
    if (start > 0 && text[start - 1] === '\\' && 'nrtbf'.includes(text[start] ?? '')) start++
    if (start >= at) continue
    let end = domainAt
    while (!isDelimiter(text[end])) end++
    while (end > domainAt && trailing.includes(text[end - 1] ?? '')) end--
    const isGone = goneDomains.includes(text.slice(domainAt, end))
    result += text.slice(from, isGone ? end : start)
    if (!isGone) result += hash(decoded(`${text.slice(start, at)}@${text.slice(domainAt, end)}`))
    from = end
  }
  return result + text.slice(from)
}

function decoded(text: string): string {
  if (!text.includes('%')) return text
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
