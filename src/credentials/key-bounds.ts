/**
 * The bounds of a narrow key: its senders, its client networks and its expiry. Each is checked when it is set, and again at each use. An
 * ordinary key has no bounds, which costs one comparison.
 */
import { isInNetwork, type Network, networkFrom, Refusal, wrongField } from '#base'
import { type Address, parseAddress, parseDomain } from '#mail'

/** As stored; null: unbounded. */
export interface StoredBounds {
  /** Sending domains and addresses, in lower case. */
  allowedFrom: string[] | null
  /** In CIDR form. */
  allowedNetworks: string[] | null
  expiresAt: Date | null
}

/** undefined: unchanged, or for a new key unbounded. */
export interface WantedBounds {
  allowedFrom?: readonly string[] | null | undefined
  allowedNetworks?: readonly string[] | null | undefined
  expiresAt?: Date | null | undefined
}

/** Ready to be checked at each use. */
export interface KeyBounds {
  from: readonly string[] | null
  networks: readonly Network[] | null
  /** Unix milliseconds. */
  expiresAtMs: number | null
}

const maxEntries = 50
const maxYears = 10
const yearMs = 366 * 86_400_000

/** Undefined for an ordinary key. A network that this version cannot parse matches no client. */
export function keyBoundsOf({ allowedFrom, allowedNetworks, expiresAt }: StoredBounds): KeyBounds | undefined {
  if (allowedFrom === null && allowedNetworks === null && expiresAt === null) return undefined
  const networks = allowedNetworks && allowedNetworks.map(networkFrom).filter((one) => one !== undefined)
  return { from: allowedFrom, networks, expiresAtMs: expiresAt?.getTime() ?? null }
}

/** Refuses an expired key as a revoked one, and a client outside the key's networks. `addressOf` is called only if the key has networks. */
export function refuseOutOfBounds(bounds: KeyBounds, nowMs: number, addressOf: () => string): void {
  if (bounds.expiresAtMs !== null && nowMs >= bounds.expiresAtMs)
    throw new Refusal('expired_api_key', { message: `the key expired at ${new Date(bounds.expiresAtMs).toISOString()}` })
  if (bounds.networks === null) return
  const address = addressOf()
  if (isInNetwork(bounds.networks, address)) return
  throw new Refusal('permission_denied', {
    message: `the key cannot be used from ${address}`,
    suggestion: 'Call from one of the networks of the key, or change its allowedNetworks with another key',
  })
}

/** Whether a key with these senders may send from the address; null or undefined: from each of its tenant's. */
export function maySendFrom(allowed: readonly string[] | null | undefined, { text, domain }: Pick<Address, 'text' | 'domain'>): boolean {
  return !allowed || allowed.includes(domain) || allowed.includes(text.toLowerCase())
}

/** The bounds in their stored form; undefined: not given. Refuses `validation_error`. */
export function checkBounds(wanted: WantedBounds, nowMs: number): { [Name in keyof StoredBounds]: StoredBounds[Name] | undefined } {
  return {
    allowedFrom: checkList('allowedFrom', wanted.allowedFrom, senderIn),
    allowedNetworks: checkList('allowedNetworks', wanted.allowedNetworks, networkIn),
    expiresAt: checkExpiry(wanted.expiresAt, nowMs),
  }
}

function checkList(field: string, list: readonly string[] | null | undefined, entryOf: (field: string, text: string) => string) {
  if (!list) return list
  if (list.length === 0) throw wrongField(field, 'must list at least one entry, or be null for no bound')
  if (list.length > maxEntries) throw wrongField(field, `has more than ${maxEntries} entries`)
  return [...new Set(list.map((text, index) => entryOf(`${field}[${index}]`, text)))]
}

function senderIn(field: string, text: string): string {
  const entry = text.includes('@') ? parseAddress(text)?.text.toLowerCase() : parseDomain(text)
  if (entry === undefined) throw wrongField(field, 'is not a domain such as example.com or an address such as shop@example.com')
  return entry
}

function networkIn(field: string, text: string): string {
  const network = networkFrom(text.trim())
  if (!network) throw wrongField(field, 'is not a network such as 203.0.113.0/24 or an address such as 203.0.113.9')
  return `${network[0].toString()}/${network[1]}`
}

function checkExpiry(at: Date | null | undefined, nowMs: number): Date | null | undefined {
  if (!at) return at
  if (at.getTime() <= nowMs) throw wrongField('expiresAt', 'must be in the future')
  if (at.getTime() > nowMs + maxYears * yearMs) throw wrongField('expiresAt', `must be at most ${maxYears} years ahead`)
  return at
}
