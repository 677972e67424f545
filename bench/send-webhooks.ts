/** A process that sends an event log to the sink as webhooks: with its own payloads, otherwise like `webhooks-process`. */
import ipaddr from 'ipaddr.js'
import { type Network, openIds, openSecrets, readConfig, silentLog, systemClock, systemRandom } from '#base'
import { openDb } from '#db'
import { appendEvents } from '#events'
import { openGuard, openPost, openResolver } from '#net'
import { openTenants } from '#tenants'
import { openWebhooks, organisationWide, startSending, type WebhookEmailEvent } from '#webhooks'
import { eventsOf, payloadOf, webhooks as webhookCount } from './webhooks.ts'

const batch = 1000
const clock = systemClock
const ids = openIds(systemRandom)
const config = readConfig(process.env)
const secrets = openSecrets(config.secret as string, systemRandom)
const db = await openDb({ url: config.databaseUrl as string, poolSize: 6, applicationName: 'postrider bench webhooks', log: silentLog })
const tenants = openTenants({ db, clock })
const openedNetworks: Network[] = [ipaddr.parseCIDR('127.0.0.0/8')]
const resolver = openResolver({ servers: [], clock, ids: { random: Math.random } })
const post = openPost({ resolver, guard: openGuard(openedNetworks), openedNetworks, clock, keepIdleMs: 3000 })
const deps = { db, clock, ids, secrets, post, config, version: 'bench' }
const webhooks = openWebhooks({ ...deps, random: systemRandom, tenants })
const tenant = await tenants.default()
if (!tenant) throw new Error('there is no tenant')

for (const { id } of await webhooks.list(organisationWide)) await webhooks.remove(String(id), organisationWide)
for (let n = 0; n < webhookCount; n++)
  await webhooks.create(organisationWide, { name: `bench ${n}`, url: `http://127.0.0.1:${process.env['SINK_PORT']}/${n}` })
for (let done = 0; done < eventsOf(process.env); done += batch) {
  const happened = Array.from({ length: Math.min(batch, eventsOf(process.env) - done) }, (_, n) => ({
    tenantId: tenant.id,
    kind: 'MessageSent' as const,
    emailId: `bench${done + n}`,
    at: new Date(clock.nowMs()),
    data: {},
  }))
  await db.transaction((tx) => appendEvents(tx, happened))
}
const sending = await startSending({
  ...deps,
  log: silentLog,
  processId: `bench-${ids.token(8)}`,
  bodies: (events) =>
    Promise.resolve(
      events.map(({ kind, tenantId, at }) => ({
        event: kind as WebhookEmailEvent,
        tenantId,
        timestamp: at.getTime() / 1000,
        payload: payloadOf(),
      })),
    ),
})
process.send?.({ started: true })
process.once('SIGTERM', () => void sending.stop().then(() => process.exit(0)))
process.on('disconnect', () => process.exit(0))
