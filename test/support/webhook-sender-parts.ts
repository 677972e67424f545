/** Shared parts of the sending tests and of the processes that they start. */
import ipaddr from 'ipaddr.js'
import { type Clock, type Network, openSecrets, systemClock, systemRandom } from '#base'
import { openGuard, openPost, openResolver, type Post } from '#net'
import type { Bodies, WebhookEmailEvent } from '#webhooks'

const loopback: Network[] = [ipaddr.parseCIDR('127.0.0.0/8')]
export const sendingSecrets = openSecrets('a secret for tests only', systemRandom)
export const sendingConfig = { webhookSignatureHeader: 'X-Webhook-Signature', leaseMs: 1000 }

/** The test's events are the complete content of the bodies. */
export const plainBodies: Bodies = (events) =>
  Promise.resolve(
    events.map(({ kind, tenantId, emailId, at, data }) => ({
      event: kind as WebhookEmailEvent,
      tenantId,
      timestamp: at.getTime() / 1000,
      payload: { emailId, ...data },
    })),
  )

export function loopbackPost(given: { dns?: string; trusted?: string; clock?: Clock } = {}): Post {
  const { dns = '127.0.0.1:9', trusted, clock = systemClock } = given
  const resolver = openResolver({ servers: [dns], clock, ids: { random: Math.random } })
  const deps = { resolver, guard: openGuard(loopback), openedNetworks: loopback, clock, keepIdleMs: 2000 }
  return openPost({ ...deps, ...(trusted ? { trusted } : {}) })
}
