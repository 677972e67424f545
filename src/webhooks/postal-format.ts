/** Webhook requests in the form of Postal: its members of the body, and its signature headers beside Postrider's own. */
import { sign } from 'node:crypto'
import { promisify } from 'node:util'
import type { Signed } from './sign-request.ts'
import type { InstallationKey } from './signing-keys.ts'

/** On another thread, as the other signatures. */
const signBeside = promisify(sign)

type Members = Record<string, unknown>

/** Members of a payload that Postal does not send. */
const ownPayloadMembers = ['metadata', 'classification', 'classification_code', 'smtp_enhanced_code', 'remote_host']
const messages = ['message', 'original_message', 'bounce']

const without = (members: Members, names: readonly string[]): Members =>
  Object.fromEntries(Object.entries(members).filter(([name]) => !names.includes(name)))

const isMembers = (value: unknown): value is Members => typeof value === 'object' && value !== null && !Array.isArray(value)

/** The body without the members that Postal does not send. Once in this form, a body stays as it is. */
export function postalBody(body: Buffer): Buffer {
  const { event, timestamp, uuid, payload } = JSON.parse(body.toString()) as Members
  const own = isMembers(payload) ? without(payload, ownPayloadMembers) : {}
  const plain = Object.entries(own).map(([name, value]) => [
    name,
    messages.includes(name) && isMembers(value) ? without(value, ['metadata']) : value,
  ])
  return Buffer.from(JSON.stringify({ event, timestamp, payload: Object.fromEntries(plain), uuid }))
}

/** Postal's signatures: RSA over the body, with SHA-256, and with SHA-1 for receivers of old. The key is in /.well-known/jwks.json. */
export async function postalHeaders({ body }: Signed, key: InstallationKey): Promise<Record<string, string>> {
  const [sha256, sha1] = await Promise.all([signBeside('RSA-SHA256', body, key.privateKey), signBeside('RSA-SHA1', body, key.privateKey)])
  return {
    'X-Postal-Signature': sha1.toString('base64'),
    'X-Postal-Signature-256': sha256.toString('base64'),
    'X-Postal-Signature-KID': key.kid,
  }
}
