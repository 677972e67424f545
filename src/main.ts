/**
 * Composition root: settings, database, records, roles, orderly stop, in this order. `postrider serve` is this file; other commands get
 * their dependencies from here. `src/main/` has the roles and connects the modules of each. Resources shared by roles are opened here once
 * per process. A role opens its own. Every process loads this file's static imports, and `serve` does so before it starts PostgreSQL: they are
 * few. Each process loads the other modules that it needs.
 */
import { createInterface } from 'node:readline/promises'
import {
  type Config,
  type HostedRole,
  hostedRoleNames,
  type Log,
  openLog,
  openSecrets,
  pause,
  readConfig,
  reportToParent,
  signalReady,
  startMemoryManagement,
  systemRandom,
} from '#base'
import { databaseNowMs, durabilityProblems, migrate, openDb, refuseCopiedLog, startEmbedded } from '#db'
import type { openLocalApi } from '#http'
import { type FirstStart, firstStart, followRing, givenSecrets, openInstallations, openRing, waitForCommand, welcome } from '#installation'
import { apiConnections, hostRole, loadRole, maxConnections, openRoleDb } from './main/hosted-roles.ts'
import { clock, environment, failpoint, type Ground, ids, type RunningRole, tracesOf, version } from './main/process.ts'

/** A start during a failover waits for the promotion; machines may also start before their database. */
const databaseWaitMs = 60_000
/** The keys of a first start do not wait longer for SMTP listeners that cannot start. */
const welcomeWithinMs = 5000

const smtpPorts = ({ smtpHost, smtpPort, submissionPort, submissionTlsPort }: Config) =>
  `SMTP on ${smtpHost}: submission ${submissionPort} (STARTTLS) and ${submissionTlsPort} (TLS), incoming mail ${smtpPort}`

async function serve(): Promise<void> {
  const config = readConfig(environment)
  const log = openLog(config, 'serve')
  if (failpoint) log.warn('POSTRIDER_FAILPOINTS is set: a crash test can kill this service')
  const ended = new AbortController()
  const ending = ended.signal
  const stop = untilSignal().then(() => ended.abort())
  await waitForCommand(config, { clock, log, ending })
  if (ending.aborted) return log.info('stopped while waiting for a command')
  const traces = await tracesOf(config, log, 'serve')
  const given = givenSecrets(config, ids)
  const secrets = openSecrets(given[0], systemRandom)
  const embedded = config.databaseUrl === undefined ? await startOwnServer(config, log) : undefined
  const url = config.databaseUrl ?? (embedded?.url as string)
  const loading = loadRoles(config)
  const opened = openDb({ url, poolSize: apiConnections, applicationName: 'postrider serve', log, waitMs: databaseWaitMs, ending })
  const db = await opened.catch(async (error: unknown) => {
    await embedded?.stop()
    if (!ending.aborted) throw error
  })
  if (!db) return log.info('stopped while waiting for the database')
  const ground = { config, log, traces, secrets, db }
  const open: RunningRole[] = []
  let unshown: FirstStart | undefined
  const showKeys = (isRunning: boolean) => {
    if (unshown) console.log(welcome(config, unshown, isRunning))
    unshown = undefined
  }
  try {
    // Before the migrations: a program with a missing file changes nothing.
    await loading
    unshown = await makeReady(ground, given)
    if (ending.aborted) return
    const { smtpReady } = await startRoles(ground, { url, ending, open })
    if (!unshown) console.log(`Postrider is running at ${config.publicUrl}`)
    if (config.roles.includes('inbound')) console.log(smtpPorts(config))
    // Last on the screen: the keys are shown only once, and a process that starts may still write log lines.
    if (unshown && process.stdout.isTTY) await Promise.race([smtpReady, pause(clock, welcomeWithinMs, ending)])
    showKeys(true)
    await stop
    log.info('stopping')
  } finally {
    ended.abort()
    // The next start does not create them again.
    showKeys(false)
    try {
      await stopAll(open)
    } finally {
      await traces?.stop()
      await db.close()
      await embedded?.stop()
    }
    log.info('stopped')
  }
}

/**
 * Stops all roles at once, as a signal to every process of the service does: without a database each waits a while for it, and these times must
 * not add up.
 */
