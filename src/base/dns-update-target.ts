/** The setting POSTRIDER_DNS_UPDATE: a DNS server that takes updates (RFC 2136), or a program that changes DNS. */

export type TsigAlgorithm = 'hmac-sha256' | 'hmac-sha512'

export type DnsUpdateTarget =
  | {
      kind: 'rfc2136'
      host: string
      port: number
      /** Lower case, without a final dot. */
      zone: string
      key: { name: string; algorithm: TsigAlgorithm; secret: Buffer }
    }
  | { kind: 'exec'; program: string }

const expected = 'expected rfc2136://KEYNAME:SECRET@HOST[:PORT]/ZONE[?algorithm=hmac-sha512] or exec:/path/to/program'
const rfc2136 = /^rfc2136:\/\/([^:@/]+):([^@]+)@(\[[0-9a-f:.]+\]|[^:/@[\]]+)(?::(\d{1,5}))?\/([^/?#]+)(?:\?algorithm=([a-z0-9-]+))?$/i
const nameForm = /^(?=.{1,253}$)[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*$/
const minSecretOctets = 16
const maxSecretOctets = 512
const dnsPort = 53

const plain = (name: string) => name.toLowerCase().replace(/\.$/, '')

/** Throws an Error with the expected form, which repeats no part of a secret. */
export function parseDnsUpdate(value: string): DnsUpdateTarget {
  if (value.startsWith('exec:')) {
    const program = value.slice('exec:'.length)
    if (!program.startsWith('/')) throw new Error(expected)
    return { kind: 'exec', program }
  }
  const [, keyName, secretText, host, port, zone, algorithm = 'hmac-sha256'] = rfc2136.exec(value) ?? []
  if (keyName === undefined || secretText === undefined || host === undefined || zone === undefined) throw new Error(expected)
  if (!nameForm.test(plain(keyName)) || !nameForm.test(plain(zone)))
    throw new Error(`the key name or the zone is not a DNS name; ${expected}`)
  if (algorithm !== 'hmac-sha256' && algorithm !== 'hmac-sha512') throw new Error('the algorithm is not hmac-sha256 or hmac-sha512')
  if (port !== undefined && (Number(port) < 1 || Number(port) > 65_535)) throw new Error(`"${port}" is not a port`)
  return {
    kind: 'rfc2136',
    host: host.replace(/^\[|\]$/g, ''),
    port: port === undefined ? dnsPort : Number(port),
    zone: plain(zone),
    key: { name: plain(keyName), algorithm, secret: secretOf(secretText) },
  }
}

/** In base64, of which `+`, `/` and `=` may be percent-encoded. */
function secretOf(text: string): Buffer {
  const base64 = text.replace(/%(2b|2f|3d)/gi, (code) => decodeURIComponent(code))
  const secret = Buffer.from(base64, 'base64')
  const isBase64 = /^[A-Za-z0-9+/]+={0,2}$/.test(base64)
  if (!isBase64 || secret.length < minSecretOctets || secret.length > maxSecretOctets)
    throw new Error(`the secret of the key is not base64 of at least ${minSecretOctets} octets`)
  return secret
}
