/**
 * Signatures of SendGrid's event webhook: ECDSA over P-256 and SHA-256, of the time and the body. The key is derived from the webhook's secret, so
 * that it is stored sealed with it and changes with it.
 */
import { createECDH, createHmac, createPrivateKey, createPublicKey, type KeyObject, sign } from 'node:crypto'
import type { Signed } from './sign-request.ts'

/** The order of the group of P-256 (FIPS 186-5). */
const order = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n
const purpose = 'SendGrid event webhook'

const keys = new WeakMap<Buffer, KeyObject>()

/** The private key of a secret, which the caller keeps unsealed as long as it uses the key. */
function keyOf(secret: Buffer): KeyObject {
  const key = keys.get(secret) ?? derived(secret)
  keys.set(secret, key)
  return key
}

function derived(secret: Buffer): KeyObject {
  for (let nth = 0; ; nth++) {
    const digest = createHmac('sha256', secret).update(`${purpose} ${nth}`).digest()
    const number = BigInt(`0x${digest.toString('hex')}`)
    // All but one of 2^32 digests are private keys (FIPS 186-5, appendix A.2.2).
    if (number === 0n || number >= order) continue
    const pair = createECDH('prime256v1')
    pair.setPrivateKey(digest)
    const point = pair.getPublicKey()
    const jwk = {
      kty: 'EC',
      crv: 'P-256',
      d: digest.toString('base64url'),
      x: point.subarray(1, 33).toString('base64url'),
      y: point.subarray(33).toString('base64url'),
    }
    return createPrivateKey({ key: jwk, format: 'jwk' })
  }
}

/** As SendGrid shows it: base64 of the public key's DER. `shown`: the secret as it is shown, `whsec_…`. */
export const sendgridPublicKey = (shown: string): string =>
  createPublicKey(derived(Buffer.from(shown.replace(/^whsec_/, ''), 'base64')))
    .export({ type: 'spki', format: 'der' })
    .toString('base64')

export function sendgridHeaders({ body, nowMs }: Signed, secret: Buffer): Record<string, string> {
  const timestamp = String(Math.floor(nowMs / 1000))
  return {
    'X-Twilio-Email-Event-Webhook-Signature': sign('sha256', Buffer.concat([Buffer.from(timestamp), body]), keyOf(secret)).toString(
      'base64',
    ),
    'X-Twilio-Email-Event-Webhook-Timestamp': timestamp,
  }
}
