/** DKIM signatures: rsa-sha256 (RFC 6376) and ed25519-sha256 (RFC 8463) over one canonical form of the message. */
import { createHash, sign as cryptoSign } from 'node:crypto'
import { promisify } from 'node:util'
import { bodyStart, type HeaderField, headerFields, relaxedBody, relaxedHeader } from './canonical.ts'
import type { SigningKey } from './keys.ts'

/** Signed one more time than they occur, so that an attacker cannot add one (RFC 6376 section 8.15). */
const oversigned = [
  'from',
  'to',
  'cc',
  'subject',
  'date',
  'reply-to',
  'message-id',
  'mime-version',
  'content-type',
  'content-transfer-encoding',
  'list-unsubscribe',
  'list-unsubscribe-post',
]
/** Signed where it occurs: Gmail's feedback loop counts the field only in mail that was signed with it. */
const feedbackId = 'feedback-id'
const base64Line = 72
/** Runs on another thread: an RSA signature takes as long as all other work on a message. */
const signOnThread = promisify(cryptoSign)

/** All that the signatures of a message cover. */
export interface Signable {
  /** The signed fields, in order. */
  names: string[]
  /** The canonical text of the signed fields. */
  text: string
  /** SHA-256 of the canonical body, in base64. */
  bodyHash: string
}

/**
 * The DKIM-Signature field of each key, in ASCII, to be put in front of `message` (CRLF line ends). There is no expiry: a retry days
 * later, or the raw form shown by the API, must have the same octets.
 */
export async function signatureFields(message: Buffer, keys: readonly SigningKey[], atMs: number): Promise<string> {
  return keys.length === 0 ? '' : signatureFieldsOf(signableOf(message), keys, atMs)
}

/** For a message with CRLF line ends. Takes 20 ms for 10 MB. */
export function signableOf(message: Buffer): Signable {
  const start = bodyStart(message)
  const fields = headerFields(message.toString('latin1', 0, start))
  const bodyHash = createHash('sha256').update(relaxedBody(message, start)).digest('base64')
  return { ...headersToSign(fields, oversigned, [feedbackId]), bodyHash }
}

/** `signatureFields` of the message of which this was taken. */
export async function signatureFieldsOf({ names, text, bodyHash }: Signable, keys: readonly SigningKey[], atMs: number): Promise<string> {
  const timestamp = Math.floor(atMs / 1000)
  const signatures = keys.map((key) => signedField(signatureField(key, wrapped(names), bodyHash, timestamp), text, key))
  return (await Promise.all(signatures)).join('')
}

/** A field that ends with an empty b=, with the signature of the canonical text before it and of itself; with CRLF. */
export async function signedField(unsigned: string, text: string, { algorithm, privateKey }: SigningKey): Promise<string> {
  const colon = unsigned.indexOf(':')
  const own = { name: unsigned.slice(0, colon).toLowerCase(), value: unsigned.slice(colon + 1) }
  const canonical = Buffer.from(text + relaxedHeader(own), 'latin1')
  const signature =
    algorithm === 'rsa'
      ? await signOnThread('sha256', canonical, privateKey)
      : cryptoSign(null, createHash('sha256').update(canonical).digest(), privateKey)
  return `${unsigned}${folded(signature.toString('base64'))}\r\n`
}

/**
 * The names of the signed fields, and their canonical text: `oversigned` one more time than they occur, `asFound` as often as they occur.
 * RFC 6376 section 5.4.2: of several fields with one name, the last one is signed first.
 */
export function headersToSign(
  fields: readonly HeaderField[],
  oversigned: readonly string[],
  asFound: readonly string[],
): { names: string[]; text: string } {
  const names: string[] = []
  let text = ''
  for (const name of [...oversigned, ...asFound]) {
    for (let index = fields.length - 1; index >= 0; index--) {
      const field = fields[index]
      if (field?.name !== name) continue
      names.push(name)
      text += `${relaxedHeader(field)}\r\n`
    }
    if (!asFound.includes(name)) names.push(name)
  }
  return { names, text }
}

/** The list of h=, in lines. */
export function wrapped(names: readonly string[]): string {
  const lines: string[] = ['']
  for (const [index, name] of names.entries()) {
    const word = index < names.length - 1 ? `${name}:` : name
    const last = lines.length - 1
    if ((lines[last] as string).length + word.length > base64Line) lines.push(word)
    else lines[last] += word
  }
  return lines.join('\r\n\t')
}

const base64Lines = new RegExp(`.{1,${base64Line}}`, 'g')
const folded = (text: string) => (text.match(base64Lines) ?? []).join('\r\n\t')

const signatureField = ({ algorithm, domain, selector }: SigningKey, names: string, bodyHash: string, timestamp: number) =>
  `DKIM-Signature: v=1; a=${algorithm}-sha256; c=relaxed/relaxed; t=${timestamp};\r\n\td=${domain}; s=${selector};\r\n\th=${names};\r\n\tbh=${bodyHash};\r\n\tb=`
