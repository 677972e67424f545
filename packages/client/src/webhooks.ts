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

/** Verifies `webhook-signature` (Standard Webhooks) with the webhook's secret, `whsec_…`; throws `WebhookVerificationError`. */
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
  const key = await subtle.importKey('raw', fromBase64(secret.replace(/^whsec_/, '')), { name: 'HMAC', hash: 'SHA-256' }, false, ['verify'])
  const signed = joined(new TextEncoder().encode(`${id}.${timestamp}.`), octets)
  for (const one of signatures.split(' ')) {
    if (!one.startsWith('v1,')) continue
    // Compares in constant time.
    if (await subtle.verify('HMAC', key, fromBase64(one.slice(3)), signed)) return eventOf(octets)
  }
  throw new WebhookVerificationError('no signature matches: wrong secret, or the body was changed')
}

/**
 * Verifies `X-Webhook-Signature` with the published keys, `…/.well-known/jwks.json`, which may be cached for an hour. It does not cover the
 * time of sending: ignore events whose `uuid` you have already processed.
 */
export async function verifyWebhookWithKeys(
  payload: string | Uint8Array,
  headers: WebhookHeaders,
  { keys }: KeySet,
  { header = 'x-webhook-signature' }: { header?: string } = {},
): Promise<WebhookEvent> {
  const signature = fromBase64(headerOf(headers, header))
  const kid = headerOf(headers, `${header}-kid`)
  const found = keys.find((key) => key.kid === kid)
  if (!found) throw new WebhookVerificationError(`no such key: ${kid}. Fetch the key set again`)
  const octets = octetsOf(payload)
  const { subtle } = await webCrypto()
  const algorithm = { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' }
  const { kty, n, e } = found
  const key = await subtle.importKey('jwk', { kty, n, e, alg: 'RS256' }, algorithm, false, ['verify'])
  if (await subtle.verify(algorithm, key, signature, octets)) return eventOf(octets)
  throw new WebhookVerificationError('the signature does not match')
}

function headerOf(headers: WebhookHeaders, name: string): string {
  const value =
    typeof headers.get === 'function'
      ? (headers as Headers).get(name)
      : Object.entries(headers as Record<string, string | string[] | undefined>).find(([one]) => one.toLowerCase() === name)?.[1]
  const text = Array.isArray(value) ? value[0] : value
  if (!text) throw new WebhookVerificationError(`the header ${name} is missing`)
  return text
}

type Octets = Uint8Array<ArrayBuffer>

const octetsOf = (payload: string | Uint8Array): Octets =>
  typeof payload === 'string' ? new TextEncoder().encode(payload) : new Uint8Array(payload)

function fromBase64(text: string): Octets {
  try {
    return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0))
  } catch {
    throw new WebhookVerificationError('not base64')
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
