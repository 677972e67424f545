/**
 * The only place where rooms are joined, in the order of the house: settings, database, records, roles, orderly stop.
 * `postrider serve` is this file; the other commands are given what they need from here.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { openAccept, openCommit } from '#accept'
import {
  type Children,
  type Config,
  ConfigError,
  type Ids,
  type Log,
  openCrashPoints,
  openIds,
  openLog,
  openSecrets,
  openTraces,
  readConfig,
  type Secrets,
  shownSettings,
  startChildren,
  startLoop,
  systemClock,
  systemRandom,
  type Traces,
  tellParent,
} from '#base'
import { readReport } from '#bounces'
import { type BareHouse, type House, runCommand } from '#cli'
import { type Credentials, createKey, openCredentials } from '#credentials'
import { type Db, durabilityProblems, embeddedUrlIfRunning, hasEmbedded, migrate, openDb, startEmbedded } from '#db'
import { holdAfterRestore, openStandstills, startDelivery } from '#delivery'
import { examine, readPlatform, startMeasuring } from '#doctor'
import { addDomain, ensurePlatformKey, openDomainDesk, openDomains } from '#domains'
import { prepareDays, startHousekeeping } from '#housekeeping'
import { startHttp } from '#http'
import { ensureCertificate, startInbound } from '#inbound'
import { openKeyRates, openLimitSettings, openPresence, openRateLimiter } from '#limits'
import { addMember, openSessions } from '#members'
import { openGuard, openPost, openResolver } from '#net'
import { openRequestLogs } from '#request-logs'
import { openReturns } from '#returns'
import { simulatorDomain } from '#simulator'
import { forgetProcess, shardLeases } from '#spool'
import { findOrganisation, foundOrganisation, openTenants } from '#tenants'
import { openHits, openTokens, openTrackHosts, openTracks } from '#tracking'
import { openUsage } from '#usage'
import { forgetSender, openBodies, openLive, openWebhooks, startSending } from '#webhooks'

const clock = systemClock
const ids: Ids = openIds(systemRandom)
const environment = process.env
/** For `postrider crash-test`; undefined in every other life. */
const reached = openCrashPoints(environment.POSTRIDER_CRASH_POINTS)
const script = new URL('../bin/postrider.js', import.meta.url).pathname
const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as { version: string }
const dashboardFolder = new URL('../dashboard/dist', import.meta.url).pathname
const docsFolder = new URL('../docs', import.meta.url).pathname
/** Where https of track domains is asked for. */
const httpsPort = 443
const apiConnections = 12
const deliveryConnections = 6
const inboundConnections = 8
const webhookConnections = 6
const webhookProcesses = 1
/** Shorter than the five seconds after which many a receiver closes an unused connection. */
const webhookIdleMs = 3000
const saveUsesEveryMs = 10_000

/** The hot statements name their rows by index; a plan made while a table was empty must not read it whole when it is full. */
const deliverySettings = '-c enable_seqscan=off -c enable_hashjoin=off -c enable_mergejoin=off -c enable_bitmapscan=off -c jit=off'
const withOptions = (url: string, options: string) => `${url}${url.includes('?') ? '&' : '?'}options=${encodeURIComponent(options)}`

/** The secret of this installation: given, or made once into the state folder. */
function readSecret(config: Config): string {
  if (config.secret !== undefined) return config.secret
  if (config.databaseUrl !== undefined)
    throw new Error('POSTRIDER_SECRET is required when DATABASE_URL is set: every process of the installation needs the same one')
  const kept = keptSecret(config)
  if (kept === undefined && hasEmbedded(config.dataFolder))
    throw new ConfigError(
      `${secretFile(config)} is missing, and without it nothing sealed in this database can be read: put it back, or give it as POSTRIDER_SECRET or POSTRIDER_SECRET_FILE`,
    )
  return kept ?? keepSecret(config, ids.token(43))
}

const secretFile = (config: Config) => join(config.dataFolder, 'secret')

const keptSecret = (config: Config): string | undefined =>
  existsSync(secretFile(config)) ? readFileSync(secretFile(config), 'utf8').trim() : undefined

