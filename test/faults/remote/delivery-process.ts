/** A delivery process like `postrider delivery-process`, but with the timeouts that the test passes to it. */
import { openIds, openLog, openSecrets, readConfig, systemClock, systemRandom } from '#base'
import { openDb } from '#db'
import { startDelivery } from '#delivery'
import { openDomains } from '#domains'
import { openTenants } from '#tenants'

/** The same settings as in main.ts. */
const hotSettings = '-c enable_seqscan=off -c enable_hashjoin=off -c enable_mergejoin=off -c enable_bitmapscan=off -c jit=off'
const clock = systemClock
const [, , processId = '', bounds = '{}'] = process.argv
const config = readConfig(process.env)
const log = openLog(config, `delivery ${processId}`)
const secrets = openSecrets(config.secret ?? '', systemRandom)
const given = config.databaseUrl ?? ''
const url = `${given}${given.includes('?') ? '&' : '?'}options=${encodeURIComponent(hotSettings)}`
const db = await openDb({ url, poolSize: 6, applicationName: `delivery ${processId}`, log })
const delivery = await startDelivery({
  db,
  clock,
  ids: openIds(systemRandom),
  log,
  secrets,
  domains: openDomains({ db, clock, secrets }),
  tenants: openTenants({ db, clock }),
  config,
  processId,
  bounds: JSON.parse(bounds) as NonNullable<Parameters<typeof startDelivery>[0]['bounds']>,
})
// Uncollected garbage is not growth, and its amount is random.
process.on('message', () => {
  globalThis.gc?.()
  const { heapUsed, external } = process.memoryUsage()
  process.send?.(heapUsed + external)
})
const stop = async () => {
  await delivery.stop()
  await db.close()
  process.exit(0)
}
process.once('disconnect', () => void stop())
process.send?.('started')
