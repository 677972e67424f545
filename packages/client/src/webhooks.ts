/** Verifies webhooks. Either signature suffices; both cover the bytes as received, so pass the body before any parsing. */
import { WebhookVerificationError } from './errors.ts'
import type { WebhookEvent } from './events.ts'
import { webCrypto } from './random.ts'

export type WebhookHeaders = Headers | Readonly<Record<string, string | string[] | undefined>>

export interface VerifyOptions {
  /** Most seconds between the time of sending and now; default 300. */
  toleranceSeconds?: number
  now?: () => number
}

/** As published. */
export interface KeySet {
  keys: readonly { kid: string; kty: string; n: string; e: string }[]
}

/** Anybody could sign with an empty secret. */
const minSecretOctets = 16

/**
 * Verifies `webhook-signature` (Standard Webhooks) with the webhook's secret, `whsec_…`. Throws
 * `WebhookVerificationError`; `TypeError` without a secret.
 */
export async function verifyWebhook(
  payload: string | Uint8Array,
  headers: WebhookHeaders,
  secret: string,
  { toleranceSeconds = 300, now = Date.now }: VerifyOptions = {},
): Promise<WebhookEvent> {
  const id = headerOf(headers, 'webhook-id')
  const timestamp = headerOf(headers, 'webhook-timestamp')
  const signatures = headerOf(headers, 'webhook-signature')
  if (!/^\d+$/.test(timestamp)) throw new WebhookVerificationError('webhook-timestamp is not a number')
  if (!(Math.abs(now() / 1000 - Number(timestamp)) <= toleranceSeconds))
    throw new WebhookVerificationError('webhook-timestamp is too far from now')
  const octets = octetsOf(payload)
  const { subtle } = await webCrypto()
  const shared = fromBase64(secret.replace(/^whsec_/, ''))
  if (!shared || shared.length < minSecretOctets) throw new TypeError('the webhook secret is missing, or is not one')
  const key = await subtle.importKey('raw', shared, { name: 'HMAC', hash: 'SHA-256' }, false, ['verify'])
  const signed = joined(new TextEncoder().encode(`${id}.${timestamp}.`), octets)
  for (const one of signatures.split(' ')) {
    const signature = one.startsWith('v1,') ? fromBase64(one.slice(3)) : undefined
    // Compares in constant time.
    if (signature && (await subtle.verify('HMAC', key, signature, signed))) return eventOf(octets)
  }
  throw new WebhookVerificationError('no signature matches: wrong secret, or the body was changed')
}

/**
 * Verifies `X-Webhook-Signature` with the published keys, `…/.well-known/jwks.json`, which may be cached for an hour. It does not cover the
 * time of sending: ignore events whose `uuid` you have already processed. All tenants of an installation share the keys: with `tenantId`, an
 * event of another tenant is refused.
 */
export async function verifyWebhookWithKeys(
  payload: string | Uint8Array,
  headers: WebhookHeaders,
  { keys }: KeySet,
  options: { header?: string; tenantId?: string | undefined } = {},
): Promise<WebhookEvent> {
  const { header = 'x-webhook-signature', tenantId } = options
  // Perhaps a variable that is not set.
  if ('tenantId' in options && !tenantId) throw new TypeError('tenantId is missing')
  const signature = fromBase64(headerOf(headers, header))
  if (!signature) throw new WebhookVerificationError('the signature is not base64')
  const kid = headerOf(headers, `${header}-kid`)
  const found = keys.find((key) => key.kid === kid)
  if (!found) throw new WebhookVerificationError(`no such key: ${kid}. Fetch the key set again`)
  const octets = octetsOf(payload)
  const { subtle } = await webCrypto()
  const algorithm = { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' }
  const { kty, n, e } = found
  const key = await subtle.importKey('jwk', { kty, n, e, alg: 'RS256' }, algorithm, false, ['verify'])
  if (!(await subtle.verify(algorithm, key, signature, octets))) throw new WebhookVerificationError('the signature does not match')
  const event = eventOf(octets)
  if (tenantId !== undefined && event.tenant_id !== tenantId) throw new WebhookVerificationError('it is an event of another tenant')
  return event
}

function headerOf(headers: WebhookHeaders, name: string): string {
  const isNamed = ([one]: [string, unknown]) => one.toLowerCase() === name.toLowerCase()
  const value =
    typeof headers.get === 'function'
      ? (headers as Headers).get(name)
      : Object.entries(headers as Record<string, string | string[] | undefined>).find(isNamed)?.[1]
  const text = Array.isArray(value) ? value.join(' ') : value
  if (!text) throw new WebhookVerificationError(`the header ${name} is missing`)
  return text
}

type Octets = Uint8Array<ArrayBuffer>

const octetsOf = (payload: string | Uint8Array): Octets =>
  typeof payload === 'string' ? new TextEncoder().encode(payload) : new Uint8Array(payload)

function fromBase64(text: string): Octets | undefined {
  try {
    return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0))
  } catch {
    return undefined
  }
}

function joined(first: Octets, second: Octets): Octets {
  const all = new Uint8Array(first.length + second.length)
  all.set(first)
  all.set(second, first.length)
  return all
}

function eventOf(octets: Octets): WebhookEvent {
  try {
    return JSON.parse(new TextDecoder().decode(octets)) as WebhookEvent
  } catch {
    throw new WebhookVerificationError('the body is not JSON')
  }
}
