/**
 * Authenticator app codes (RFC 6238 over RFC 4226): SHA-1, steps of 30 seconds, 6 digits, which every app supports. A code is accepted one
 * step early or late, for clock differences.
 */
import { createHmac, timingSafeEqual } from 'node:crypto'

const stepMs = 30_000
const digits = 6
const leeway = 1
const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'

/** RFC 4648 section 6, without padding; the form in which a secret is typed into an app. */
export function base32(octets: Uint8Array): string {
  let text = ''
  let held = 0
  let bits = 0
  for (const octet of octets) {
    held = ((held << 8) | octet) & 0xfff
    bits += 8
    for (; bits >= 5; bits -= 5) text += letters[(held >> (bits - 5)) & 31]
  }
  return bits === 0 ? text : text + letters[(held << (5 - bits)) & 31]
}

/** RFC 4226 section 5.3. */
export function codeAt(secret: Uint8Array, step: number): string {
  const counter = Buffer.alloc(8)
  counter.writeBigUInt64BE(BigInt(step))
  const mac = createHmac('sha1', secret).update(counter).digest()
  const offset = mac.readUInt8(mac.length - 1) & 15
  const number = (mac.readUInt32BE(offset) & 0x7fffffff) % 10 ** digits
  return String(number).padStart(digits, '0')
}

/** The step of `code`, later than `lastStep`; undefined if no accepted step has this code. */
export function stepOf(code: string, secret: Uint8Array, nowMs: number, lastStep: number | null): number | undefined {
  const current = Math.floor(nowMs / stepMs)
  const given = Buffer.from(code)
  for (let step = current - leeway; step <= current + leeway; step++) {
    const wanted = Buffer.from(codeAt(secret, step))
    if (given.length === wanted.length && timingSafeEqual(given, wanted) && (lastStep === null || step > lastStep)) return step
  }
  return undefined
}

/** The URI for an app's QR code. */
export function enrolmentUri(secret: Uint8Array, address: string, issuer: string): string {
  const query = `secret=${base32(secret)}&issuer=${encodeURIComponent(issuer)}&algorithm=SHA1&digits=${digits}&period=${stepMs / 1000}`
  return `otpauth://totp/${encodeURIComponent(issuer)}:${encodeURIComponent(address)}?${query}`
}
