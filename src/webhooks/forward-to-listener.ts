/** Posts events to a receiver under development, as a webhook's first attempt would, signed with a temporary secret. */
import type { Clock, Random, Secrets } from '#base'
import type { Db } from '#db'
import type { Post, PostOutcome } from '#net'
import type { StreamEvent } from './event-stream.ts'
import { bodyFor } from './request-body.ts'
import { shownSecret, signedHeaders } from './sign-request.ts'
import { openInstallationKeys } from './signing-keys.ts'

export interface ForwardDeps {
  db: Db
  clock: Clock
  random: Random
  secrets: Secrets
  post: Post
  config: { webhookSignatureHeader: string }
  version: string
}

export interface Forward {
  /** `whsec_…` */
  secret: string
  send(event: StreamEvent): Promise<PostOutcome>
}

const secretOctets = 32
const withinMs = 5000

export function openForward(url: string, deps: ForwardDeps): Forward {
  const { clock, config, version } = deps
  const secret = Buffer.from(deps.random(new Uint8Array(secretOctets)))
  const keys = openInstallationKeys(deps)
  return {
    secret: shownSecret(secret),
    async send(one) {
      const [key] = await keys()
      if (!key) throw new Error('no signing key')
      const { uuid, event } = one
      const body = bodyFor(one)(uuid)
      const headers = await signedHeaders(
        { uuid, event, attempt: 1, body, nowMs: clock.nowMs() },
        { secrets: [secret], key, signatureHeader: config.webhookSignatureHeader, version },
      )
      return deps.post.post({ url, headers, body, withinMs })
    },
  }
}
