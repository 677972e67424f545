/** A delivery process whose domains have no keys, for comparison with an MTA that does not sign. */
import { openIds, openSecrets, readConfig, silentLog, systemClock, systemRandom } from '#base'
import { openDb } from '#db'
import { startDelivery } from '#delivery'
import { openDomains } from '#domains'
import { openTenants } from '#tenants'

const clock = systemClock
const ids = openIds(systemRandom)
const config = readConfig(process.env)
const secrets = openSecrets(config.secret as string, systemRandom)
const settings = '-c enable_seqscan=off -c enable_hashjoin=off -c enable_mergejoin=off -c enable_bitmapscan=off -c jit=off'
const db = await openDb({
  url: `${config.databaseUrl}&options=${encodeURIComponent(settings)}`,
  poolSize: 6,
  applicationName: 'postrider bench delivery',
  log: silentLog,
})
const domains = { ...openDomains({ db, clock, secrets }), signingKeys: () => Promise.resolve([]) }
const delivery = await startDelivery({
  db,
  clock,
  ids,
  log: silentLog,
  secrets,
  domains,
  tenants: openTenants({ db, clock }),
  config,
  processId: `bench-${ids.token(8)}`,
})
process.send?.({ started: true })
process.once('SIGTERM', () => void delivery.stop().then(() => process.exit(0)))
process.on('disconnect', () => process.exit(0))