function keepSecret(config: Config, secret: string): string {
  mkdirSync(config.dataFolder, { recursive: true, mode: 0o700 })
  writeFileSync(secretFile(config), secret, { mode: 0o600, flag: 'wx' })
  return secret
}

async function refuseOtherSecret(db: Db, secrets: Secrets): Promise<void> {
  const organisation = await findOrganisation(db)
  if (organisation && organisation.secretFingerprint !== secrets.fingerprint) {
    throw new Error(
      'POSTRIDER_SECRET is not the one this database was set up with: stored keys could not be read. Give the original one as POSTRIDER_SECRET or POSTRIDER_SECRET_FILE, or as the file secret in the state folder.',
    )
  }
}

/** A database for one command: the running service's, or the embedded one started for as long as the command takes. */
async function withHouse<T>(work: (house: House) => Promise<T>, { whileServing = false, mayBeNew = false } = {}): Promise<T> {
  const config = readConfig(environment)
  // A command in a shell that lacks the service's settings would work on a new, empty installation that nobody runs.
  if (!mayBeNew && config.databaseUrl === undefined && !hasEmbedded(config.dataFolder))
    throw new ConfigError(
      `there is no installation in ${config.dataFolder}: set POSTRIDER_DATA or DATABASE_URL as for the service, or start that first (postrider serve)`,
    )
  const secrets = openSecrets(readSecret(config), systemRandom)
  return withDatabase(config, { whileServing }, async (db, isOurs) => {
    const house = { config, db, clock, ids, random: systemRandom, secrets, version }
    if (mayBeNew) return work(house)
    if (isOurs) await migrate(db, clock)
    await refuseOtherSecret(db, secrets)
    if (!(await findOrganisation(db)))
      throw new ConfigError('there is no installation in this database yet: start it first (postrider serve)')
    return work(house)
  })
}

function withBareHouse<T>(work: (house: BareHouse) => Promise<T>): Promise<T> {
  const config = readConfig(environment)
  const secret = config.secret ?? (config.databaseUrl === undefined ? keptSecret(config) : undefined)
  const keep = (given: string) => void keepSecret(config, given)
  return withDatabase(config, { whileServing: false }, (db) => work({ config, db, clock, secret, keepSecret: keep }))
}

/** `isOurs`: it was started for this. */
async function withDatabase<T>(
  config: Config,
  { whileServing }: { whileServing: boolean },
  work: (db: Db, isOurs: boolean) => Promise<T>,
): Promise<T> {
  const log = openLog('warn', 'command')
  const running = config.databaseUrl ?? (await embeddedUrlIfRunning(config.dataFolder))
  if (running === undefined && whileServing) throw new Error('the service is not running here; start it with: postrider serve')
  const embedded = running === undefined ? await startEmbedded({ folder: config.dataFolder, clock, log }) : undefined
  const db = await openDb({ url: running ?? (embedded?.url as string), poolSize: 3, applicationName: 'postrider command', log })
  try {
    return await work(db, embedded !== undefined)
  } finally {
    await db.close()
    await embedded?.stop()
  }
}

const ownerOf = (config: Config) => `owner@${config.hostname}`

/** Makes the organisation of an empty database; what it returns is to be shown once. */
async function firstStart(
  config: Config,
  db: Db,
  secrets: Secrets,
): Promise<{ liveKey: string; testKey: string; signInUrl: string } | undefined> {
  if (await findOrganisation(db)) return undefined
  const facts = { nowMs: clock.nowMs(), ids }
  return db.transaction(async (tx) => {
    const tenant = await foundOrganisation(tx, { name: 'Organisation', secretFingerprint: secrets.fingerprint, ...facts })
    await addDomain(tx, { tenantId: tenant.id, name: simulatorDomain, trusted: true, testOnly: true }, { ...facts, secrets })
    if (config.firstStart === 'quiet') return undefined
    const key = async (mode: 'live' | 'test') =>
      (await createKey(tx, { mode, name: `first-${mode}-key`, tenantId: null, permissions: null }, facts)).key
    const { signInToken } = await addMember(tx, { address: ownerOf(config), role: 'owner', tenantId: null }, facts)
    return { liveKey: await key('live'), testKey: await key('test'), signInUrl: `${config.publicUrl}/sign-in/${signInToken}` }
  })
}

