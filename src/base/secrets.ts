/**
 * Sealing what must not be readable in the database: AES-256-GCM under a key derived from POSTRIDER_SECRET, with the row's name as
 * associated data, so that two rows' ciphertexts cannot be swapped. One key for each purpose. After a rotation the secrets before are
 * known too: they open what they have sealed and tell what they have signed, and the current one alone seals and signs.
 */
import { createCipheriv, createDecipheriv, createHash, createHmac, createSecretKey, hkdfSync, type KeyObject } from 'node:crypto'
import type { Random } from './ids.ts'

export interface Sealer {
  /** Encrypts `plain`; `name` says which row it belongs to and must be the same when opening. */
  seal(name: string, plain: Uint8Array): Buffer
  /** Throws when `sealed` was changed, belongs to another name, or was made with a secret that is not known. */
  open(name: string, sealed: Uint8Array): Buffer
}

export interface Secrets extends Sealer {
  /** Seals under a key of its own. Nonces are random: what is sealed by the billion needs a new purpose now and then. */
  sealer(purpose: string): Sealer
  /** HMAC-SHA-256 under a key used for `purpose` only. */
  mac(purpose: string, data: string): Buffer
  /** All that `mac` may have made of it: under the current secret, and under those before it. */
  macs(purpose: string, data: string): Buffer[]
  /** Tells two secrets apart without revealing them; kept in the database. Of the current one. */
  readonly fingerprint: string
  /** What begins all that the current secret has sealed. */
  readonly mark: Buffer
  /** The current one and those before. */
  readonly known: readonly string[]
  /** The secret of a fingerprint, if it is known. */
  textOf(fingerprint: string): string | undefined
  /** From now on `current` seals and signs, and `before` are known besides. */
  use(current: string, before: readonly string[]): void
}

/** The format with no mark of its secret: written before secrets could be rotated. */
const unmarked = 1
const marked = 2
const markOctets = 4
const nonceOctets = 12
const tagOctets = 16

interface Key {
  secret: string
  fingerprint: string
  mark: Buffer
  of(purpose: string): KeyObject
}

function openKey(secret: string): Key {
  const derive = (purpose: string) => Buffer.from(hkdfSync('sha256', secret, 'postrider', purpose, 32))
  const print = createHash('sha256').update(derive('fingerprint')).digest()
  const keys = new Map<string, KeyObject>()
  return {
    secret,
    fingerprint: print.toString('hex').slice(0, 16),
    mark: Buffer.concat([Buffer.of(marked), print.subarray(0, markOctets)]),
    of(purpose) {
      // As octets it would be read anew for every cipher, which takes longer than sealing.
      const key = keys.get(purpose) ?? createSecretKey(derive(purpose))
      // Purposes of one day would grow for ever.
      if (keys.size < mostKept) keys.set(purpose, key)
      return key
    },
  }
}

const mostKept = 100

export const fingerprintOf = (secret: string): string => openKey(secret).fingerprint

export function openSecrets(secret: string, random: Random): Secrets {
  let current = openKey(secret)
  let known: readonly Key[] = [current]
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
  const sealerFor = (purpose: string): Sealer => ({
    seal(name, plain) {
      const nonce = nextNonce()
      const cipher = createCipheriv('aes-256-gcm', current.of(purpose), nonce).setAAD(Buffer.from(name))
      return Buffer.concat([current.mark, nonce, cipher.update(plain), cipher.final(), cipher.getAuthTag()])
    },
    open(name, sealed) {
      if (sealed[0] !== unmarked && sealed[0] !== marked) throw new Error(`the sealed value of ${name} has the unknown format ${sealed[0]}`)
      const from = sealed[0] === marked ? 1 + markOctets : 1
      const fitting = from === 1 ? known : known.filter(({ mark }) => mark.equals(sealed.subarray(0, from)))
      let wrong: unknown = new Error(`the sealed value of ${name} was made with a secret that is not known here`)
      for (const key of fitting) {
        const decipher = createDecipheriv('aes-256-gcm', key.of(purpose), sealed.subarray(from, from + nonceOctets))
        try {
          decipher.setAAD(Buffer.from(name)).setAuthTag(sealed.subarray(sealed.length - tagOctets))
          return Buffer.concat([decipher.update(sealed.subarray(from + nonceOctets, sealed.length - tagOctets)), decipher.final()])
        } catch (error) {
          wrong = error
        }
      }
      throw wrong
    },
  })
  const macUnder = (key: Key, purpose: string, data: string) =>
    createHmac('sha256', key.of(`mac ${purpose}`))
      .update(data)
      .digest()
  return {
    ...sealerFor('seal'),
    sealer: (purpose) => sealerFor(`seal ${purpose}`),
    mac: (purpose, data) => macUnder(current, purpose, data),
    macs: (purpose, data) => known.map((key) => macUnder(key, purpose, data)),
    get fingerprint() {
      return current.fingerprint
    },
    get mark() {
      return current.mark
    },
    get known() {
      return known.map((key) => key.secret)
    },
    textOf: (fingerprint) => known.find((key) => key.fingerprint === fingerprint)?.secret,
    use(now, before) {
      const keyOf = (one: string) => known.find((key) => key.secret === one) ?? openKey(one)
      current = keyOf(now)
      known = [...new Set([now, ...before])].map((one) => (one === now ? current : keyOf(one)))
    },
  }
}
