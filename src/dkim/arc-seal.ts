/**
 * Makes an ARC set (RFC 8617 section 5.1) of a message that is forwarded: three header fields that record its checks and continue its
 * chain. The parts whose time grows with the message are made first, so that another thread can do it.
 */
import { createHash } from 'node:crypto'
import { type ChainStatus, chainText, type FoundChain, maxInstances } from './arc-chain.ts'
import { bodyStart, headerFields, relaxedBody, relaxedHeader } from './canonical.ts'
import type { SigningKey } from './keys.ts'
import { headersToSign, signedField, wrapped } from './sign.ts'
import { maxSignedFields } from './verify.ts'

/** Signed one more time than they occur: a reader would see an added field. */
const oversigned = ['from', 'to', 'cc', 'subject', 'reply-to', 'content-type', 'content-transfer-encoding']
/** Not those that servers on the way add. RFC 8617 section 4.1.2 asks for DKIM-Signature. */
const asFound = [
  'date',
  'message-id',
  'mime-version',
  'in-reply-to',
  'references',
  'list-id',
  'list-unsubscribe',
  'list-unsubscribe-post',
  'dkim-signature',
]

/** The signed parts of a message. */
export interface Sealable {
  bodyHash: string
  names: readonly string[]
  /** Their canonical text. */
  text: string
}

/** Undefined: too many fields. `without`: names in lower case of fields that are not signed, such as one that delivery replaces. */
export function sealableOf(message: Buffer, without: readonly string[]): Sealable | undefined {
  const start = bodyStart(message)
  const fields = headerFields(message.toString('latin1', 0, start))
  const found = asFound.filter((name) => !without.includes(name))
  if (fields.filter(({ name }) => oversigned.includes(name) || found.includes(name)).length > maxSignedFields) return undefined
  const bodyHash = createHash('sha256').update(relaxedBody(message, start)).digest('base64')
  return { bodyHash, ...headersToSign(fields, oversigned, found) }
}

/**
 * Whether a chain can get another set: one that ended, that is full or that has no instance to continue cannot (RFC 8617 sections 4.2.1 and
 * 5.1).
 */
export const takesAnotherSet = ({ state, highest }: FoundChain): boolean =>
  state !== 'ended' && highest < maxInstances && (state !== 'fail' || highest > 0)

export interface NewSet {
  chain: FoundChain
  /** Of the chain, by `chainStatus`. */
  status: ChainStatus
  /** Name of the server, then results (RFC 8601), ASCII, in lines of a field. */
  results: string
  key: SigningKey
  atMs: number
}

/** The three fields of the next set in ASCII, to be put in front of the message. */
export async function arcSetFields(sealable: Sealable, { chain, status, results, key, atMs }: NewSet): Promise<string> {
  const start = `i=${chain.highest + 1}; a=${key.algorithm}-sha256`
  const by = `t=${Math.floor(atMs / 1000)};\r\n\td=${key.domain}; s=${key.selector};`
  const authentication = `ARC-Authentication-Results: i=${chain.highest + 1}; ${results}\r\n`
  const unsigned = `ARC-Message-Signature: ${start}; c=relaxed/relaxed; ${by}\r\n\th=${wrapped(sealable.names)};\r\n\tbh=${sealable.bodyHash};\r\n\tb=`
  const signature = await signedField(unsigned, sealable.text, key)
  // The seal of a failed chain covers only its own set (RFC 8617 section 5.1.2).
  const before = status === 'fail' ? '' : chainText(chain.sets)
  const covered = `${before}${canonicalOf(authentication)}${canonicalOf(signature)}`
  const seal = await signedField(`ARC-Seal: ${start}; cv=${status}; ${by}\r\n\tb=`, covered, key)
  return seal + signature + authentication
}

/** Of a field with its CRLF. */
function canonicalOf(field: string): string {
  const colon = field.indexOf(':')
  return `${relaxedHeader({ name: field.slice(0, colon).toLowerCase(), value: field.slice(colon + 1) })}\r\n`
}