async function stopAll(roles: readonly RunningRole[]): Promise<void> {
  const ends = await Promise.allSettled(roles.map(async (role) => role.stop()))
  const failed = ends.find((end) => end.status === 'rejected')
  if (failed) throw failed.reason
}

/** The embedded PostgreSQL. */
function startOwnServer(config: Config, log: Log) {
  const connections = maxConnections(config)
  return startEmbedded({ folder: config.dataDirectory, clock, log, connections, started: () => void loadRoles(config) })
}

/** Loads the modules of the roles, while PostgreSQL starts. Node keeps loaded modules, so a further call only waits for them. */
function loadRoles({ roles, https }: Config): Promise<unknown> {
  const loading = Promise.all([
    import('#delivery'),
    import('#doctor'),
    import('#housekeeping'),
    roles.includes('api') && import('./main/api-role.ts'),
    roles.includes('housekeeping') && import('./main/housekeeping-role.ts'),
    roles.includes('inbound') && import('#inbound'),
    https && import('./main/https-ports.ts'),
  ])
  // Its caller may await it later, or not at all.
  loading.catch(() => undefined)
  return loading
}

/** Prepares the database for the roles; the result of a first start is shown once. */
async function makeReady({ config, log, secrets, db }: Ground, given: readonly string[]): Promise<FirstStart | undefined> {
  const [{ ensureUpcomingPartitions }, { holdAfterRestore }] = await Promise.all([import('#housekeeping'), import('#delivery')])
  await migrate(db, clock, { log })
  const ensurePartitions = async () => {
    for (const ms of [clock.nowMs(), await databaseNowMs(db)]) await ensureUpcomingPartitions(db, ms)
  }
  await Promise.all([refuseCopiedLog(db), ensurePartitions()])
  await openRing(db, secrets, given)
  await holdAfterRestore(db, clock.nowMs())
  for (const problem of await durabilityProblems(db)) log.warn(problem)
  return firstStart(config, db, { clock, ids, secrets })
}

/** In this order. Started roles are in `open`, even if a later one fails. `smtpReady` resolves when the SMTP listeners listen. */
async function startRoles(
  ground: Ground,
  { url, ending, open }: { url: string; ending: AbortSignal; open: RunningRole[] },
): Promise<{ smtpReady: Promise<void> }> {
  const { config, log, secrets, db } = ground
  const wants = new Set(config.roles)
  const host = (role: HostedRole) => {
    const children = hostRole(role, ground, { url, ending })
    open.push(children)
    return children
  }
  open.push(followRing({ db, clock, log, secrets }), startMemoryManagement({ clock, log }))
  if (wants.has('delivery')) host('delivery')
  if (wants.has('webhooks')) host('webhooks')
  if (wants.has('inbound')) (await import('#inbound')).ensureCertificate(config, { clock, random: systemRandom })
  const listeners = wants.has('inbound') ? host('inbound') : undefined
  if (wants.has('housekeeping')) {
    const { openDnsUpdates, openHousekeeping, openMtaSts, openTlsReports } = await import('./main/housekeeping-role.ts')
    open.push(await openHousekeeping(ground), openMtaSts(ground))
    if (config.dnsUpdate) open.push(await openDnsUpdates(ground, config.dnsUpdate))
    if (config.tlsReports) open.push(await openTlsReports(ground, config.tlsReports))
  }
  const usesHttps = config.https && (wants.has('api') || wants.has('inbound'))
  const https = usesHttps ? await (await import('./main/https-ports.ts')).openHttps(ground) : undefined
  if (https) open.push(https)
  const smtp = listeners && (() => listeners.ready > 0)
  if (wants.has('api')) open.push(await (await import('./main/api-role.ts')).startApi(ground, { ending, smtp, https: https?.serving }))
  // Once all ports are open that the certificate authority connects to.
  await https?.obtain()
  const { startHealthMetrics } = await import('#doctor')
  open.push(startHealthMetrics({ db, clock, log, dataFolder: config.dataDirectory }))
  return { smtpReady: listeners?.allReady ?? Promise.resolve() }
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
  const background = [followRing({ db, clock, log, secrets }), startMemoryManagement({ clock, log })]
  const start = await loadRole(role)
  const running = await start({ config, log, traces, secrets, db }, name)
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
