/** TLS contexts of TLS-ALPN-01 challenges (RFC 8737): a self-signed certificate that contains the digest of the key authorization. */
import { createSecureContext, type SecureContext } from 'node:tls'
import { newKey } from './acme-order.ts'
import type { Challenges } from './challenges.ts'

export interface ChallengeContexts {
  /** The context that answers the challenge of the name's order; undefined without one. */
  find(name: string): Promise<SecureContext | undefined>
}

/** The context of the last challenge is kept, because the CA connects several times. One that failed is made again. */
export function openChallengeContexts(challenges: Challenges): ChallengeContexts {
  let last: { keyAuthorization: string; context: Promise<SecureContext> } | undefined
  return {
    async find(name) {
      const challenge = await challenges.findByName(name)
      if (!challenge) return undefined
      const { keyAuthorization } = challenge
      if (last?.keyAuthorization !== keyAuthorization) {
        const made = { keyAuthorization, context: makeContext(name, keyAuthorization) }
        made.context.catch(() => {
          if (last === made) last = undefined
        })
        last = made
      }
      return last.context
    },
  }
}

async function makeContext(name: string, keyAuthorization: string): Promise<SecureContext> {
  const { crypto } = await import('acme-client')
  const authorization = { identifier: { type: 'dns', value: name }, status: 'pending' as const, challenges: [], url: '' }
  const [key, cert] = await crypto.createAlpnCertificate(authorization, keyAuthorization, newKey())
  return createSecureContext({ key, cert })
}
