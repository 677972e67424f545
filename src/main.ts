/**
 * Composition root: the only place where modules are connected, in order: settings, database, records, roles, orderly stop. `postrider
 * serve` is this file; other commands get their dependencies from here. Resources shared by roles are opened here once per process, so it
 * is longer than other files. A role opens its own. Modules that not every process needs are loaded where it needs them: a process of one role
 * starts in half of the time.
 */
import { readFileSync } from 'node:fs'
import { createInterface } from 'node:readline/promises'
import { openAccept, openCommit, openOwnMail } from '#accept'
import {
  type Children,
  type Config,
  type DnsUpdateTarget,
  type HostedRole,
  hostedRoleNames,
  type Ids,
  type Log,
  openFailpoints,
  openIds,
  openLog,
  openSecrets,
  openTraces,
  pause,
  readConfig,
  readFromParent,
  reportToParent,
  type Secrets,
  shownSettings,
  signalReady,
  startChildren,
  startInProcess,
  startLoop,
  startMemoryTrim,
  systemClock,
  systemRandom,
  type TlsReporter,
  type Traces,
  takeEnvironment,
} from '#base'
import { readReport } from '#bounces'
import type { ChallengeKind } from '#certificates'
import { type Credentials, openCredentials } from '#credentials'
import { type Db, durabilityProblems, migrate, openDb, startEmbedded } from '#db'
import { ensurePlatformKey, openDomains } from '#domains'
import type { HttpDeps, openLocalApi } from '#http'
import { type FirstStart, firstStart, followRing, givenSecrets, openInstallations, openRing, welcome } from '#installation'
import { openLimitSettings, openPresence } from '#limits'
import { openGuard, openPost, openResolver } from '#net'
import { openReader, openReturns, readHere } from '#returns'
import { deregisterProcess, openWaker, shardLeases } from '#spool'
import { openTenants } from '#tenants'
import { listVerifiedNames, openTracks } from '#tracking'

const clock = systemClock
const ids: Ids = openIds(systemRandom)
/** Secret variables are removed, so that child processes do not inherit them. */
const environment = { ...takeEnvironment(process.env), ...readFromParent(process.env) }
/** For `postrider crash-test`; undefined otherwise. */
const failpoint = openFailpoints(environment.POSTRIDER_FAILPOINTS)
const script = new URL('../bin/postrider.js', import.meta.url).pathname
const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as { version: string }
const dashboardFolder = new URL('../dashboard/dist', import.meta.url).pathname
const referenceFolder = new URL('../dashboard/reference', import.meta.url).pathname
const docsFolder = new URL('../docs', import.meta.url).pathname
/** The HTTPS port of track domains. */
const httpsPort = 443
const apiConnections = 12
/** Shorter than the five seconds after which many receivers close an unused connection. */
const webhookIdleMs = 3000
const saveUsesEveryMs = 10_000
/** A start during a failover waits for the promotion; machines may also start before their database. */
const databaseWaitMs = 60_000
/** The keys of a first start do not wait longer for SMTP listeners that cannot start. */
const welcomeWithinMs = 5000

/** The statements of the hot path find their rows by index; a plan made while a table was empty must not scan it when it is full. */
const deliverySettings = { enable_seqscan: 'off', enable_hashjoin: 'off', enable_mergejoin: 'off', enable_bitmapscan: 'off', jit: 'off' }

const tracesOf = (config: Config, log: Log, role: string) => openTraces(config, { clock, log, random: systemRandom, version, role })

const smtpPorts = ({ smtpHost, smtpPort, submissionPort, submissionTlsPort }: Config) =>
  `SMTP on ${smtpHost}: submission ${submissionPort} (STARTTLS) and ${submissionTlsPort} (TLS), incoming mail ${smtpPort}`

/** The resources that every process of the service needs. */
interface Ground {
  config: Config
  log: Log
  traces: Traces | undefined
  secrets: Secrets
  db: Db
}

interface Role {
  stop(): Promise<void>
}

