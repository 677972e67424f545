/**
 * Seals values that must not be readable in the database: AES-256-GCM under a key derived from POSTRIDER_SECRET, one key per purpose. The
 * row's name is associated data, so that ciphertexts of two rows cannot be swapped. After a rotation the older secrets still open and
 * verify; only the current one seals and signs.
 */
import { createCipheriv, createDecipheriv, createHash, createHmac, createSecretKey, hkdfSync, type KeyObject } from 'node:crypto'
import type { Random } from './ids.ts'

export interface Sealer {
  /** Encrypts `plain`; `name` identifies the row and must be the same when opening. */
  seal(name: string, plain: Uint8Array): Buffer
  /** Throws if `sealed` was changed, belongs to another name, or was made with an unknown secret. */
  open(name: string, sealed: Uint8Array): Buffer
}

export interface Secrets extends Sealer {
  /** Seals under a key of its own. Nonces are random, so billions of values need a new purpose from time to time. */
  sealer(purpose: string): Sealer
  /** HMAC-SHA-256 under a key used for `purpose` only. */
  mac(purpose: string, data: string): Buffer
  /** The possible results of `mac`: under the current secret, and under each older one. */
  macs(purpose: string, data: string): Buffer[]
  /** Identifies the current secret without revealing it; stored in the database. */
  readonly fingerprint: string
  /** The prefix of everything sealed with the current secret. */
  readonly mark: Buffer
  /** The current secret and the older ones. */
  readonly known: readonly string[]
  /** The secret of a fingerprint, if known. */
  textOf(fingerprint: string): string | undefined
  /** From now on `current` seals and signs; `before` can still open and verify. */
  use(current: string, before: readonly string[]): void
}

/** The format without a mark of its secret, written before secrets could be rotated. */
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
      // A key object: raw bytes would be imported again for every cipher, which takes longer than sealing.
      const key = keys.get(purpose) ?? createSecretKey(derive(purpose))
      // Bounded, because purposes with a date accumulate without limit.
      if (keys.size < maxKept) keys.set(purpose, key)
      return key
    },
  }
}

const maxKept = 100

export const fingerprintOf = (secret: string): string => openKey(secret).fingerprint

export const openSecrets = (secret: string, random: Random): Secrets => new SecretRing(secret, random)

class SecretRing implements Secrets {
  #current: Key
  /** The current key and the older ones. */
  #known: readonly Key[]
  readonly #nextNonce: () => Uint8Array

  constructor(secret: string, random: Random) {
    this.#current = openKey(secret)
    this.#known = [this.#current]
    this.#nextNonce = openNonces(random)
  }

  seal(name: string, plain: Uint8Array): Buffer {
    return this.#sealFor('seal', name, plain)
  }

  open(name: string, sealed: Uint8Array): Buffer {
    return openSealed(this.#known, 'seal', name, sealed)
  }

  sealer(purpose: string): Sealer {
    const full = `seal ${purpose}`
    return {
      seal: (name, plain) => this.#sealFor(full, name, plain),
      open: (name, sealed) => openSealed(this.#known, full, name, sealed),
    }
  }

  mac(purpose: string, data: string): Buffer {
    return macUnder(this.#current, purpose, data)
  }

  macs(purpose: string, data: string): Buffer[] {
    return this.#known.map((key) => macUnder(key, purpose, data))
  }

  get fingerprint(): string {
    return this.#current.fingerprint
  }

  get mark(): Buffer {
    return this.#current.mark
  }

  get known(): string[] {
    return this.#known.map((key) => key.secret)
  }

  textOf(fingerprint: string): string | undefined {
    return this.#known.find((key) => key.fingerprint === fingerprint)?.secret
  }

  use(current: string, before: readonly string[]): void {
    const keyOf = (secret: string) => this.#known.find((key) => key.secret === secret) ?? openKey(secret)
    const key = keyOf(current)
    this.#known = [...new Set([current, ...before])].map((secret) => (secret === current ? key : keyOf(secret)))
    this.#current = key
  }

  #sealFor(purpose: string, name: string, plain: Uint8Array): Buffer {
    const nonce = this.#nextNonce()
    const cipher = createCipheriv('aes-256-gcm', this.#current.of(purpose), nonce).setAAD(Buffer.from(name))
    return Buffer.concat([this.#current.mark, nonce, cipher.update(plain), cipher.final(), cipher.getAuthTag()])
  }
}

/** Random nonces, drawn 256 at a time. */
function openNonces(random: Random): () => Uint8Array {
  const nonces = new Uint8Array(nonceOctets * 256)
  let used = nonces.length
  return () => {
    if (used === nonces.length) {
      random(nonces)
      used = 0
    }
    used += nonceOctets
    return nonces.slice(used - nonceOctets, used)
  }
}

/** Opens `sealed` with the keys that its mark fits; without a mark, with each of them in order. */
function openSealed(known: readonly Key[], purpose: string, name: string, sealed: Uint8Array): Buffer {
  if (sealed[0] !== unmarked && sealed[0] !== marked) throw new Error(`the encrypted value of ${name} has the unknown format ${sealed[0]}`)
  const from = sealed[0] === marked ? 1 + markOctets : 1
  const fitting = from === 1 ? known : known.filter(({ mark }) => mark.equals(sealed.subarray(0, from)))
  let wrong: unknown = new Error(`the encrypted value of ${name} was made with another POSTRIDER_SECRET`)
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
}

const macUnder = (key: Key, purpose: string, data: string) =>
  createHmac('sha256', key.of(`mac ${purpose}`))
    .update(data)
    .digest()
