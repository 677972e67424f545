/** The same HTTP server, answering without the insert: the limit that acceptance is measured against. */
import { openAccept } from '#accept'
import { openIds, openSecrets, readConfig, silentLog, systemClock, systemRandom } from '#base'
import { openCredentials } from '#credentials'
import { openDb } from '#db'
import { openDomains, openShownDomains } from '#domains'
import { startHttp } from '#http'
import { openKeyRates, openLimitSettings, openRateLimiter } from '#limits'
import { openSessions } from '#members'
import { openGuard, openPost, openResolver } from '#net'
import { openRequestLogs } from '#request-logs'
import { openTenants } from '#tenants'
import { openHits, openTokens, openTrackHosts, openTracks } from '#tracking'
import { openUsage } from '#usage'
import { openLive, openWebhooks } from '#webhooks'

const clock = systemClock
const ids = openIds(systemRandom)
const config = readConfig(process.env)
const secrets = openSecrets(config.secret as string, systemRandom)
const db = await openDb({ url: config.databaseUrl as string, poolSize: 4, applicationName: 'postrider bench', log: silentLog })
const tenants = openTenants({ db, clock })
const domains = openDomains({ db, clock, secrets })
const tracks = openTracks({ db, clock })
const limitSettings = openLimitSettings({ db, clock, config })
const standing = { limit: null, used: 0, resetSeconds: 0 }
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
  commit: () => Promise.resolve({ committed: true, standing }),
})
const resolver = openResolver({ servers: [], clock, ids: { fraction: Math.random } })
const post = openPost({ resolver, guard: openGuard([]), openedNetworks: [], clock })
const rateLimiter = openRateLimiter(clock)
const http = await startHttp({
  db,
  clock,
  ids,
  log: silentLog,
  requestLogs: openRequestLogs({ db, clock, log: silentLog, secrets }),
  hits: openHits({ db, clock, log: silentLog, ids, keepEmailDays: config.keepEmailDays }),
  tokens: openTokens(secrets),
  trackHosts: openTrackHosts({ db, clock }),
  sessions: openSessions({ db, clock, ids, secrets }),
  dashboardFolder: 'none',
  docsFolder: 'docs',
  installation: { version: 'bench', settings: [], examine: async () => [] },
  tenants,
  secrets,
  resolver,
  standstills: { find: () => Promise.resolve(undefined) },
  domains,
  tracks,
  shownDomains: openShownDomains({ db, clock, ids, secrets, tenants, resolver, hostname: config.hostname }),
  limitSettings,
  accept,
  usage: openUsage({ db, clock }),
  live: openLive({ db, clock }),
  webhooks: openWebhooks({ db, clock, ids, random: systemRandom, secrets, tenants, post, config, version: 'bench' }),
  config,
  credentials: openCredentials({ db, clock }),
  rateLimiter,
  keyRates: openKeyRates({ db, clock, rateLimiter, isAlone: () => true }),
})
process.send?.({ port: http.port })
process.on('disconnect', () => process.exit(0))
