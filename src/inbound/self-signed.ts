/**
 * Creates a self-signed certificate (RFC 5280) with a P-256 key, because node:crypto cannot. Sufficient for opportunistic TLS between mail
 * servers, and for clients configured to trust it. Encodes DER by hand, with fixed field types.
 */
import { generateKeyPairSync, sign } from 'node:crypto'

const tag = {
  boolean: 0x01,
  integer: 0x02,
  bits: 0x03,
  octets: 0x04,
  oid: 0x06,
  utf8: 0x0c,
  utcTime: 0x17,
  time: 0x18,
  sequence: 0x30,
  set: 0x31,
}
const context = (number: number) => 0xa0 + number
const dnsName = 0x82

function der(kind: number, ...contents: readonly Buffer[]): Buffer {
  const content = Buffer.concat(contents)
  const size = content.length
  const length = size < 0x80 ? [size] : size < 0x100 ? [0x81, size] : [0x82, size >> 8, size & 0xff]
  return Buffer.concat([Buffer.from([kind, ...length]), content])
}

const oid = (hex: string) => der(tag.oid, Buffer.from(hex, 'hex'))
const ecdsaWithSha256 = der(tag.sequence, oid('2a8648ce3d040302'))
const commonName = oid('550403')
const subjectAltName = oid('551d11')
const basicConstraints = oid('551d13')
const extendedKeyUsage = oid('551d25')
const serverAuth = oid('2b06010505070301')

const maxCommonNameLength = 64
const dayMs = 86_400_000
const lifeDays = 3650

/** RFC 5280 section 4.1.2.5: a two-digit year before 2050, four digits from then on. */
function time(atMs: number): Buffer {
  const digits = new Date(atMs).toISOString().replace(/[-:T]|\.\d+/g, '')
  return digits < '2050' ? der(tag.utcTime, Buffer.from(digits.slice(2))) : der(tag.time, Buffer.from(digits))
}

/** Returns PEM texts of a new key and its certificate for `hostname`, valid for ten years from a day ago. `serial`: 16 random octets. */
export function makeSelfSigned(hostname: string, facts: { nowMs: number; serial: Buffer }): { cert: string; key: string } {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const text = hostname.length <= maxCommonNameLength ? hostname : 'Postrider'
  const name = der(tag.sequence, der(tag.set, der(tag.sequence, commonName, der(tag.utf8, Buffer.from(text)))))
  const extension = (id: Buffer, value: Buffer) => der(tag.sequence, id, der(tag.octets, value))
  // A leading octet of 1 to 127 keeps the number positive and its length fixed.
  const serial = Buffer.concat([Buffer.from([1]), facts.serial])
  const certificate = der(
    tag.sequence,
    der(context(0), der(tag.integer, Buffer.from([2]))),
    der(tag.integer, serial),
    ecdsaWithSha256,
    name,
    der(tag.sequence, time(facts.nowMs - dayMs), time(facts.nowMs + lifeDays * dayMs)),
    name,
    publicKey.export({ type: 'spki', format: 'der' }),
    der(
      context(3),
      der(
        tag.sequence,
        extension(subjectAltName, der(tag.sequence, der(dnsName, Buffer.from(hostname)))),
        extension(basicConstraints, der(tag.sequence)),
        extension(extendedKeyUsage, der(tag.sequence, serverAuth)),
      ),
    ),
  )
  const signature = der(tag.bits, Buffer.from([0]), sign('sha256', certificate, privateKey))
  const whole = der(tag.sequence, certificate, ecdsaWithSha256, signature)
  const lines = whole.toString('base64').replace(/.{1,64}/g, '$&\n')
  return {
    cert: `-----BEGIN CERTIFICATE-----\n${lines}-----END CERTIFICATE-----\n`,
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }) as string,
  }
}