const welcome = (config: Config, shown: { liveKey: string; testKey: string; signInUrl: string }) => `
Postrider is running. Dashboard ${config.publicUrl}, API ${config.publicUrl}/v1, reference ${config.publicUrl}/docs

These are shown once:
  live key          ${shown.liveKey}
  test key          ${shown.testKey}
  owner's sign-in   ${shown.signInUrl} (${ownerOf(config)}; 24 hours, once)

Send a first email with the test key; nothing leaves this machine:

  curl -s ${config.publicUrl}/v1/emails \\
    -H 'Authorization: Bearer ${shown.testKey}' -H 'Content-Type: application/json' \\
    -d '{"from":"hello@${simulatorDomain}","to":["delivered@${simulatorDomain}"],"subject":"Hello","text":"It works."}'

and see what became of it:

  curl -s '${config.publicUrl}/v1/emails?perPage=1' -H 'Authorization: Bearer ${shown.testKey}'
`

const tracesOf = (config: Config, log: Log, role: string) => openTraces(config, { clock, log, random: systemRandom, version, role })

const smtpPorts = ({ smtpHost, smtpPort, submissionPort, submissionTlsPort }: Config) =>
  `SMTP on ${smtpHost}: submission ${submissionPort} (STARTTLS) and ${submissionTlsPort} (TLS), incoming mail ${smtpPort}`

async function serve(): Promise<void> {
  const config = readConfig(environment)
  const log = openLog(config.logLevel, 'serve')
  if (reached) log.warn('POSTRIDER_CRASH_POINTS is set: this service kills itself when a crash test says so')
  const ended = new AbortController()
  const ending = ended.signal
  const stop = untilSignal().then(() => ended.abort())
  const traces = await tracesOf(config, log, 'serve')
  const secrets = openSecrets(readSecret(config), systemRandom)
  const embedded = config.databaseUrl === undefined ? await startEmbedded({ folder: config.dataFolder, clock, log }) : undefined
  const url = config.databaseUrl ?? (embedded?.url as string)
  const db = await openDb({ url, poolSize: apiConnections, applicationName: 'postrider serve', log })
  const open: { stop(): Promise<void> }[] = []
  try {
    await migrate(db, clock)
    await prepareDays(db, clock.nowMs())
    await refuseOtherSecret(db, secrets)
    await holdAfterRestore(db, clock.nowMs())
    for (const problem of await durabilityProblems(db)) log.warn(problem)
    const shown = await firstStart(config, db, secrets)
    if (ending.aborted) {
      if (shown) console.log(welcome(config, shown))
      return
    }
    const delivery = {
      command: 'delivery-process',
      count: config.deliveryProcesses,
      ended: (name: string) => forgetProcess(db, shardLeases, name),
    }
    // One, for ports are bound once; apart from the API, because what the world says to it is hostile.
    const inbound = { command: 'inbound-process', count: 1, ended: async () => {} }
    const webhooks = { command: 'webhooks-process', count: webhookProcesses, ended: (name: string) => forgetSender(db, name) }
    if (config.roles.includes('delivery')) open.push(startProcesses(delivery, { config, url, log, ending }))
    if (config.roles.includes('webhooks')) open.push(startProcesses(webhooks, { config, url, log, ending }))
    if (config.roles.includes('inbound')) {
      ensureCertificate(config, { clock, random: systemRandom })
      open.push(startProcesses(inbound, { config, url, log, ending }))
    }
    if (config.roles.includes('housekeeping'))
      open.push(
        startHousekeeping({
          db,
          clock,
          log,
          resolver: openResolver({ servers: config.resolvers, clock, ids }),
          hostname: config.hostname,
          keep: config,
          brake: config,
          limitSettings: openLimitSettings({ db, clock, config }),
        }),
      )
    if (config.roles.includes('api')) open.push(await startApi(config, db, secrets, log, ending, traces))
    open.push(startMeasuring({ db, clock, log, dataFolder: config.dataFolder }))
    console.log(shown ? welcome(config, shown) : `Postrider is running at ${config.publicUrl}`)
    if (config.roles.includes('inbound')) console.log(smtpPorts(config))
    await stop
    log.info('stopping')
  } finally {
    ended.abort()
    for (const role of open.reverse()) await role.stop()
    await traces?.stop()
    await db.close()
    await embedded?.stop()
    log.info('stopped')
  }
}

