/**
 * The TLS policy that a recipient domain publishes, and the result of a session by it, in the words of TLS reports (RFC 8460 section 4.3).
 * Pure. The operator's own requirement changes no result.
 */
import type { TlsaRecord } from '#net'
import type { Failure, TlsFacts } from '#smtp'
import type { StsInForce } from './mta-sts-cache.ts'

export type TlsSessionResult =
  | 'starttls-not-supported'
  | 'certificate-host-mismatch'
  | 'certificate-expired'
  | 'certificate-not-trusted'
  | 'validation-failure'
  | 'tlsa-invalid'
  | 'dnssec-invalid'
  | 'sts-policy-fetch-error'
  | 'sts-policy-invalid'
  | 'sts-webpki-invalid'

export interface SessionFailure {
  result: TlsSessionResult
  /** In words. */
  reason: string
}

export interface PublishedTls {
  /** The recipient domain, in A-labels. */
  domain: string
  /** `no-policy-found`: the domain announces a policy that could not be fetched. */
  type: 'sts' | 'tlsa' | 'no-policy-found'
  sts?: StsInForce | undefined
  tlsa?: readonly TlsaRecord[] | undefined
  /** The fault of the policy itself, which every session with the host has. */
  fault?: SessionFailure | undefined
}

/** The session: an open connection, or the failure to open one. */
export type CountedSession =
  | { isOpen: true; tls: TlsFacts | null /** Of a handshake before the connection went on without TLS. */; weakened?: Failure | undefined }
  | { isOpen: false; failure: Pick<Failure, 'kind' | 'message' | 'tls' | 'isWithoutTls'> }

const maxRecords = 20
const maxPatterns = 100
const maxLineLength = 1000

/** The lines of the policy, as reports quote it: those of an MTA-STS policy, or TLSA records. */
export function policyLines({ sts, tlsa }: PublishedTls): string[] {
  if (sts)
    return [
      'version: STSv1',
      `mode: ${sts.mode}`,
      ...sts.mx.slice(0, maxPatterns).map((pattern) => `mx: ${pattern}`),
      `max_age: ${sts.maxAgeSeconds}`,
    ]
  return (tlsa ?? [])
    .map(({ usage, selector, matchingType, data }) =>
      `${usage} ${selector} ${matchingType} ${data.toString('hex')}`.slice(0, maxLineLength),
    )
    .sort()
    .slice(0, maxRecords)
}

/** `success`, or the failure; undefined: the session ended before TLS was of importance, and is not counted. */
export function sessionResult({ type, fault }: PublishedTls, session: CountedSession): SessionFailure | 'success' | undefined {
  if (!session.isOpen && session.failure.kind !== 'tls') return undefined
  if (fault) return fault
  if (!session.isOpen) return failureOf(session.failure)
  if (!session.tls) return session.weakened ? failureOf(session.weakened) : withoutTls
  const { version, certificate } = session.tls
  // RFC 8461 section 4.2 and RFC 7672 section 1.1: TLS 1.2 or later.
  if (/^TLSv1(?:\.1)?$/.test(version)) return { result: 'validation-failure', reason: `only ${version}` }
  return certificate === (type === 'tlsa' ? 'matches a TLSA record' : 'valid') ? 'success' : ofCertificate(certificate)
}

const withoutTls: SessionFailure = { result: 'starttls-not-supported', reason: 'STARTTLS is not offered' }

function failureOf({ tls, isWithoutTls, message }: Pick<Failure, 'tls' | 'isWithoutTls' | 'message'>): SessionFailure {
  if (tls) return ofCertificate(tls.certificate)
  return { result: isWithoutTls ? 'starttls-not-supported' : 'validation-failure', reason: message }
}

/** The verdicts of an attempt (`tls.certificate` in the API). */
function ofCertificate(verdict: string): SessionFailure {
  if (verdict.startsWith('expired')) return { result: 'certificate-expired', reason: verdict }
  const isOtherName = verdict === 'for another name' || (verdict.startsWith('not for ') && verdict !== 'not for servers')
  return { result: isOtherName ? 'certificate-host-mismatch' : 'certificate-not-trusted', reason: verdict }
}
