/**
 * DKIM keys: creates and parses them, and writes the DNS text that publishes them (RFC 6376 section 3.6.1, RFC 8463).
 */
import { createPrivateKey, createPublicKey, generateKeyPair, generateKeyPairSync, type KeyObject } from 'node:crypto'
import { promisify } from 'node:util'

export interface KeyPair {
  /** PKCS#8 PEM. */
  privateKey: string
  /** The `p=` value. */
  publicKey: string
}

const rsaBits = 2048
/** The SPKI prefix of a 32-octet Ed25519 key; DNS carries the key alone. */
const spkiOctets = 12

/** Creates an RSA-2048 key; off the event loop, because it is slow. */
export async function makeRsaKey(): Promise<KeyPair> {
  const { publicKey, privateKey } = await promisify(generateKeyPair)('rsa', { modulusLength: rsaBits })
  return { privateKey: pem(privateKey), publicKey: publicKey.export({ type: 'spki', format: 'der' }).toString('base64') }
}

export function makeEd25519Key(): KeyPair {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519')
  return {
    privateKey: pem(privateKey),
    publicKey: publicKey.export({ type: 'spki', format: 'der' }).subarray(spkiOctets).toString('base64'),
  }
}

const maxPemLength = 16_384
const minOwnBits = 1024
const maxOwnBits = 4096

/**
 * The pair of an RSA private key in PEM (PKCS#1 or PKCS#8) that another program made; `bits` is the length of its modulus. Undefined for
 * other text, and for a length that receivers do not verify (RFC 8301 section 3.2: 1024 to 4096 bits).
 */
export function readRsaKey(text: string): (KeyPair & { bits: number }) | undefined {
  if (text.length > maxPemLength) return undefined
  try {
    const key = createPrivateKey(text)
    const bits = key.asymmetricKeyDetails?.modulusLength ?? 0
    if (key.asymmetricKeyType !== 'rsa' || bits < minOwnBits || bits > maxOwnBits) return undefined
    const publicKey = createPublicKey(key).export({ type: 'spki', format: 'der' }).toString('base64')
    return { privateKey: pem(key), publicKey, bits }
  } catch {
    return undefined
  }
}

/** The length of the modulus in bits of an RSA `p=` value; 0 for another text. */
export function rsaBitsOf(publicKey: string): number {
  try {
    const key = createPublicKey({ key: Buffer.from(publicKey, 'base64'), format: 'der', type: 'spki' })
    return key.asymmetricKeyType === 'rsa' ? (key.asymmetricKeyDetails?.modulusLength ?? 0) : 0
  } catch {
    return 0
  }
}

const pem = (key: KeyObject) => key.export({ type: 'pkcs8', format: 'pem' }).toString()

/** The TXT record at `<selector>._domainkey.<domain>`. */
export const dnsText = (algorithm: 'rsa' | 'ed25519', publicKey: string): string => `v=DKIM1; k=${algorithm}; p=${publicKey}`

export interface SigningKey {
  domain: string
  selector: string
  algorithm: 'rsa' | 'ed25519'
  /** Parsed once and kept: parsing the PEM costs more than the signature. */
  privateKey: KeyObject
}
