/**
 * Request signatures (contract 13.8): HMAC-SHA-256 with the webhook's secret (Standard Webhooks), and RSA-SHA-256 with the installation's
 * key, published as a JWK set (signing-keys.ts).
 */
import { createHmac, sign } from 'node:crypto'
import { promisify } from 'node:util'
import type { InstallationKey } from './signing-keys.ts'

/** On another thread: a signature takes longer than the rest of a request. */
const signBeside = promisify(sign)

export interface Signed {
  /** The event's uuid, the same on every attempt. */
  uuid: string
  event: string
  attempt: number
  body: Buffer
  nowMs: number
}

const secretPrefix = 'whsec_'
export const shownSecret = (octets: Uint8Array) => secretPrefix + Buffer.from(octets).toString('base64')

/** All headers of a request except those of HTTP itself. */
export async function signedHeaders(
  { uuid, event, attempt, body, nowMs }: Signed,
  by: { secrets: readonly Buffer[]; key: InstallationKey; signatureHeader: string; version: string },
): Promise<Record<string, string>> {
  const timestamp = String(Math.floor(nowMs / 1000))
  const hmac = (secret: Buffer) => `v1,${createHmac('sha256', secret).update(`${uuid}.${timestamp}.`).update(body).digest('base64')}`
  return {
    'Content-Type': 'application/json',
    'User-Agent': `Postrider/${by.version}`,
    'webhook-id': uuid,
    'webhook-timestamp': timestamp,
    'webhook-signature': by.secrets.map(hmac).join(' '),
    [by.signatureHeader]: (await signBeside('RSA-SHA256', body, by.key.privateKey)).toString('base64'),
    [`${by.signatureHeader}-KID`]: by.key.kid,
    'X-Webhook-Event': event,
    'X-Webhook-Attempt': String(attempt),
  }
}
