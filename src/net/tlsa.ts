/**
 * Checks a peer's certificates against TLSA records (RFC 6698, with the rules for mail in RFC 7672 section 3): usages DANE-TA(2) and
 * DANE-EE(3), both selectors, all matching types. Pure: takes certificates and the time, returns a complaint or undefined.
 */
import { createHash, createPublicKey, type KeyObject, X509Certificate } from 'node:crypto'
import { hasUsualExponent } from '#base'
import type { TlsaRecord } from './dnssec.ts'

const daneTa = 2
const daneEe = 3
const digestOctets: Record<number, number> = { 1: 32, 2: 64 }
const digestNames: Record<number, string> = { 1: 'sha256', 2: 'sha512' }
const serverAuth = '1.3.6.1.5.5.7.3.1'
/** Longer than any real chain; further certificates are ignored. */
const maxChainLength = 10
/**
 * Whole keys and certificates in the records; further ones count only if the peer presents their certificate, because each is tried for
 * each certificate below. Two issuers and their successors, each with both selectors, are eight; more do not fit into a DNS answer over UDP.
 */
const maxWhole = 8
/** Signatures verified for one connection: a real chain of three certificates needs one for each, and one for each with each whole key. */
const maxVerified = 50
/** Longer than any key of an authority in use. */
const maxModulusBits = 8192

/** The records that apply to mail. Usages 0 and 1 do not (RFC 7672 section 3.1.3). */
export function usableTlsa(records: readonly TlsaRecord[]): TlsaRecord[] {
  return records.filter(({ usage, selector, matchingType, data }) => {
    if ((usage !== daneTa && usage !== daneEe) || selector > 1) return false
    return matchingType === 0 ? data.length > 0 : data.length === digestOctets[matchingType]
  })
}

/** Whether a certificate's names are checked; for DANE-EE they are not (RFC 7672 section 3.1.1). */
export const needsNames = (records: readonly TlsaRecord[]) => records.some(({ usage }) => usage === daneTa)

/** The fault in the peer's certificates, the leaf first; undefined: a record confirms them. `names`: one match is enough. */
export function daneComplaint(
  records: readonly TlsaRecord[],
  certificates: readonly X509Certificate[],
  names: readonly string[],
  nowMs: number,
): string | undefined {
  const [leaf, ...others] = certificates.slice(0, maxChainLength)
  if (!leaf) return 'missing'
  // RFC 7672 section 3.1.1: the certificate's names and dates do not count, only the record's own lifetime.
  if (records.some((record) => record.usage === daneEe && matches(record, leaf))) return undefined
  const anchors = records.filter(({ usage }) => usage === daneTa)
  if (anchors.length === 0) return 'matches no TLSA record'
  const broken = chainComplaint(leaf, others, anchors, nowMs)
  if (broken !== undefined) return broken
  return names.some((name) => leaf.checkHost(name) !== undefined) ? undefined : `not for ${names.join(', ')}`
}

function matches({ selector, matchingType, data }: TlsaRecord, certificate: X509Certificate): boolean {
  const chosen = selector === 0 ? certificate.raw : keyOctets(certificate.publicKey)
  const name = digestNames[matchingType]
  return data.equals(name === undefined ? chosen : createHash(name).update(chosen).digest())
}

const keyOctets = (key: KeyObject) => key.export({ type: 'spki', format: 'der' })

const isInForce = (certificate: X509Certificate, nowMs: number) =>
  certificate.validFromDate.getTime() <= nowMs && nowMs <= certificate.validToDate.getTime()

/** From the leaf upwards, each signed by the next, to one that a record names. Path lengths and name constraints are not checked. */
function chainComplaint(
  leaf: X509Certificate,
  others: readonly X509Certificate[],
  anchors: readonly TlsaRecord[],
  nowMs: number,
): string | undefined {
  if (leaf.keyUsage !== undefined && !leaf.keyUsage.includes(serverAuth)) return 'not for servers'
  const whole = anchors.filter(({ matchingType }) => matchingType === 0).slice(0, maxWhole)
  const keys = whole.flatMap(wholeKey)
  const candidates = [...others, ...whole.flatMap(wholeCertificate)].flatMap(withKey)
  let verified = 0
  const isSignedBy = (certificate: X509Certificate, key: KeyObject) => verified++ < maxVerified && certificate.verify(key)
  let at = leaf
  for (let step = 0; step < maxChainLength; step++) {
    if (!isInForce(at, nowMs)) return at === leaf ? 'expired or not yet valid' : 'of an issuer out of date'
    const below = at
    // RFC 7671 section 5.2.1: a record may name a bare key whose certificate is not sent.
    if (keys.some((key) => isSignedBy(below, key))) return undefined
    const issuer = candidates.find(({ one, key }) => one.ca && below.checkIssued(one) && isSignedBy(below, key))?.one
    if (!issuer) break
    if (anchors.some((record) => matches(record, issuer))) return isInForce(issuer, nowMs) ? undefined : 'of an issuer out of date'
    if (issuer.fingerprint256 === below.fingerprint256) break
    at = issuer
  }
  return 'matches no TLSA record'
}

function wholeCertificate({ selector, data }: TlsaRecord): X509Certificate[] {
  if (selector !== 0) return []
  try {
    return [new X509Certificate(data)]
  } catch {
    return []
  }
}

function wholeKey({ selector, data }: TlsaRecord): KeyObject[] {
  if (selector !== 1) return []
  try {
    return [createPublicKey({ key: data, format: 'der', type: 'spki' })].filter(isQuick)
  } catch {
    return []
  }
}

function withKey(one: X509Certificate): { one: X509Certificate; key: KeyObject }[] {
  try {
    return [{ one, key: one.publicKey }].filter(({ key }) => isQuick(key))
  } catch {
    return []
  }
}

/** Whether a signature is verified in about a millisecond: a hostile domain chooses its keys. Authorities of mail servers have no DSA keys. */
const isQuick = (key: KeyObject) =>
  key.asymmetricKeyType !== 'dsa' && (key.asymmetricKeyDetails?.modulusLength ?? 0) <= maxModulusBits && hasUsualExponent(key)
