/**
 * Verifies the DKIM signatures of a received message (RFC 6376, RFC 8463): rsa-sha256 and ed25519-sha256, simple and relaxed. Never
 * throws; signatures, fields and key sizes are limited, and the caller's DNS queries limit the time.
 */
import { createHash, createPublicKey, verify as cryptoVerify, type KeyObject } from 'node:crypto'
import { hasUsualExponent } from '#base'
import { bodyStart, relaxedBody, relaxedHeader, simpleBody } from './canonical.ts'

/** `fail`: there are signatures, but no signature is verified as the sender's: broken, without a key, or of another domain. */
export type DkimVerdict = 'pass' | 'fail' | 'none'

/** TXT records of a name; empty if the name has no TXT record or the lookup fails. */
export type FindTxt = (name: string) => Promise<readonly string[]>

/** Further signatures of one message are ignored: each costs a DNS query and a verification. */
const maxSignatures = 3
/** The same for a list of all signatures: forwarders and providers add theirs. */
const maxListed = 5
const maxHeaderOctets = 262_144
export const maxSignedFields = 200
/** Octets of one signature: its field names and a number of 4096 bits are far smaller. */
export const maxSignatureLength = 16_384
/** RFC 8301 section 3.2 forbids smaller keys; larger ones only cost time. */
const minRsaBits = 1024
const maxRsaBits = 4096
const ed25519Octets = 32
/** The SPKI prefix of a 32-octet Ed25519 key. */
const ed25519Prefix = Buffer.from('302a300506032b6570032100', 'hex')
export const label = /^[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?$/i

/** The result of checking the message without DNS: the signatures whose body hash matches, and the header text that each has signed. */
export interface Unjudged {
  /** The verdict if no signature verifies. */
  otherwise: Exclude<DkimVerdict, 'pass'>
  signatures: readonly { tags: ReadonlyMap<string, string>; octets: Uint8Array }[]
}

/** `domain`: the domain of the message's From; a signature of a parent domain counts too (relaxed alignment of RFC 7489). */
export const verify = (message: Buffer, domain: string, findTxt: FindTxt, atMs: number): Promise<DkimVerdict> =>
  verifySignatures(unjudged(message, domain, atMs), findTxt)

/** The part of `verify` whose time grows with the size of the message, separate so that another thread can run it. */
export function unjudged(message: Buffer, domain: string, atMs: number): Unjudged {
  const { named, start } = namedFields(message)
  const found = named.get('dkim-signature')
  if (!found) return { otherwise: 'none', signatures: [] }
  // With two From fields, a mail program may show one while the signature covers the other.
  if (named.get('from')?.length !== 1) return { otherwise: 'fail', signatures: [] }
  const bodyHash = hashesOf(message, start)
  const signatures = firstOf(found, maxSignatures)
    .filter(({ tags }) => isAbout(tags, domain, atMs) && bodyHash(formsOf(tags).body) === bare(tags.get('bh')))
    .flatMap(({ own, tags }) => {
      const octets = signedOctets(tags, named, own)
      return octets ? [{ tags, octets }] : []
    })
  return { otherwise: 'fail', signatures }
}

/** A signature of any domain, checked without DNS. */
export interface FoundSignature {
  /** Lower case. */
  domain: string
  selector: string
  tags: ReadonlyMap<string, string>
  /** Undefined: it cannot verify, because it is incomplete or expired, or the body differs. */
  octets: Uint8Array | undefined
}

/** The first signatures of a message, of any domain: the part whose time grows with the size of the message. */
export function signaturesOf(message: Buffer, atMs: number): FoundSignature[] {
  const { named, start } = namedFields(message)
  const isClear = named.get('from')?.length === 1
  const bodyHash = hashesOf(message, start)
  return firstOf(named.get('dkim-signature') ?? [], maxListed).map(({ own, tags }) => {
    const mayHold = isClear && isWhole(tags, atMs) && bodyHash(formsOf(tags).body) === bare(tags.get('bh'))
    const octets = mayHold ? signedOctets(tags, named, own) : undefined
    return { domain: (tags.get('d') ?? '').toLowerCase(), selector: tags.get('s') ?? '', tags, octets }
  })
}

/** Whether the key in DNS verifies the signature; `findTxt` may throw, and its error is passed on. */
export async function holdsWithKey({ tags, octets }: FoundSignature, findTxt: FindTxt): Promise<boolean> {
  if (!octets) return false
  const [record = '', second] = await findTxt(`${tags.get('s')}._domainkey.${tags.get('d')}`)
  const key = second === undefined ? verifyingKey(record, tags) : undefined
  return key !== undefined && holds(tags, key, octets)
}

export function namedFields(message: Buffer): { named: ReadonlyMap<string, readonly Field[]>; start: number } {
  const start = bodyStart(message)
  const fields = message
    .toString('latin1', 0, Math.min(start, maxHeaderOctets))
    .split(/\r\n(?![ \t])/)
    .filter((text) => text.includes(':'))
    .map((text): Field => ({ name: nameOf(text), text }))
  return { named: Map.groupBy(fields, ({ name }) => name), start }
}

const firstOf = (found: readonly Field[], most: number) =>
  found
    .filter(({ text }) => text.length <= maxSignatureLength)
    .slice(0, most)
    .map((own) => ({ own, tags: tagsOfList(own.text.slice(own.text.indexOf(':') + 1)) }))

/** Verifies the signatures with the keys in DNS. */
export async function verifySignatures({ otherwise, signatures }: Unjudged, findTxt: FindTxt): Promise<DkimVerdict> {
  for (const { tags, octets } of signatures) {
    const [record = '', second] = await findTxt(`${tags.get('s')}._domainkey.${tags.get('d')}`)
    const key = second === undefined ? verifyingKey(record, tags) : undefined
    if (key && holds(tags, key, octets)) return 'pass'
  }
  return otherwise
}

export interface Field {
  /** Lower case. */
  name: string
  /** The complete field with its folds. */
  text: string
}

const nameOf = (field: string) => field.slice(0, field.indexOf(':')).trim().toLowerCase()

/** A duplicate tag makes the list invalid (RFC 6376 section 3.2): it then has no tags. */
export function tagsOfList(list: string): ReadonlyMap<string, string> {
  const tags = new Map<string, string>()
  for (const one of list.split(';')) {
    const at = one.indexOf('=')
    if (at < 0) continue
    const name = one.slice(0, at).trim()
    if (tags.has(name)) return new Map()
    tags.set(name, one.slice(at + 1).trim())
  }
  return tags
}

export const bare = (text: string | undefined) => (text ?? '').replace(/\s+/g, '')
export const namesIn = (tags: ReadonlyMap<string, string>) => bare(tags.get('h')).toLowerCase().split(':')

/** Whether the signature is whole, and of this sender. */
function isAbout(tags: ReadonlyMap<string, string>, domain: string, atMs: number): boolean {
  const of = (tags.get('d') ?? '').toLowerCase()
  const from = domain.toLowerCase()
  return isWhole(tags, atMs) && (from === of || from.endsWith(`.${of}`))
}

/**
 * Whether the signature has all required tags, for this time. A length (l=) lets anyone append to the body, so such a signature is ignored.
 */
export function isWhole(tags: ReadonlyMap<string, string>, atMs: number): boolean {
  const of = (tags.get('d') ?? '').toLowerCase()
  const identity = identityOf(tags)
  const areNames = [of, tags.get('s') ?? ''].every((name) => name.split('.').every((one) => label.test(one)))
  const seconds = tags.get('x')
  return (
    tags.get('v') === '1' &&
    areNames &&
    of.includes('.') &&
    (identity === of || identity.endsWith(`.${of}`)) &&
    !tags.has('l') &&
    namesIn(tags).includes('from') &&
    namesIn(tags).length <= maxSignedFields &&
    (seconds === undefined || Number(seconds) * 1000 > atMs)
  )
}

/** The domain of i=, which defaults to that of d=. */
function identityOf(tags: ReadonlyMap<string, string>): string {
  const given = tags.get('i') ?? tags.get('d') ?? ''
  return given.slice(given.lastIndexOf('@') + 1).toLowerCase()
}

export const formsOf = (tags: ReadonlyMap<string, string>) => {
  const [header, body = 'simple'] = (tags.get('c') ?? 'simple').toLowerCase().split('/')
  return { header, body }
}

/** The hash of the body in a form, computed once for all signatures; undefined for unknown forms. */
export function hashesOf(message: Buffer, start: number): (form: string) => string | undefined {
  const hashes = new Map<string, string>()
  return (form) => {
    if (form !== 'simple' && form !== 'relaxed') return undefined
    const hash = hashes.get(form) ?? hashOf(form === 'relaxed' ? relaxedBody(message, start) : simpleBody(message, start))
    hashes.set(form, hash)
    return hash
  }
}

const hashOf = (octets: Buffer) => createHash('sha256').update(octets).digest('base64')

/**
 * The DNS key for this signature; undefined if it was revoked, has another purpose, or an unacceptable size or exponent. `mayTest`:
 * also a key in testing mode, for a signature that proves no identity.
 */
export function verifyingKey(record: string, tags: ReadonlyMap<string, string>, mayTest = false): KeyObject | undefined {
  const keyTags = tagsOfList(record)
  const kind = keyTags.get('k') ?? 'rsa'
  const hashes = keyTags.get('h')
  const isForMail = ['*', 'email'].some((use) => (keyTags.get('s') ?? '*').split(':').some((one) => one.trim() === use))
  const given = Buffer.from(bare(keyTags.get('p')), 'base64')
  // RFC 6376 section 3.6.1: a key in testing mode proves no identity, and a strict key does not cover subdomains.
  const flags = bare(keyTags.get('t')).toLowerCase().split(':')
  if ((flags.includes('y') && !mayTest) || (flags.includes('s') && identityOf(tags) !== tags.get('d')?.toLowerCase())) return undefined
  if ((keyTags.get('v') ?? 'DKIM1') !== 'DKIM1' || given.length === 0 || !isForMail) return undefined
  if (tags.get('a')?.toLowerCase() !== `${kind}-sha256` || (hashes !== undefined && !bare(hashes).split(':').includes('sha256')))
    return undefined
  try {
    if (kind === 'ed25519')
      return given.length === ed25519Octets
        ? createPublicKey({ key: Buffer.concat([ed25519Prefix, given]), format: 'der', type: 'spki' })
        : undefined
    const key = createPublicKey({ key: given, format: 'der', type: 'spki' })
    const bits = key.asymmetricKeyDetails?.modulusLength ?? 0
    return key.asymmetricKeyType === 'rsa' && bits >= minRsaBits && bits <= maxRsaBits && hasUsualExponent(key) ? key : undefined
  } catch {
    return undefined
  }
}

/** The signed header text, in the form that the signature names; undefined for an unknown form. */
export function signedOctets(
  tags: ReadonlyMap<string, string>,
  named: ReadonlyMap<string, readonly Field[]>,
  own: Field,
): Buffer | undefined {
  const { header } = formsOf(tags)
  if (header !== 'simple' && header !== 'relaxed') return undefined
  const canonical = ({ name, text }: Field) =>
    header === 'simple' ? text : relaxedHeader({ name, value: text.slice(text.indexOf(':') + 1) })
  // Of several fields with one name, the last one is signed first; listing a missing field signs its absence (section 5.4.2).
  const left = new Map<string, Field[]>()
  let text = ''
  for (const name of namesIn(tags)) {
    const some = left.get(name) ?? (named.get(name) ?? []).filter((field) => field !== own)
    left.set(name, some)
    const last = some.pop()
    if (last) text += `${canonical(last)}\r\n`
  }
  return Buffer.from(text + canonical(withoutSignature(own)), 'latin1')
}

/** The field as it was signed: b= is empty. */
export const withoutSignature = (own: Field): Field => ({ ...own, text: own.text.replace(/([:;][ \t\r\n]*b[ \t\r\n]*=)[^;]*/, '$1') })

export function holds(tags: ReadonlyMap<string, string>, key: KeyObject, octets: Uint8Array): boolean {
  const signature = Buffer.from(bare(tags.get('b')), 'base64')
  return key.asymmetricKeyType === 'ed25519'
    ? cryptoVerify(null, createHash('sha256').update(octets).digest(), key, signature)
    : cryptoVerify('sha256', octets, key, signature)
}
