/** The same HTTP server, answering without the insert: the limit against which acceptance is measured. */
import { openAccept } from '#accept'
import { openIds, openSecrets, readConfig, silentLog, systemClock, systemRandom } from '#base'
import { openCredentials } from '#credentials'
import { openDb } from '#db'
import { openDomains } from '#domains'
import { startHttp } from '#http'
import { openLimitSettings } from '#limits'
import { openResolver } from '#net'
import { openTenants } from '#tenants'
import { openTracks } from '#tracking'

const clock = systemClock
const ids = openIds(systemRandom)
const config = readConfig(process.env)
const secrets = openSecrets(config.secret as string, systemRandom)
const db = await openDb({ url: config.databaseUrl as string, poolSize: 4, applicationName: 'postrider bench', log: silentLog })
const tenants = openTenants({ db, clock })
const domains = openDomains({ db, clock, secrets })
const tracks = openTracks({ db, clock })
const limitSettings = openLimitSettings({ db, clock, config })
const sendLimitUsage = { limit: null, used: 0, resetSeconds: 0 }
const accept = openAccept({
  db,
  clock,
  ids,
  tenants,
  domains,
  tracks,
  limitSettings,
  sandboxSender: config.sandboxSender,
  hostname: config.hostname,
  publicUrl: config.publicUrl,
  commit: () => Promise.resolve({ committed: true, sendLimitUsage }),
})
const http = await startHttp({
  db,
  clock,
  ids,
  random: systemRandom,
  log: silentLog,
  secrets,
  config,
  resolver: openResolver({ servers: [], clock, ids: { random: Math.random } }),
  tenants,
  domains,
  tracks,
  limitSettings,
  accept,
  credentials: openCredentials({ db, clock }),
  installation: { version: 'bench', settings: [], runChecks: async () => [] },
  isAlone: () => true,
  wake: () => {},
  dashboardFolder: 'none',
  referenceFolder: 'dashboard/reference',
  docsFolder: 'docs',
})
process.send?.({ port: http.port })
process.on('disconnect', () => process.exit(0))
