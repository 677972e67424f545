/** The role `webhooks`: sends events to the webhooks of tenants. */
import { openGuard, openPost, openResolver } from '#net'
import { openPayloadBodies, startSending } from '#webhooks'
import { clock, type Ground, ids, type RunningRole, version } from './process.ts'

/** Shorter than the five seconds after which many receivers close an unused connection. */
const keepIdleMs = 3000

export async function startWebhooksRole({ config, log, traces, secrets, db }: Ground, processId: string): Promise<RunningRole> {
  const resolver = openResolver({ servers: config.resolvers, clock, ids })
  const { allowedNetworks: openedNetworks } = config
  const post = openPost({ resolver, guard: openGuard(openedNetworks), openedNetworks, clock, keepIdleMs })
  const bodies = openPayloadBodies({ db, publicUrl: config.publicUrl })
  return startSending({ db, clock, ids, log, traces, secrets, post, bodies, config, version, processId })
}
