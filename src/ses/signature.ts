/**
 * AWS Signature Version 4 in the Authorization header: reads it, and compares it with that of a secret. The signature covers method, path,
 * query, the signed headers and the body's hash. Takes time in proportion to the headers, which the server limits to 16 KiB.
 */
import { createHash, createHmac, timingSafeEqual } from 'node:crypto'
import { SesRefusal } from './errors.ts'

export interface SignedRequest {
  method: string
  /** Path and query as the client sent them. */
  url: string
  headers: CanonicalHeaders
  /** The names of the server that the client may have signed: more than one behind a proxy. */
  hosts: readonly string[]
}

/** Values in the canonical form by name in lower case; those of repeated headers are joined. */
export type CanonicalHeaders = ReadonlyMap<string, string>

interface Signature {
  accessKeyId: string
  /** YYYYMMDD. */
  date: string
  region: string
  /** Lower case, in order. */
  signedHeaders: readonly string[]
  signature: Buffer
  /** YYYYMMDDTHHMMSSZ. */
  time: string
  /** The announced SHA-256 of the body in lower-case hexadecimal digits; undefined: the signature covers that of the body itself. */
  bodyHash: string | undefined
}

const algorithm = 'AWS4-HMAC-SHA256'
const service = 'ses'
const terminator = 'aws4_request'

/** The difference between the client's clock and this one. */
const maxSkewMs = 300_000
const maxSignedHeaders = 100
const maxShown = 100

const incomplete = (message: string) => new SesRefusal('incompleteSignature', message)
const wrong = (message: string) => new SesRefusal('wrongSignature', message)

const signatureDoesNotMatch =
  'The request signature we calculated does not match the signature you provided. Check your AWS Secret Access Key and signing method. ' +
  'Consult the service documentation for details.'
export const noMatch = (): SesRefusal => wrong(signatureDoesNotMatch)
export const unknownAccessKey = (): SesRefusal => new SesRefusal('unknownKey', 'The security token included in the request is invalid.')

/** `rawHeaders`: names and values in turn, as Node has them. */
export function canonicalHeaders(rawHeaders: readonly string[]): CanonicalHeaders {
  const values = new Map<string, string[]>()
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const name = (rawHeaders[at] ?? '').toLowerCase()
    const value = (rawHeaders[at + 1] ?? '').trim().replace(/\s+/g, ' ')
    const known = values.get(name)
    if (known) known.push(value)
    else values.set(name, [value])
  }
  return new Map([...values].map(([name, list]) => [name, list.join(',')]))
}

/** `Credential=…, SignedHeaders=…, Signature=…` in any order. */
function partsOf(header: string): Map<string, string> {
  const parts = new Map<string, string>()
  for (const part of header.slice(algorithm.length).split(',')) {
    const equals = part.indexOf('=')
    if (equals === -1)
      throw incomplete(`'${part.trim().slice(0, maxShown)}' not a valid key=value pair (missing equal-sign) in Authorization header`)
    parts.set(part.slice(0, equals).trim(), part.slice(equals + 1).trim())
  }
  return parts
}

/** Reads the header and checks all that needs no secret. Throws a `SesRefusal`. */
export function readSignature({ headers, url }: Pick<SignedRequest, 'headers' | 'url'>, nowMs: number): Signature {
  const header = headers.get('authorization')
  if (header === undefined || header === '') {
    if (isPresigned(url)) throw incomplete('a signature in the query is not served: sign the Authorization header')
    throw new SesRefusal('noSignature', 'Missing Authentication Token')
  }
  if (!/^AWS4-HMAC-SHA256\s/.test(header)) throw incomplete(`Unsupported AWS 'algorithm': only ${algorithm} is served`)
  const parts = partsOf(header)
  const [credential, signed, given] = ['Credential', 'SignedHeaders', 'Signature'].map((name) => {
    const value = parts.get(name)
    if (!value) throw incomplete(`Authorization header requires '${name}' parameter.`)
    return value
  }) as [string, string, string]
  if (!/^[0-9a-f]{64}$/.test(given)) throw noMatch()
  if (headers.has('x-amz-security-token'))
    throw new SesRefusal('unknownKey', 'The security token included in the request is invalid: a session token is not served')
  const time = timeOf(headers)
  return {
    ...scopeOf(credential, time),
    signedHeaders: signedHeadersOf(signed, headers),
    signature: Buffer.from(given, 'hex'),
    time: checkedTime(time, nowMs),
    bodyHash: bodyHashOf(headers),
  }
}

export const isPresigned = (url: string): boolean => /[?&]x-amz-(?:algorithm|signature|credential)=/i.test(url)

function scopeOf(credential: string, time: string): Pick<Signature, 'accessKeyId' | 'date' | 'region'> {
  const [accessKeyId = '', date = '', region = '', named, end, ...more] = credential.split('/')
  if (end === undefined || more.length > 0 || accessKeyId === '')
    throw incomplete(
      `Credential must have exactly 5 slash-delimited elements, e.g. keyid/date/region/service/term, got '${credential.slice(0, maxShown)}'`,
    )
  if (named !== service) throw wrong(`Credential should be scoped to correct service: '${service}'.`)
  if (end !== terminator)
    throw wrong(`Credential should be scoped with a valid terminator: '${terminator}', not '${end.slice(0, maxShown)}'.`)
  if (date !== time.slice(0, 8)) throw wrong(`Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date from HTTP`)
  return { accessKeyId, date, region }
}

