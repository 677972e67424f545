/**
 * Identifiers and their randomness. Email ids begin with their time, so that they sort by acceptance and a lookup reads one partition
 * (contract section 0).
 */
import { createHash, randomFillSync } from 'node:crypto'

/** Fills and returns `target`. The system's is a CSPRNG; a simulation passes a seeded one. */
export type Random = (target: Uint8Array) => Uint8Array

export const systemRandom: Random = (target) => randomFillSync(target)

/** In ASCII order, so that base62 numbers of one length sort as text (collation "C"). */
const base62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const timeDigits = 8
const randomDigits = 14 // 83 bits

export interface Ids {
  /** 22 characters of base62: 8 of time, 14 random (83 bits). */
  emailId(atMs: number): string
  /** 25 characters `[a-z0-9]`, the first a letter. */
  tenantId(): string
  /** `req_` and 20 base62 characters. */
  requestId(): string
  /** RFC 4122 version 4, lower case. */
  uuid(): string
  /**
   * Four random numbers from 1 to 2^31 - 1, of which a statement takes the first unused one. Clients read such an id as an integer,
   * possibly of 32 bits, and it does not reveal the number of rows.
   */
  numbers(): number[]
  /** `length` random characters of base62. */
  token(length: number): string
  /** `length` random characters of `[a-z0-9]`. */
  label(length: number): string
  /** Uniform in [0, 1): for jitter and for random order among equals. */
  random(): number
}

/** The first 8 characters of every email id accepted at `atMs`; used as partition bounds. For a time before 1970, those of 1970. */
export function emailIdPrefix(atMs: number): string {
  let rest = Math.max(0, Math.floor(atMs))
  let text = ''
  for (let digit = 0; digit < timeDigits; digit++) {
    text = base62[rest % 62] + text
    rest = Math.floor(rest / 62)
  }
  return text
}

/** The id of an email that another program accepted: the same for the same `name`, and as hard to guess as the name. */
export function derivedEmailId(atMs: number, name: string): string {
  const digest = createHash('sha256').update(name).digest()
  return emailIdPrefix(atMs) + Array.from(digest.subarray(0, randomDigits), (octet) => base62[octet % 62]).join('')
}

/** The acceptance time in an email id, or undefined if `id` is not one. */
export function emailIdTimeMs(id: string): number | undefined {
  if (!/^[0-9A-Za-z]{22}$/.test(id)) return undefined
  let timeMs = 0
  for (const digit of id.slice(0, timeDigits)) timeMs = timeMs * 62 + base62.indexOf(digit)
  return timeMs
}

export function openIds(random: Random): Ids {
  const pool = new Uint8Array(4096)
  let used = pool.length
  const nextByte = () => {
    if (used === pool.length) {
      random(pool)
      used = 0
    }
    return pool[used++] as number
  }
  /** Without modulo bias: discards bytes beyond the last whole multiple. */
  const draw = (alphabet: string, length: number) => {
    const limit = 256 - (256 % alphabet.length)
    let text = ''
    while (text.length < length) {
      const byte = nextByte()
      if (byte < limit) text += alphabet[byte % alphabet.length]
    }
    return text
  }
  const letters = 'abcdefghijklmnopqrstuvwxyz'
  const number = () => {
    let value = 0
    while (value === 0) value = Buffer.from([nextByte() & 0x7f, nextByte(), nextByte(), nextByte()]).readUInt32BE()
    return value
  }
  return {
    emailId: (atMs) => emailIdPrefix(atMs) + draw(base62, randomDigits),
    tenantId: () => draw(letters, 1) + draw(`${letters}0123456789`, 24),
    requestId: () => `req_${draw(base62, 20)}`,
    uuid() {
      const bytes = Buffer.from(Array.from({ length: 16 }, nextByte))
      bytes[6] = ((bytes[6] as number) & 0x0f) | 0x40
      bytes[8] = ((bytes[8] as number) & 0x3f) | 0x80
      const hex = bytes.toString('hex')
      return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
    },
    numbers: () => [number(), number(), number(), number()],
    token: (length) => draw(base62, length),
    label: (length) => draw(`${letters}0123456789`, length),
    random() {
      let value = 0
      for (let byte = 0; byte < 6; byte++) value = value * 256 + nextByte()
      return value / 2 ** 48
    },
  }
}