async function serve(): Promise<void> {
  const config = readConfig(environment)
  const log = openLog(config, 'serve')
  if (failpoint) log.warn('POSTRIDER_FAILPOINTS is set: a crash test can kill this service')
  const ended = new AbortController()
  const ending = ended.signal
  const stop = untilSignal().then(() => ended.abort())
  const traces = await tracesOf(config, log, 'serve')
  const given = givenSecrets(config, ids)
  const secrets = openSecrets(given[0], systemRandom)
  const embedded =
    config.databaseUrl === undefined ? await startEmbedded({ folder: config.dataDirectory, clock, log, started: loadRoles }) : undefined
  const url = config.databaseUrl ?? (embedded?.url as string)
  const db = await openDb({ url, poolSize: apiConnections, applicationName: 'postrider serve', log, waitMs: databaseWaitMs, ending }).catch(
    async (error: unknown) => {
      await embedded?.stop()
      if (!ending.aborted) throw error
    },
  )
  if (!db) return log.info('stopped while waiting for the database')
  const ground = { config, log, traces, secrets, db }
  const open: Role[] = []
  try {
    const shown = await makeReady(ground, given)
    if (ending.aborted) {
      if (shown) console.log(welcome(config, shown))
      return
    }
    const { smtpReady } = await startRoles(ground, { url, ending, open })
    if (!shown) console.log(`Postrider is running at ${config.publicUrl}`)
    if (config.roles.includes('inbound')) console.log(smtpPorts(config))
    // Last on the screen: the keys are shown only once, and a process that starts may still write log lines.
    if (shown && process.stdout.isTTY) await Promise.race([smtpReady, pause(clock, welcomeWithinMs, ending)])
    if (shown) console.log(welcome(config, shown))
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

/** Loads modules of the service while PostgreSQL starts, which takes about as long. A fault appears where they are used. */
function loadRoles(): void {
  Promise.all([import('#http'), import('#doctor'), import('#housekeeping'), import('#delivery')]).catch(() => undefined)
}

/** Prepares the database for the roles; the result of a first start is shown once. */
async function makeReady({ config, log, secrets, db }: Ground, given: readonly string[]): Promise<FirstStart | undefined> {
  const [{ ensureUpcomingPartitions }, { holdAfterRestore }] = await Promise.all([import('#housekeeping'), import('#delivery')])
  await migrate(db, clock)
  await ensureUpcomingPartitions(db, clock.nowMs())
  await openRing(db, secrets, given)
  await holdAfterRestore(db, clock.nowMs())
  for (const problem of await durabilityProblems(db)) log.warn(problem)
  return firstStart(config, db, { clock, ids, secrets })
}

/** In this order. Started roles are in `open`, even if a later one fails. `smtpReady` resolves when the SMTP listeners listen. */
async function startRoles(
  ground: Ground,
  { url, ending, open }: { url: string; ending: AbortSignal; open: Role[] },
): Promise<{ smtpReady: Promise<void> }> {
  const { config, log, secrets, db } = ground
  const wants = new Set(config.roles)
  const host = (role: HostedRole) => {
    const children = hostRole(role, ground, { url, ending })
    open.push(children)
    return children
  }
  open.push(followRing({ db, clock, log, secrets }), startMemoryTrim({ clock, log }))
  if (wants.has('delivery')) host('delivery')
  if (wants.has('webhooks')) host('webhooks')
  if (wants.has('inbound')) (await import('#inbound')).ensureCertificate(config, { clock, random: systemRandom })
  const listeners = wants.has('inbound') ? host('inbound') : undefined
  if (wants.has('housekeeping')) {
    const { startHousekeeping } = await import('#housekeeping')
    open.push(
      await startHousekeeping({
        db,
        clock,
        log,
        resolver: openResolver({ servers: config.resolvers, clock, ids }),
        hostname: config.hostname,
        keep: config,
        brake: config,
        limitSettings: openLimitSettings({ db, clock, config }),
        reputation: config,
        keyRotation: { ids, secrets, config, resolvers: eachResolver(config) },
      }),
    )
    if (config.dnsUpdate) open.push(await openDnsUpdates(ground, config.dnsUpdate))
    if (config.tlsReports) open.push(await openTlsReports(ground, config.tlsReports))
  }
  const https = config.https && (wants.has('api') || wants.has('inbound')) ? await openHttps(ground) : undefined
  if (https) open.push(https)
  const smtp = listeners && (() => listeners.ready > 0)
  if (wants.has('api')) open.push(await startApi(ground, { ending, smtp, https: https?.serving }))
  // Once all ports are open that the certificate authority connects to.
  await https?.obtain()
  const { startHealthMetrics } = await import('#doctor')
  open.push(startHealthMetrics({ db, clock, log, dataFolder: config.dataDirectory }))
  return { smtpReady: listeners?.allReady ?? Promise.resolve() }
}

/** Writes the platform's own DNS records. */
async function openDnsUpdates({ config, log, secrets, db }: Ground, target: DnsUpdateTarget): Promise<Role> {
  const [{ startDnsUpdates }, { readPlatform }] = await Promise.all([import('#dns-updates'), import('#doctor')])
  const resolver = openResolver({ servers: config.resolvers, clock, ids })
  return startDnsUpdates({
    db,
    clock,
    log,
    random: () => ids.random(),
    target,
    hostname: config.hostname,
    resolver,
    readPlatform: () => readPlatform({ config, db, clock, ids, secrets }, resolver),
  })
}

/** Sends TLS reports about the mail servers of others. */
async function openTlsReports({ config, log, secrets, db }: Ground, reporter: TlsReporter): Promise<Role> {
  const { startTlsReports } = await import('#tls-reports')
  const { hostname, sandboxSender, allowedNetworks: openedNetworks } = config
  const senderDomain = sandboxSender.slice(sandboxSender.lastIndexOf('@') + 1)
  await ensurePlatformKey(db, senderDomain, { nowMs: clock.nowMs(), ids, secrets })
  const limitSettings = openLimitSettings({ db, clock, config })
  const commit = openCommit({ db, clock, ids, limitSettings, wake: openWaker({ db, clock }), failpoint })
  const submit = openOwnMail({ clock, ids, tenants: openTenants({ db, clock }), commit, hostname })
  const resolver = openResolver({ servers: config.resolvers, clock, ids })
  const post = openPost({ resolver, guard: openGuard(openedNetworks), openedNetworks, clock })
  const sending = startTlsReports({ db, clock, log, resolver, post, submit, reporter, senderDomain, hostname })
  // Not awaited: a receiver of reports may be slow, and the rest of the stop would wait. An unfinished report is repeated later.
  return { stop: async () => void sending.stop() }
}

/** One for each resolver of the settings, or one for those of the system. */
const eachResolver = ({ resolvers }: Config) =>
  (resolvers.length > 0 ? resolvers.map((one) => [one]) : [[]]).map((servers) => openResolver({ servers, clock, ids }))

/**
 * For glibc's allocator: large blocks are mapped individually and so returned when freed. Without it a freed block of 10 MB makes it keep
 * all smaller ones.
 */
const memoryGivenBack = { MALLOC_ARENA_MAX: '2', MALLOC_MMAP_THRESHOLD_: '1048576' }

/** Starts a role in processes of its own, and restarts them when they die; or in this process, where the settings say so. */
function hostRole(role: HostedRole, ground: Ground, { url, ending }: { url: string; ending: AbortSignal }): Children {
  const { config, log, secrets, db } = ground
  const common = {
    newName: () => `${config.hostname}-${ids.token(12)}`,
    ended: (name: string) => hostedRoles[role].ended(db, name),
    ending,
    clock,
    log,
  }
  if (!config.separateProcesses.includes(role))
    return startInProcess({ ...common, start: (name) => startHere(role, name, url, { ...ground, log: openLog(config, role) }) })
  return startChildren({
    ...common,
    script,
    argumentsFor: (name) => [`${role}-process`, name],
    // Only the secret in force when the child starts.
    environment: () => ({
      ...memoryGivenBack,
      ...environment,
      DATABASE_URL: url,
      DATABASE_URL_FILE: undefined,
      POSTRIDER_SECRET: secrets.textOf(secrets.fingerprint),
      POSTRIDER_SECRET_FILE: undefined,
      POSTRIDER_SECRET_NEW: undefined,
      POSTRIDER_SECRET_NEW_FILE: undefined,
    }),
    count: role === 'delivery' ? config.deliveryProcesses : 1,
  })
}

/** The acceptance pipeline, for the API's process and that of the SMTP listeners. */
function openAcceptance({ config, log, secrets, db }: Ground) {
  const tenants = openTenants({ db, clock })
  const domains = openDomains({ db, clock, secrets })
  const tracks = openTracks({ db, clock })
  const limitSettings = openLimitSettings({ db, clock, config })
  const commit = openCommit({ db, clock, ids, limitSettings, wake: openWaker({ db, clock }), failpoint })
  const { sandboxSender, hostname, publicUrl, feedbackId } = config
  const facts = { sandboxSender, hostname, publicUrl, feedbackId }
  const accept = openAccept({ db, clock, ids, tenants, domains, tracks, limitSettings, ...facts, commit })
  const credentials = openCredentials({ db, clock })
  return { tenants, domains, tracks, limitSettings, accept, credentials, uses: saveUsesOf(credentials, log) }
}

/** Saves when keys were last used, every few seconds and at the end. */
function saveUsesOf(credentials: Credentials, log: Log): Role {
  const saving = startLoop({ clock, log, name: 'saving last-used times of keys', everyMs: saveUsesEveryMs }, () => credentials.saveUses())
  return {
    async stop() {
      await saving.stop()
      await credentials.saveUses().catch(() => undefined)
    },
  }
}

/** The parts of POSTRIDER_HTTPS that belong to no role: the HTTP port, and the orders for the names that lead to this instance. */
async function openHttps({ config, log, secrets, db }: Ground) {
  const [certificates, { openPlainPort }] = await Promise.all([import('#certificates'), import('#http')])
  const { openCertificateStore, openChallengeBook, openChallengeContexts, startObtaining } = certificates
  const hasApi = config.roles.includes('api')
  const challenges = openChallengeBook({ db, clock })
  const store = await openCertificateStore({ db, clock, log, secrets })
  const port = await openPlainPort({ challenges, log, config })
  const opened: { stop(): unknown }[] = [port, store]
  const kinds: readonly ChallengeKind[] = hasApi ? ['http-01', 'tls-alpn-01'] : ['http-01']
  const smtpNames = config.roles.includes('inbound') && config.tlsCert === undefined ? [config.hostname] : []
  return {
    serving: { store, challengeContexts: openChallengeContexts(challenges) },
    async obtain() {
      const loop = await startObtaining({
        db,
        clock,
        log,
        ids,
        secrets,
        directory: config.acmeDirectory,
        contact: config.acmeContact,
        own: [...new Set([...(hasApi ? [new URL(config.publicUrl).hostname] : []), ...smtpNames])],
        listTenantNames: async () => (hasApi ? listVerifiedNames(db) : []),
        challenges: kinds,
      })
      opened.unshift(loop)
    },
    async stop() {
      for (const one of opened) await one.stop()
    },
  }
}

interface ApiFacts {
  ending: AbortSignal
  smtp: (() => boolean) | undefined
  https: HttpDeps['https']
}

async function startApi(ground: Ground, { ending, smtp, https }: ApiFacts): Promise<Role> {
  const { config, log, traces, secrets, db } = ground
  const [{ startHttp }, { publicAddresses, readPlatform, runChecks }] = await Promise.all([import('#http'), import('#doctor')])
  const { uses, ...acceptance } = openAcceptance(ground)
  const resolver = openResolver({ servers: config.resolvers, clock, ids })
  const { sandboxSender } = config
  const sandboxDomain = sandboxSender.slice(sandboxSender.lastIndexOf('@') + 1)
  await ensurePlatformKey(db, sandboxDomain, { nowMs: clock.nowMs(), ids, secrets })
  const presence = await openPresence({ db, clock, log, ending })
  const http = await startHttp({
    ...acceptance,
    config,
    log,
    traces,
    secrets,
    db,
    clock,
    ids,
    random: systemRandom,
    resolver,
    isAlone: () => presence.isAlone(),
    dashboardFolder,
    referenceFolder,
    docsFolder,
    installation: {
      version,
      settings: shownSettings(environment),
      runChecks: async () => {
        const records = await readPlatform({ config, db, clock, ids, secrets }, resolver)
        return runChecks({ db, clock, config, resolver, records, ownAddresses: publicAddresses(), httpsPort })
      },
    },
    smtp,
    https,
  })
  return {
    async stop() {
      await http.stop()
      await presence.stop()
      await uses.stop()
    },
  }
}

/** A role that may have processes of its own. */
interface Hosted {
  poolSize: number
  databaseSettings?: Readonly<Record<string, string>>
  /** `name`: unique among all processes, ever. */
  start(ground: Ground, name: string): Promise<Role>
  /** Called when the process of this name has ended. */
  ended(db: Db, name: string): Promise<void>
}

const hostedRoles: Record<HostedRole, Hosted> = {
  delivery: {
    poolSize: 6,
    databaseSettings: deliverySettings,
    async start({ config, log, traces, secrets, db }, processId) {
      const { startDelivery } = await import('#delivery')
      const tenants = openTenants({ db, clock })
      const domains = openDomains({ db, clock, secrets })
      const resolver = openResolver({ servers: config.resolvers, clock, ids })
      const { hostname } = config
      const { takeReport } = openReturns({ db, clock, ids, log, secrets, tenants, resolver, hostname, read: readHere(readReport) })
      return startDelivery({ db, clock, ids, log, traces, secrets, domains, tenants, config, processId, takeReport, failpoint })
    },
    ended: (db, name) => deregisterProcess(db, shardLeases, name),
  },
  inbound: { poolSize: 8, start: startListeners, ended: async () => {} },
  webhooks: {
    poolSize: 6,
    async start({ config, log, traces, secrets, db }, processId) {
      const { openPayloadBodies, startSending } = await import('#webhooks')
      const resolver = openResolver({ servers: config.resolvers, clock, ids })
      const { allowedNetworks: openedNetworks } = config
      const post = openPost({ resolver, guard: openGuard(openedNetworks), openedNetworks, clock, keepIdleMs: webhookIdleMs })
      const bodies = openPayloadBodies({ db, publicUrl: config.publicUrl })
      return startSending({ db, clock, ids, log, traces, secrets, post, bodies, config, version, processId })
    },
    ended: async (db, name) => (await import('#webhooks')).deregisterSender(db, name),
  },
}

async function startListeners(ground: Ground): Promise<Role> {
  const { startInbound } = await import('#inbound')
  const { config, log, traces, secrets, db } = ground
  const { tenants, domains, accept, credentials, uses } = openAcceptance(ground)
  const resolver = openResolver({ servers: config.resolvers, clock, ids })
  const reader = openReader({ clock, log })
  const { hostname } = config
  const returns = openReturns({ db, clock, ids, log, secrets, tenants, resolver, hostname, read: reader.read })
  const { openDomainReports, openReportMailReader } = await import('#domain-reports')
  const mailReader = openReportMailReader({ clock, log })
  const reports = openDomainReports({ db, clock, log, secrets, resolver, hostname, read: mailReader.read })
  const { openReceivedMailReader, openReceiving } = await import('#received-mail')
  const routeReader = openReceivedMailReader({ clock, log })
  const receiving = { db, clock, ids, log, domains, tenants, resolver, hostname, read: routeReader.read }
  const routes = openReceiving({ ...receiving, forward: (octets, to, by) => accept.forwardRouted(octets, to, by) })
  const store = config.https ? await (await import('#certificates')).openCertificateStore({ db, clock, log, secrets }) : undefined
  const inbound = await startInbound({ db, clock, log, traces, accept, credentials, returns, reports, routes, config, store })
  return {
    async stop() {
      await inbound.stop()
      await store?.stop()
      reader.stop()
      mailReader.stop()
      routeReader.stop()
      await uses.stop()
    },
  }
}

/** Database connections for one role. */
const openRoleDb = (role: HostedRole, name: string, url: string, log: Log): Promise<Db> => {
  const { poolSize, databaseSettings } = hostedRoles[role]
  return openDb({ url, poolSize, applicationName: `postrider ${role} ${name}`, settings: databaseSettings, log })
}

/** Starts a role in this process, with database connections of its own. */
async function startHere(role: HostedRole, name: string, url: string, ground: Ground): Promise<Role> {
  const db = await openRoleDb(role, name, url, ground.log)
  const traces = await tracesOf(ground.config, ground.log, role)
  const end = async () => {
    await traces?.stop()
    await db.close()
  }
  try {
    const running = await hostedRoles[role].start({ ...ground, traces, db }, name)
    return {
      async stop() {
        await running.stop()
        await end()
      },
    }
  } catch (error) {
    await end()
    throw error
  }
}

/** Runs one role in this process, which `serve` started. `name`: for the log and the database. */
async function runRole(role: HostedRole, name: string): Promise<void> {
  const config = readConfig(environment)
  const log = openLog(config, `${role} ${name}`)
  const stop = untilSignal()
  const traces = await tracesOf(config, log, role)
  const given = givenSecrets(config, ids)
  const secrets = openSecrets(given[0], systemRandom)
  const db = await openRoleDb(role, name, config.databaseUrl as string, log)
  await openRing(db, secrets, given)
  const background = [followRing({ db, clock, log, secrets }), startMemoryTrim({ clock, log })]
  const running = await hostedRoles[role].start({ config, log, traces, secrets, db }, name)
  signalReady()
  await stop
  await running.stop()
  await Promise.all(background.map((loop) => loop.stop()))
  await traces?.stop()
  await db.close()
}

/** The main function of such a process; returns its exit code. */
async function runAlone(role: HostedRole, name: string): Promise<number> {
  try {
    await runRole(role, name)
    return 0
  } catch (error) {
    console.error((error as Error).message)
    return 1
  }
}

/** The API of an installation, loaded at its first request. */
const localApi: typeof openLocalApi = (deps) => {
  let opened: Promise<ReturnType<typeof openLocalApi>> | undefined
  return async (url, init) => {
    opened ??= import('#http').then((http) => http.openLocalApi(deps))
    return (await opened)(url, init)
  }
}

/** Every other command; returns its exit code. */
async function runCli(): Promise<number> {
  const { runCommand } = await import('#cli')
  return runCommand(process.argv.slice(2), {
    environment,
    version,
    clock,
    ...openInstallations({ environment, clock, ids, random: systemRandom, version }),
    untilSignal,
    serve,
    print: (text) => console.log(text),
    openLocalApi: localApi,
    ask: process.stdin.isTTY && process.stderr.isTTY ? ask : undefined,
    failpoint,
  })
}

/** Ctrl-C, SIGTERM, or the end of the parent process. */
function untilSignal(): Promise<void> {
  return new Promise((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => resolve())
    process.once('disconnect', () => resolve())
  })
}

/** On standard error, because standard output may be redirected. */
async function ask(question: string): Promise<string> {
  const lines = createInterface({ input: process.stdin, output: process.stderr })
  return lines.question(question).finally(() => lines.close())
}

reportToParent(clock)
const [command, processName] = process.argv.slice(2)
const role = hostedRoleNames.find((one) => command === `${one}-process`)
process.exit(role !== undefined && processName !== undefined ? await runAlone(role, processName) : await runCli())