function signedHeadersOf(list: string, headers: CanonicalHeaders): string[] {
  const names = list.split(';')
  if (names.length > maxSignedHeaders) throw incomplete(`more than ${maxSignedHeaders} headers are signed`)
  const signed = new Set(names)
  const needed = ['host', ...[...headers.keys()].filter((name) => name.startsWith('x-amz-'))]
  const unsigned = needed.find((name) => !signed.has(name))
  if (unsigned !== undefined) throw wrong(`'${unsigned.slice(0, maxShown)}' must be a 'SignedHeader' in the AWS Authorization.`)
  return names
}

/** From X-Amz-Date, or else from Date. */
function timeOf(headers: CanonicalHeaders): string {
  const given = headers.get('x-amz-date') ?? headers.get('date')
  if (given === undefined) throw incomplete("Authorization header requires existence of either a 'X-Amz-Date' or a 'Date' header.")
  if (/^\d{8}T\d{6}Z$/.test(given)) return given
  const ms = given.length <= maxShown ? Date.parse(given) : Number.NaN
  if (Number.isNaN(ms)) throw incomplete("Date must be in ISO-8601 'basic format', such as 20261231T235959Z")
  return basicTime(ms)
}

const basicTime = (ms: number) => new Date(ms).toISOString().replace(/[-:]|\.\d{3}/g, '')
const msOf = (time: string) => Date.parse(time.replace(/^(\d{4})(\d{2})(\d{2})T(\d{2})(\d{2})(\d{2})Z$/, '$1-$2-$3T$4:$5:$6Z'))

/** SDKs set their clock by the answer's Date header and repeat the request. */
function checkedTime(time: string, nowMs: number): string {
  const ms = msOf(time)
  if (Number.isNaN(ms)) throw incomplete("Date must be in ISO-8601 'basic format', such as 20261231T235959Z")
  const [earliest, latest] = [nowMs - maxSkewMs, nowMs + maxSkewMs]
  if (ms < earliest) throw wrong(`Signature expired: ${time} is now earlier than ${basicTime(earliest)} (${basicTime(nowMs)} - 5 min.)`)
  if (ms > latest) throw wrong(`Signature not yet current: ${time} is still later than ${basicTime(latest)} (${basicTime(nowMs)} + 5 min.)`)
  return time
}

function bodyHashOf(headers: CanonicalHeaders): string | undefined {
  const given = headers.get('x-amz-content-sha256')
  if (given === undefined) return undefined
  if (/^[0-9a-f]{64}$/.test(given)) return given
  throw wrong(`x-amz-content-sha256 must be the SHA-256 of the body: '${given.slice(0, maxShown)}' is not served`)
}

/** Whether the request is signed with this secret. `bodyHash`: SHA-256 in hexadecimal digits. */
export function isSignedWith(
  secret: string,
  { date, region, signedHeaders, signature, time }: Signature,
  request: SignedRequest,
  bodyHash: string,
): boolean {
  const key = [date, region, service, terminator].reduce((signing, part) => hmac(signing, part), Buffer.from(`AWS4${secret}`))
  const [path, query] = cut(request.url)
  const line = [request.method, canonicalPath(path), canonicalQuery(query)].join('\n')
  const after = `${signedHeaders.join(';')}\n${bodyHash}`
  // Node's header values have one character for each octet on the wire.
  return request.hosts.some((host) => {
    const headers = signedHeaders.map((name) => `${name}:${name === 'host' ? host : (request.headers.get(name) ?? '')}\n`).join('')
    const hash = createHash('sha256').update(`${line}\n${headers}\n${after}`, 'latin1').digest('hex')
    const expected = hmac(key, [algorithm, time, `${date}/${region}/${service}/${terminator}`, hash].join('\n'))
    return timingSafeEqual(expected, signature)
  })
}

const hmac = (key: Buffer, text: string) => createHmac('sha256', key).update(text).digest()

function cut(url: string): [path: string, query: string] {
  const at = url.indexOf('?')
  return at === -1 ? [url, ''] : [url.slice(0, at), url.slice(at + 1)]
}

/** RFC 3986 section 2.3: every octet but the unreserved characters. */
const encoded = (text: string) =>
  encodeURIComponent(text.toWellFormed()).replace(/[!'()*]/g, (one) => `%${one.charCodeAt(0).toString(16).toUpperCase()}`)

/** Without empty segments and dots, and each segment encoded again, as all services but S3 have it. */
function canonicalPath(path: string): string {
  const kept: string[] = []
  for (const segment of path.split('/')) {
    if (segment === '..') kept.pop()
    else if (segment !== '' && segment !== '.') kept.push(encoded(segment))
  }
  return `/${kept.join('/')}${kept.length > 0 && path.endsWith('/') ? '/' : ''}`
}

function decodedOnce(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

const byCode = (one: string, other: string) => (one < other ? -1 : one > other ? 1 : 0)

function canonicalQuery(query: string): string {
  const pairs = query.split('&').flatMap((pair): [string, string][] => {
    if (pair === '') return []
    const equals = pair.indexOf('=')
    const [name, value] = equals === -1 ? [pair, ''] : [pair.slice(0, equals), pair.slice(equals + 1)]
    return [[encoded(decodedOnce(name)), encoded(decodedOnce(value))]]
  })
  return pairs
    .sort((one, other) => byCode(one[0], other[0]) || byCode(one[1], other[1]))
    .map(([name, value]) => `${name}=${value}`)
    .join('&')
}
