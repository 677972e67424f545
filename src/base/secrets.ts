/**
 * Sealing what must not be readable in the database: AES-256-GCM under a key derived from POSTRIDER_SECRET, with the row's name as
 * associated data, so that two rows' ciphertexts cannot be swapped. One key for each purpose.
 */
import { createCipheriv, createDecipheriv, createHash, createHmac, createSecretKey, hkdfSync, type KeyObject } from 'node:crypto'
import type { Random } from './ids.ts'

export interface Sealer {
  /** Encrypts `plain`; `name` says which row it belongs to and must be the same when opening. */
  seal(name: string, plain: Uint8Array): Buffer
  /** Throws when `sealed` was changed, belongs to another name, or was made with another secret. */
  open(name: string, sealed: Uint8Array): Buffer
}

export interface Secrets extends Sealer {
  /** Seals under a key of its own. Nonces are random: what is sealed by the billion needs a new purpose now and then. */
  sealer(purpose: string): Sealer
  /** HMAC-SHA-256 under a key used for `purpose` only. */
  mac(purpose: string, data: string): Buffer
  /** Tells two secrets apart without revealing them; kept in the database. */
  fingerprint: string
}

const formatVersion = 1
const nonceOctets = 12
const tagOctets = 16
const version = Buffer.of(formatVersion)

export function openSecrets(secret: string, random: Random): Secrets {
  const derive = (purpose: string) => Buffer.from(hkdfSync('sha256', secret, 'postrider', purpose, 32))
  const nonces = new Uint8Array(nonceOctets * 256)
  let used = nonces.length
  const nextNonce = () => {
    if (used === nonces.length) {
      random(nonces)
      used = 0
    }
    used += nonceOctets
    return nonces.slice(used - nonceOctets, used)
  }
  const sealerFor = (purpose: string): Sealer => {
    // As octets it would be read anew for every cipher, which takes longer than sealing.
    const key = createSecretKey(derive(purpose))
    return {
      seal(name, plain) {
        const nonce = nextNonce()
        const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(name))
        return Buffer.concat([version, nonce, cipher.update(plain), cipher.final(), cipher.getAuthTag()])
      },
      open(name, sealed) {
        if (sealed[0] !== formatVersion) throw new Error(`the sealed value of ${name} has the unknown format ${sealed[0]}`)
        const decipher = createDecipheriv('aes-256-gcm', key, sealed.subarray(1, 1 + nonceOctets))
        decipher.setAAD(Buffer.from(name)).setAuthTag(sealed.subarray(sealed.length - tagOctets))
        return Buffer.concat([decipher.update(sealed.subarray(1 + nonceOctets, sealed.length - tagOctets)), decipher.final()])
      },
    }
  }
  const macKeys = new Map<string, KeyObject>()
  return {
    ...sealerFor('seal'),
    sealer: (purpose) => sealerFor(`seal ${purpose}`),
    mac(purpose, data) {
      let key = macKeys.get(purpose)
      if (!key) {
        key = createSecretKey(derive(`mac ${purpose}`))
        macKeys.set(purpose, key)
      }
      return createHmac('sha256', key).update(data).digest()
    },
    fingerprint: createHash('sha256').update(derive('fingerprint')).digest('hex').slice(0, 16),
  }
}
