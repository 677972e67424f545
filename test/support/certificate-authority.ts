/**
 * A certificate authority for one test: certificates for any names and dates (RFC 5280). The DER is written by hand, because node:crypto
 * does not issue certificates.
 */
import { createHash, createPublicKey, generateKeyPairSync, type KeyObject, randomBytes, sign, X509Certificate } from 'node:crypto'

export interface Wanted {
  /** dNSNames; the first is also the common name of the subject. */
  names: readonly string[]
  fromMs?: number
  toMs?: number
  /** May issue other certificates. */
  isAuthority?: boolean
  /** OIDs in hex; server authentication by default. */
  purposes?: readonly string[]
  /** RSA or ECDSA; a new ECDSA key by default. */
  privateKey?: KeyObject
}

export interface Issued {
  cert: string
  key: string
  certificate: X509Certificate
  issue(wanted: Wanted): Issued
}

const dayMs = 86_400_000
const serverAuth = '2b06010505070301'
export const clientAuth = '2b06010505070302'

export const makeAuthority = (name = 'Test Authority', more: Pick<Wanted, 'privateKey'> = {}): Issued =>
  make({ names: [name], isAuthority: true, ...more }, undefined)

interface Issuer {
  name: Buffer
  key: KeyObject
}

function make(wanted: Wanted, issuer: Issuer | undefined): Issued {
  const { names, fromMs = Date.now() - dayMs, toMs = Date.now() + dayMs, isAuthority = false, purposes = [serverAuth] } = wanted
  const privateKey = wanted.privateKey ?? generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey
  const signingKey = issuer?.key ?? privateKey
  const algorithm = algorithms[signingKey.asymmetricKeyType === 'rsa' ? 'rsa' : 'ec']
  const name = der(0x30, der(0x31, der(0x30, oid('550403'), der(0x0c, Buffer.from(names[0] ?? '')))))
  const extension = (id: string, value: Buffer) => der(0x30, oid(id), der(0x04, value))
  const alternatives = der(0x30, ...names.map((one) => der(0x82, Buffer.from(one))))
  const extensions = [
    ...(isAuthority ? [] : [extension('551d11', alternatives), extension('551d25', der(0x30, ...purposes.map(oid)))]),
    extension('551d13', isAuthority ? der(0x30, der(0x01, Buffer.from([0xff]))) : der(0x30)),
  ]
  const body = der(
    0x30,
    der(0xa0, der(0x02, Buffer.from([2]))),
    der(0x02, Buffer.concat([Buffer.from([1]), randomBytes(8)])),
    algorithm,
    issuer?.name ?? name,
    der(0x30, time(fromMs), time(toMs)),
    name,
    createPublicKey(privateKey).export({ type: 'spki', format: 'der' }),
    der(0xa3, der(0x30, ...extensions)),
  )
  const whole = der(0x30, body, algorithm, der(0x03, Buffer.from([0]), sign('sha256', body, signingKey)))
  const certificate = new X509Certificate(whole)
  return {
    certificate,
    cert: certificate.toString(),
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }) as string,
    issue: (another) => make(another, { name, key: privateKey }),
  }
}

function der(kind: number, ...contents: readonly Buffer[]): Buffer {
  const content = Buffer.concat(contents)
  const size = content.length
  const length = size < 0x80 ? [size] : size < 0x100 ? [0x81, size] : [0x82, size >> 8, size & 0xff]
  return Buffer.concat([Buffer.from([kind, ...length]), content])
}

const oid = (hex: string) => der(0x06, Buffer.from(hex, 'hex'))
const algorithms = { ec: der(0x30, oid('2a8648ce3d040302')), rsa: der(0x30, oid('2a864886f70d01010b'), der(0x05)) }
const time = (atMs: number) => der(0x18, Buffer.from(new Date(atMs).toISOString().replace(/[-:T]|\.\d+/g, '')))

/** Returns the three numbers and the data of a TLSA record, as in a zone file. */
export function tlsaOf({ certificate }: Pick<Issued, 'certificate'>, usage: number, selector = 1, matchingType = 1): string {
  const chosen = selector === 0 ? certificate.raw : certificate.publicKey.export({ type: 'spki', format: 'der' })
  const data =
    matchingType === 0
      ? chosen
      : createHash(matchingType === 1 ? 'sha256' : 'sha512')
          .update(chosen)
          .digest()
  return `${usage} ${selector} ${matchingType} ${data.toString('hex')}`
}