async function startApi(
  config: Config,
  db: Db,
  secrets: Secrets,
  log: Log,
  ending: AbortSignal,
  traces: Traces | undefined,
): Promise<{ stop(): Promise<void> }> {
  const tenants = openTenants({ db, clock })
  const domains = openDomains({ db, clock, secrets })
  const tracks = openTracks({ db, clock })
  const credentials = openCredentials({ db, clock })
  const limitSettings = openLimitSettings({ db, clock, config })
  const resolver = openResolver({ servers: config.resolvers, clock, ids })
  const sandboxDomain = config.sandboxSender.slice(config.sandboxSender.lastIndexOf('@') + 1)
  await ensurePlatformKey(db, sandboxDomain, { nowMs: clock.nowMs(), ids, secrets })
  const { sandboxSender, hostname, publicUrl } = config
  const commit = openCommit({ db, clock, limitSettings, reached })
  const accept = openAccept({ db, clock, ids, tenants, domains, tracks, limitSettings, sandboxSender, hostname, publicUrl, commit })
  const requestLogs = openRequestLogs({ db, clock, log, secrets })
  const hits = openHits({ db, clock, log, ids, keepEmailDays: config.keepEmailDays })
  const rateLimiter = openRateLimiter(clock)
  const presence = await openPresence({ db, clock, log, ending })
  const http = await startHttp({
    requestLogs,
    hits,
    tokens: openTokens(secrets),
    trackHosts: openTrackHosts({ db, clock }),
    sessions: openSessions({ db, clock, ids, secrets }),
    dashboardFolder,
    docsFolder,
    db,
    clock,
    ids,
    log,
    traces,
    secrets,
    tenants,
    domains,
    tracks,
    domainDesk: openDomainDesk({ db, clock, ids, secrets, tenants, resolver, hostname: config.hostname }),
    limitSettings,
    credentials,
    accept,
    resolver,
    standstills: openStandstills({ db, clock, resolver, config }),
    usage: openUsage({ db, clock }),
    live: openLive({ db, clock }),
    webhooks: openWebhooks({
      db,
      clock,
      ids,
      random: systemRandom,
      secrets,
      tenants,
      post: openPost({ resolver, guard: openGuard(config.allowedNetworks), openedNetworks: config.allowedNetworks, clock }),
      config,
      version,
      traces,
    }),
    config,
    installation: {
      version,
      settings: shownSettings(environment),
      examine: async () => {
        const records = await readPlatform({ config, db, clock, ids, secrets }, resolver)
        return examine({ db, clock, config, resolver, records, httpsPort })
      },
    },
    rateLimiter,
    keyRates: openKeyRates({ db, clock, rateLimiter, isAlone: () => presence.isAlone() }),
    ready: () => true,
  })
  const uses = saveUsesOf(credentials, log)
  return {
    async stop() {
      await http.stop()
      await presence.stop()
      await Promise.all([requestLogs.stop(), hits.stop()])
      await uses.stop()
    },
  }
}

/** Writes down when keys were last used, every few seconds and at the end. */
function saveUsesOf(credentials: Credentials, log: Log): { stop(): Promise<void> } {
  const saving = startLoop({ clock, log, name: 'saving the last uses of keys', everyMs: saveUsesEveryMs }, () => credentials.saveUses())
  return {
    async stop() {
      await saving.stop()
      await credentials.saveUses().catch(() => undefined)
    },
  }
}

/** Processes of a role that this one starts, and starts again when they die. */
function startProcesses(
  role: { command: string; count: number; ended: (name: string) => Promise<void> },
  { config, url, log, ending }: { config: Config; url: string; log: Log; ending: AbortSignal },
): Children {
  return startChildren({
    script,
    argumentsFor: (name) => [role.command, name],
    environment: { ...environment, DATABASE_URL: url, POSTRIDER_SECRET: readSecret(config) },
    count: role.count,
    newName: () => `${config.hostname}-${ids.token(12)}`,
    ended: role.ended,
    ending,
    clock,
    log,
  })
}

