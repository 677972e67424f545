/**
 * What the DKIM signatures of a stranger's message are worth (RFC 6376, RFC 8463): rsa-sha256 and ed25519-sha256, simple and relaxed.
 * Never throws; bounded in signatures, fields and the size of keys, and in time by whoever asks DNS.
 */
import { createHash, createPublicKey, verify as cryptoVerify, type KeyObject } from 'node:crypto'
import { bodyStart, relaxedBody, relaxedHeader, simpleBody } from './canonical.ts'

/** `fail`: there are signatures, and none was shown to be the sender's: broken, without a key, or of another domain. */
export type DkimVerdict = 'pass' | 'fail' | 'none'

/** TXT records of a name; none when it has none or cannot be asked. */
export type FindTxt = (name: string) => Promise<readonly string[]>

/** More of one message are not looked at: each costs a DNS question and a check. */
const mostSignatures = 3
const mostHeaderOctets = 262_144
const mostSignedFields = 200
/** Of one signature: the names of its fields and a number of 4096 bits are far less. */
const longestSignature = 16_384
/** RFC 8301 section 3.2 forbids smaller ones; larger ones only cost time. */
const leastRsaBits = 1024
const mostRsaBits = 4096
const ed25519Octets = 32
/** What SPKI puts before the 32 octets of an Ed25519 key. */
const ed25519Prefix = Buffer.from('302a300506032b6570032100', 'hex')
const label = /^[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?$/i

/** What the message itself says of its signatures: those whose body is as it was signed, and what each has signed of the header. */
export interface Unjudged {
  /** What it comes to when none of them holds. */
  otherwise: Exclude<DkimVerdict, 'pass'>
  signatures: readonly { tags: ReadonlyMap<string, string>; octets: Uint8Array }[]
}

/** `domain`: whose word counts, that of the message's From; a signature of a domain above it counts too (RFC 7489 calls it relaxed). */
export const verify = (message: Buffer, domain: string, findTxt: FindTxt, atMs: number): Promise<DkimVerdict> =>
  judge(unjudged(message, domain, atMs), findTxt)

/** The part of `verify` that costs time with the size of the message, and nothing else: for another thread. */
export function unjudged(message: Buffer, domain: string, atMs: number): Unjudged {
  const start = bodyStart(message)
  const fields = message
    .toString('latin1', 0, Math.min(start, mostHeaderOctets))
    .split(/\r\n(?![ \t])/)
    .filter((text) => text.includes(':'))
    .map((text): Field => ({ name: nameOf(text), text }))
  const named = Map.groupBy(fields, ({ name }) => name)
  const found = named.get('dkim-signature')
  if (!found) return { otherwise: 'none', signatures: [] }
  // Of two, one is shown and the other signed.
  if (named.get('from')?.length !== 1) return { otherwise: 'fail', signatures: [] }
  const bodyHash = hashesOf(message, start)
  const signatures = found
    .filter(({ text }) => text.length <= longestSignature)
    .slice(0, mostSignatures)
    .map((own) => ({ own, tags: tagsOf(own.text.slice(own.text.indexOf(':') + 1)) }))
    .filter(({ tags }) => isAbout(tags, domain, atMs) && bodyHash(formsOf(tags).body) === bare(tags.get('bh')))
    .flatMap(({ own, tags }) => {
      const octets = signedOctets(tags, named, own)
      return octets ? [{ tags, octets }] : []
    })
  return { otherwise: 'fail', signatures }
}

/** What they are worth by the keys that DNS has. */
export async function judge({ otherwise, signatures }: Unjudged, findTxt: FindTxt): Promise<DkimVerdict> {
  for (const { tags, octets } of signatures) {
    const [record = '', second] = await findTxt(`${tags.get('s')}._domainkey.${tags.get('d')}`)
    const key = second === undefined ? keyOf(record, tags) : undefined
    if (key && holds(tags, key, octets)) return 'pass'
  }
  return otherwise
}

interface Field {
  /** Lower case. */
  name: string
  /** The whole of it, with its folds. */
  text: string
}

const nameOf = (field: string) => field.slice(0, field.indexOf(':')).trim().toLowerCase()

/** A tag given twice makes the list void (RFC 6376 section 3.2): then it has none. */
function tagsOf(list: string): ReadonlyMap<string, string> {
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

const bare = (text: string | undefined) => (text ?? '').replace(/\s+/g, '')
const namesIn = (tags: ReadonlyMap<string, string>) => bare(tags.get('h')).toLowerCase().split(':')

/** Whether it says all it must, of this sender and for this time. A length (l=) leaves the end of the body to anybody, so it counts for nothing. */
function isAbout(tags: ReadonlyMap<string, string>, domain: string, atMs: number): boolean {
  const of = (tags.get('d') ?? '').toLowerCase()
  const from = domain.toLowerCase()
  const identity = identityOf(tags)
  const areNames = [of, tags.get('s') ?? ''].every((name) => name.split('.').every((one) => label.test(one)))
  const seconds = tags.get('x')
  return (
    tags.get('v') === '1' &&
    areNames &&
    of.includes('.') &&
    (from === of || from.endsWith(`.${of}`)) &&
    (identity === of || identity.endsWith(`.${of}`)) &&
    !tags.has('l') &&
    namesIn(tags).includes('from') &&
    namesIn(tags).length <= mostSignedFields &&
    (seconds === undefined || Number(seconds) * 1000 > atMs)
  )
}

/** The domain of i=, which is that of d= where it is not given. */
function identityOf(tags: ReadonlyMap<string, string>): string {
  const given = tags.get('i') ?? tags.get('d') ?? ''
  return given.slice(given.lastIndexOf('@') + 1).toLowerCase()
}

const formsOf = (tags: ReadonlyMap<string, string>) => {
  const [header, body = 'simple'] = (tags.get('c') ?? 'simple').toLowerCase().split('/')
  return { header, body }
}

/** The hash of the body in a form, made once for all signatures; undefined for forms that there are not. */
function hashesOf(message: Buffer, start: number): (form: string) => string | undefined {
  const hashes = new Map<string, string>()
  return (form) => {
    if (form !== 'simple' && form !== 'relaxed') return undefined
    const hash = hashes.get(form) ?? hashOf(form === 'relaxed' ? relaxedBody(message, start) : simpleBody(message, start))
    hashes.set(form, hash)
    return hash
  }
}

const hashOf = (octets: Buffer) => createHash('sha256').update(octets).digest('base64')

/** The key that DNS has for this signature; none when it was revoked, is for something else or of an odd size. */
function keyOf(record: string, tags: ReadonlyMap<string, string>): KeyObject | undefined {
  const said = tagsOf(record)
  const kind = said.get('k') ?? 'rsa'
  const hashes = said.get('h')
  const isForMail = ['*', 'email'].some((use) => (said.get('s') ?? '*').split(':').some((one) => one.trim() === use))
  const given = Buffer.from(bare(said.get('p')), 'base64')
  // RFC 6376 section 3.6.1: a key that is being tried out proves nothing; a strict one, nothing of the domains below.
  const flags = bare(said.get('t')).toLowerCase().split(':')
  if (flags.includes('y') || (flags.includes('s') && identityOf(tags) !== tags.get('d')?.toLowerCase())) return undefined
  if ((said.get('v') ?? 'DKIM1') !== 'DKIM1' || given.length === 0 || !isForMail) return undefined
  if (tags.get('a')?.toLowerCase() !== `${kind}-sha256` || (hashes !== undefined && !bare(hashes).split(':').includes('sha256')))
    return undefined
  try {
    if (kind === 'ed25519')
      return given.length === ed25519Octets
        ? createPublicKey({ key: Buffer.concat([ed25519Prefix, given]), format: 'der', type: 'spki' })
        : undefined
    const key = createPublicKey({ key: given, format: 'der', type: 'spki' })
    const bits = key.asymmetricKeyDetails?.modulusLength ?? 0
    return key.asymmetricKeyType === 'rsa' && bits >= leastRsaBits && bits <= mostRsaBits ? key : undefined
  } catch {
    return undefined
  }
}

/** What it has signed of the header, in the form it says; undefined when there is no such form. */
function signedOctets(tags: ReadonlyMap<string, string>, named: ReadonlyMap<string, readonly Field[]>, own: Field): Buffer | undefined {
  const { header } = formsOf(tags)
  if (header !== 'simple' && header !== 'relaxed') return undefined
  const canonical = ({ name, text }: Field) =>
    header === 'simple' ? text : relaxedHeader({ name, value: text.slice(text.indexOf(':') + 1) })
  // Of several fields of one name, the last one is signed first; names of fields that are not there sign their absence (section 5.4.2).
  const left = new Map<string, Field[]>()
  let text = ''
  for (const name of namesIn(tags)) {
    const some = left.get(name) ?? (named.get(name) ?? []).filter((field) => field !== own)
    left.set(name, some)
    const last = some.pop()
    if (last) text += `${canonical(last)}\r\n`
  }
  const unsigned = own.text.replace(/([:;][ \t\r\n]*b[ \t\r\n]*=)[^;]*/, '$1')
  return Buffer.from(text + canonical({ ...own, text: unsigned }), 'latin1')
}

function holds(tags: ReadonlyMap<string, string>, key: KeyObject, octets: Uint8Array): boolean {
  const signature = Buffer.from(bare(tags.get('b')), 'base64')
  return key.asymmetricKeyType === 'ed25519'
    ? cryptoVerify(null, createHash('sha256').update(octets).digest(), key, signature)
    : cryptoVerify('sha256', octets, key, signature)
}
