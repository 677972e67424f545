/** Signs DNS messages with a shared key, and verifies the signature of their answers (TSIG, RFC 8945). */
import { createHmac, timingSafeEqual } from 'node:crypto'
import { decodeMessage, u16, u32, type WireMessage, wireName } from './dns-wire.ts'

export interface TsigKey {
  name: string
  algorithm: 'hmac-sha256' | 'hmac-sha512'
  secret: Buffer
}

const tsigType = 250
const anyClass = 255
const fudgeS = 300
/** Section 3, table 2. */
const errors: Record<number, string> = { 16: 'BADSIG', 17: 'BADKEY', 18: 'BADTIME', 22: 'BADTRUNC' }

/** 48 bits. */
const time48 = (seconds: number) => Buffer.concat([u16(Math.floor(seconds / 2 ** 32)), u32(seconds % 2 ** 32)])

const variables = ({ name, algorithm }: TsigKey, time: Buffer, fudge: Buffer, error: Buffer, other: Buffer) =>
  Buffer.concat([wireName(name), u16(anyClass), u32(0), wireName(algorithm), time, fudge, error, u16(other.length), other])

const macOf = ({ algorithm, secret }: TsigKey, ...parts: Buffer[]) =>
  createHmac(algorithm.slice('hmac-'.length), secret).update(Buffer.concat(parts)).digest()

const withCount = (message: Buffer, additionals: number): Buffer => {
  const copy = Buffer.from(message)
  copy.writeUInt16BE(additionals, 10)
  return copy
}

/** The message with its signature, and the code that the answer's signature includes. */
export function signMessage(message: Buffer, key: TsigKey, nowMs: number): { octets: Buffer; mac: Buffer } {
  const [time, fudge, none] = [time48(Math.floor(nowMs / 1000)), u16(fudgeS), Buffer.alloc(0)]
  const mac = macOf(key, message, variables(key, time, fudge, u16(0), none))
  const data = Buffer.concat([wireName(key.algorithm), time, fudge, u16(mac.length), mac, message.subarray(0, 2), u16(0), u16(0)])
  const record = Buffer.concat([wireName(key.name), u16(tsigType), u16(anyClass), u32(0), u16(data.length), data])
  return { octets: Buffer.concat([withCount(message, message.readUInt16BE(10) + 1), record]), mac }
}

/** `error`: why the answer cannot be trusted; a refused key is such a reason. */
export type SignedAnswer =
  | { kind: 'answer'; message: WireMessage }
  | { kind: 'error'; error: string /** The server named the reason. */; refusal?: string }

interface Signature {
  algorithm: Buffer
  time: Buffer
  fudge: Buffer
  mac: Buffer
  originalId: Buffer
  error: Buffer
  other: Buffer
}

/** Reads the data of a TSIG record; throws for malformed data. */
function signatureIn(data: Buffer): Signature {
  // The name in the data is never compressed.
  const end = data.indexOf(0) + 1
  const macSize = data.readUInt16BE(end + 8)
  const at = end + 10 + macSize
  const otherSize = data.readUInt16BE(at + 4)
  if (end === 0 || at + 6 + otherSize !== data.length) throw new RangeError('the signature is malformed')
  return {
    algorithm: data.subarray(0, end),
    time: data.subarray(end, end + 6),
    fudge: data.subarray(end + 6, end + 8),
    mac: data.subarray(end + 10, at),
    originalId: data.subarray(at, at + 2),
    error: data.subarray(at + 2, at + 4),
    other: data.subarray(at + 6),
  }
}

/** Reads the answer to a signed message: it counts only with a valid signature over the request's. Never throws. */
export function readSignedAnswer(octets: Buffer, request: { id: number; key: TsigKey; mac: Buffer; nowMs: number }): SignedAnswer {
  try {
    return verified(octets, request)
  } catch {
    return { kind: 'error', error: 'the answer is malformed' }
  }
}

function verified(octets: Buffer, { id, key, mac, nowMs }: { id: number; key: TsigKey; mac: Buffer; nowMs: number }): SignedAnswer {
  const message = decodeMessage(octets)
  if (!message.isResponse || message.id !== id) return { kind: 'error', error: 'the answer is for another question' }
  const last = message.additionals.at(-1)
  if (last?.type !== tsigType) return { kind: 'error', error: `the answer is not signed (${rcodeName(message.rcode)})` }
  const given = signatureIn(last.data)
  const error = given.error.readUInt16BE(0)
  const isKeyRefused = error === 16 || error === 17
  if (isKeyRefused) return { kind: 'error', error: `the server refuses the key (${errors[error]})`, refusal: errors[error] as string }
  const isKey = last.name === key.name && last.class === anyClass && last.ttlS === 0 && given.algorithm.equals(wireName(key.algorithm))
  const unsigned = withCount(octets.subarray(0, last.start), message.additionals.length - 1)
  given.originalId.copy(unsigned)
  const wanted = macOf(key, u16(mac.length), mac, unsigned, variables(key, given.time, given.fudge, given.error, given.other))
  if (!isKey || given.mac.length !== wanted.length || !timingSafeEqual(given.mac, wanted))
    return { kind: 'error', error: 'the signature of the answer is wrong' }
  if (error !== 0) return { kind: 'error', error: `the server refuses the signature (${errors[error] ?? error}): compare the clocks` }
  const seconds = given.time.readUIntBE(0, 6)
  if (Math.abs(seconds - nowMs / 1000) > fudgeS) return { kind: 'error', error: 'the answer is signed at another time: compare the clocks' }
  return { kind: 'answer', message }
}

/** RFC 1035 section 4.1.1, RFC 2136 section 2.2. */
const rcodes = ['NOERROR', 'FORMERR', 'SERVFAIL', 'NXDOMAIN', 'NOTIMP', 'REFUSED', 'YXDOMAIN', 'YXRRSET', 'NXRRSET', 'NOTAUTH', 'NOTZONE']
export const rcodeName = (rcode: number): string => rcodes[rcode] ?? `RCODE ${rcode}`