async function deliver(processId: string): Promise<void> {
  const config = readConfig(environment)
  const log = openLog(config.logLevel, `delivery ${processId}`)
  const stop = untilSignal()
  const traces = await tracesOf(config, log, 'delivery')
  const secrets = openSecrets(readSecret(config), systemRandom)
  const db = await openDb({
    url: withOptions(config.databaseUrl as string, deliverySettings),
    poolSize: deliveryConnections,
    applicationName: `postrider delivery ${processId}`,
    log,
  })
  const tenants = openTenants({ db, clock })
  const resolver = openResolver({ servers: config.resolvers, clock, ids })
  const returns = openReturns({ db, clock, ids, log, secrets, tenants, resolver, hostname: config.hostname, readReport })
  const delivery = await startDelivery({
    db,
    clock,
    ids,
    log,
    traces,
    secrets,
    domains: openDomains({ db, clock, secrets }),
    tenants,
    config,
    processId,
    takeReport: returns.takeReport,
    reached,
  })
  await stop
  await delivery.stop()
  await traces?.stop()
  await db.close()
}

async function receive(): Promise<void> {
  const config = readConfig(environment)
  const log = openLog(config.logLevel, 'inbound')
  const stop = untilSignal()
  const traces = await tracesOf(config, log, 'inbound')
  const secrets = openSecrets(readSecret(config), systemRandom)
  const db = await openDb({ url: config.databaseUrl as string, poolSize: inboundConnections, applicationName: 'postrider inbound', log })
  const credentials = openCredentials({ db, clock })
  const limitSettings = openLimitSettings({ db, clock, config })
  const tenants = openTenants({ db, clock })
  const accept = openAccept({
    db,
    clock,
    ids,
    tenants,
    domains: openDomains({ db, clock, secrets }),
    tracks: openTracks({ db, clock }),
    limitSettings,
    sandboxSender: config.sandboxSender,
    hostname: config.hostname,
    publicUrl: config.publicUrl,
    commit: openCommit({ db, clock, limitSettings, reached }),
  })
  const resolver = openResolver({ servers: config.resolvers, clock, ids })
  const returns = openReturns({ db, clock, ids, log, secrets, tenants, resolver, hostname: config.hostname, readReport })
  const uses = saveUsesOf(credentials, log)
  const inbound = await startInbound({ db, clock, log, traces, accept, credentials, returns, config })
  await stop
  await inbound.stop()
  await traces?.stop()
  await uses.stop()
  await db.close()
}

async function sendWebhooks(processId: string): Promise<void> {
  const config = readConfig(environment)
  const log = openLog(config.logLevel, `webhooks ${processId}`)
  const stop = untilSignal()
  const traces = await tracesOf(config, log, 'webhooks')
  const secrets = openSecrets(readSecret(config), systemRandom)
  const url = config.databaseUrl as string
  const db = await openDb({ url, poolSize: webhookConnections, applicationName: `postrider webhooks ${processId}`, log })
  const resolver = openResolver({ servers: config.resolvers, clock, ids })
  const { allowedNetworks: openedNetworks } = config
  const post = openPost({ resolver, guard: openGuard(openedNetworks), openedNetworks, clock, keepIdleMs: webhookIdleMs })
  const sending = await startSending({ db, clock, ids, log, traces, secrets, post, bodies: openBodies({ db }), config, version, processId })
  await stop
  await sending.stop()
  await traces?.stop()
  await db.close()
}

/** Ctrl-C, SIGTERM, or the end of the parent process. */
function untilSignal(): Promise<void> {
  return new Promise((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => resolve())
    process.once('disconnect', () => resolve())
  })
}

tellParent(clock)
const exitCode = await runCommand(process.argv.slice(2), {
  environment,
  version,
  clock,
  withHouse,
  withBareHouse,
  secretOf: readSecret,
  untilSignal,
  serve,
  deliver,
  receive,
  sendWebhooks,
  print: (text) => console.log(text),
})
process.exit(exitCode)
