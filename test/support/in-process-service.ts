/**
 * A real service in this process, with its own database and port, for tests of the whole program. Only the external world is simulated.
 * `stop()` or `await using` stops it.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openAccept, openCommit, openOwnMail } from '#accept'
import {
  type Clock,
  type Log,
  openIds,
  openSecrets,
  pause,
  readConfig,
  type Secrets,
  shownSettings,
  silentLog,
  systemClock,
  systemRandom,
} from '#base'
import { createKey, openCredentials, type Permission } from '#credentials'
import type { Db } from '#db'
import { type DeliveryDeps, startDelivery } from '#delivery'
import { readPlatform, runChecks } from '#doctor'
import { openDomainReports, openReportMailReader } from '#domain-reports'
import { addDomain, ensurePlatformKey, makeDomain, openDomains } from '#domains'
import { ensureUpcomingPartitions, startHousekeeping } from '#housekeeping'
import { type HttpDeps, startHttp } from '#http'
import { ensureCertificate, type Inbound, type InboundDeps, type ReturnHandler, startInbound } from '#inbound'
import { openLimitSettings } from '#limits'
import { openGuard, openPost, openResolver } from '#net'
import { openReceivedMailReader, openReceiving, type ReceivingDeps } from '#received-mail'
import { openReader, openReturns } from '#returns'
import { simulatorDomain } from '#simulator'
import { openWaker } from '#spool'
import { addTenant, createOrganisation, openTenants } from '#tenants'
import { startTlsReports } from '#tls-reports'
import { openTracks } from '#tracking'
import { testDatabase } from './database.ts'
import { expectCounted } from './expect-counts.ts'
import { expectInOpenApi } from './openapi-check.ts'

export interface ServiceOptions {
  /** Requests per second of a key; null means unlimited. */
  rateLimit?: number | null
  /** Emails per hour; null means unlimited. */
  sendLimit?: number | null
  /** Other settings, by the names of their environment variables. */
  settings?: Record<string, string>
  /** In addition to the API. */
  roles?: readonly ('delivery' | 'housekeeping' | 'inbound')[]
  returns?: ReturnHandler
  reports?: ReturnHandler
  receiving?: Partial<ReceivingDeps>
  smtpBounds?: InboundDeps['bounds']
  deliveryBounds?: DeliveryDeps['bounds']
  bounds?: HttpDeps['bounds']
  clock?: Clock
  log?: Log
  /** Serves HTTPS as well; the SMTP listeners have its certificates. */
  https?: (ground: { db: Db; clock: Clock; log: Log; secrets: Secrets }) => Promise<NonNullable<HttpDeps['https']>>
  /** The folder of a built dashboard. */
  dashboardFolder?: string
  /** The test deletes emails before their retention ends, so that the counts outlive them. */
  ages?: boolean
}

interface ErrorBody {
  code: string
  message: string
  suggestion: string
  field?: string
  details?: { field: string; message: string }[]
}

/** A response body of the API, successful or not. */
interface Body {
  success: boolean
  data?: unknown
  page?: number
  perPage?: number
  total?: number
  totalPages?: number
  error?: ErrorBody
  meta: { requestId: string }
}

export interface Answer {
  status: number
  headers: Headers
  text: string
  body: Body
}

export interface RequestOptions {
  key?: string
  /** Sent as JSON. */
  body?: object | undefined
  /** Sent unchanged. */
  raw?: string | Buffer
  headers?: Record<string, string>
}

interface Limited {
  tenantId?: string
  permissions?: Permission[]
}

export interface Service extends AsyncDisposable {
  port: number
  /** Set with the role `inbound`. */
  ports: Inbound['ports']
  db: Db
  secrets: Secrets
  /** The default tenant, which has the sending domain simulator.test. */
  tenantId: string
  testKey: string
  liveKey: string
  /** Calls the API; `path` is below /v1. */
  call(method: string, path: string, asked: RequestOptions): Promise<Answer>
  /** Creates a test key with these limits. */
  makeKey(limited: Limited): Promise<string>
  makeTenant(name: string): Promise<string>
  /** Adds a sending domain that any key of the tenant may use at once. */
  addDomain(tenantId: string, name: string): Promise<void>
  /** Saves the last uses of keys, as the program does every ten seconds. */
  saveUses(): Promise<void>
  /** Waits for this time. */
  wait(delayMs: number): Promise<void>
  stop(): Promise<void>
}

const secret = 'a secret for tests only'
const limitText = (limit: number | null) => (limit === null ? 'unlimited' : String(limit))

export async function startService(wish: ServiceOptions = {}): Promise<Service> {
  const { rateLimit = 10, sendLimit = 100 } = wish
  const config = readConfig({
    PORT: '0',
    POSTRIDER_HOSTNAME: 'house.test',
    POSTRIDER_RATE_LIMIT: limitText(rateLimit),
    POSTRIDER_SEND_LIMIT: limitText(sendLimit),
    ...wish.settings,
  })
  const clock = wish.clock ?? systemClock
  const log = wish.log ?? silentLog
  const ids = openIds(systemRandom)
  const secrets = openSecrets(secret, systemRandom)
  const database = await testDatabase()
  const { db } = database
  await ensureUpcomingPartitions(db, clock.nowMs())

  const founded = { nowMs: clock.nowMs(), ids, secrets }
  const tenant = await db.transaction((tx) => createOrganisation(tx, { name: 'House', secretFingerprint: secrets.fingerprint, ...founded }))
  const simulated = await makeDomain({ tenantId: tenant.id, name: simulatorDomain, trusted: true, testOnly: true }, founded)
  await db.transaction((tx) => addDomain(tx, simulated))
  const keyOf = async (mode: 'live' | 'test', limited: Limited = {}) => {
    const wanted = { mode, name: 'test', tenantId: limited.tenantId ?? null, permissions: limited.permissions ?? null }
    return (await db.transaction((tx) => createKey(tx, wanted, { nowMs: clock.nowMs(), ids }))).key
  }
  const testKey = await keyOf('test')
  const liveKey = await keyOf('live')

  const tenants = openTenants({ db, clock })
  const domains = openDomains({ db, clock, secrets })
  const tracks = openTracks({ db, clock })
  const limitSettings = openLimitSettings({ db, clock, config })
  const wake = openWaker({ db, clock })
  const commit = openCommit({ db, clock, ids, limitSettings, wake })
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
    feedbackId: config.feedbackId,
    commit,
  })
  const { hostname } = config
  const resolver = openResolver({ servers: config.resolvers, clock, ids })
  const credentials = openCredentials({ db, clock })
  const https = await wish.https?.({ db, clock, log, secrets })
  const http = await startHttp({
    db,
    clock,
    ids,
    random: systemRandom,
    log,
    secrets,
    config,
    resolver,
    tenants,
    domains,
    tracks,
    limitSettings,
    accept,
    credentials,
    wake,
    installation: {
      version: 'test',
      settings: shownSettings(wish.settings ?? {}),
      runChecks: async () => {
        const records = await readPlatform({ config, db, clock, ids, secrets }, resolver)
        return runChecks({ db, clock, config, resolver, records, ownAddresses: [], httpsPort: 443 })
      },
    },
    isAlone: () => true,
    dashboardFolder: wish.dashboardFolder ?? 'no such folder',
    referenceFolder: 'dashboard/reference',
    docsFolder: 'docs',
    ...(wish.bounds ? { bounds: wish.bounds } : {}),
    https,
  })
  const reader = openReader({ clock, log })
  const returns = openReturns({ db, clock, ids, log, secrets, tenants, resolver, hostname, read: reader.read })
  const running: { stop(): Promise<void> }[] = [http]
  let ports: Inbound['ports'] = { smtp: 0, submission: 0, submissionTls: 0 }
  if (wish.roles?.includes('inbound')) {
    const folder = await mkdtemp(join(tmpdir(), 'postrider-inbound-'))
    const settings = { ...config, dataDirectory: folder, smtpPort: 0, submissionPort: 0, submissionTlsPort: 0 }
    ensureCertificate(settings, { clock, random: systemRandom })

    const bounds = wish.smtpBounds ?? {}
    const mailReader = openReportMailReader({ clock, log })
    const reports = wish.reports ?? openDomainReports({ db, clock, log, secrets, resolver, hostname, read: mailReader.read })
    const common = { db, clock, log, accept, credentials, config: settings, bounds }
    const routeReader = openReceivedMailReader({ clock, log })
    const receiving = { db, clock, ids, log, secrets, domains, tenants, resolver, hostname, read: routeReader.read }
    const forward: ReceivingDeps['forward'] = (octets, to, by) => accept.forwardRouted(octets, to, by)
    const routes = openReceiving({ ...receiving, forward, ...wish.receiving })
    const inbound = await startInbound({ ...common, returns: wish.returns ?? returns, reports, routes, store: https?.store })
    running.push({
      async stop() {
        mailReader.stop()
        routeReader.stop()
      },
    })
    ports = inbound.ports
    running.push(inbound, { stop: () => rm(folder, { recursive: true }) })
  }
  if (wish.roles?.includes('housekeeping'))
    running.push(
      await startHousekeeping({
        db,
        clock,
        databaseNowMs: async () => clock.nowMs(),
        log,
        resolver,
        hostname,
        keep: config,
        autoPause: config,
        limitSettings,
        secrets,
        reputation: config,
        keyRotation: { ids, secrets, config, resolvers: [resolver] },
      }),
    )
  if (wish.roles?.includes('housekeeping') && config.tlsReports) {
    const { tlsReports: reporter, sandboxSender, allowedNetworks: openedNetworks } = config
    const senderDomain = sandboxSender.slice(sandboxSender.lastIndexOf('@') + 1)
    await ensurePlatformKey(db, senderDomain, founded)
    const post = openPost({ resolver, guard: openGuard(openedNetworks), openedNetworks, clock })
    const submit = openOwnMail({ clock, ids, tenants, commit, hostname })
    running.push(startTlsReports({ db, clock, log, resolver, post, submit, reporter, senderDomain, hostname }, 100))
  }
  if (wish.roles?.includes('delivery'))
    running.push(
      await startDelivery({
        db,
        clock,
        ids,
        log,
        secrets,
        domains,
        tenants,
        config,
        processId: 'test',
        takeReport: returns.takeReport,
        bounds: wish.deliveryBounds,
      }),
    )

  const stop = async () => {
    for (const role of running) await role.stop()
    reader.stop()
    try {
      if (!wish.ages) await expectCounted(db, clock.nowMs())
    } finally {
      await database.close()
    }
  }
  return {
    port: http.port,
    ports,
    db,
    secrets,
    tenantId: tenant.id,
    testKey,
    liveKey,
    call: (method, path, asked) => ask(`http://127.0.0.1:${http.port}/v1${path}`, method, asked),
    makeKey: (limited) => keyOf('test', limited),
    makeTenant: async (name) => (await addTenant(db, { name }, { nowMs: clock.nowMs(), ids })).id,
    addDomain: async (tenantId, name) => {
      const made = await makeDomain({ tenantId, name, trusted: true }, { nowMs: clock.nowMs(), ids, secrets })
      await db.transaction((tx) => addDomain(tx, made))
    },
    saveUses: () => credentials.saveUses(),
    wait: (delayMs) => pause(clock, delayMs),
    stop,
    [Symbol.asyncDispose]: stop,
  }
}

async function ask(url: string, method: string, { key, body, raw, headers = {} }: RequestOptions): Promise<Answer> {
  const payload = raw ?? (body === undefined ? undefined : JSON.stringify(body))
  const answer = await fetch(url, {
    method,
    headers: {
      ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
      ...(payload === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(payload === undefined ? {} : { body: payload as string }),
  })
  const isStream = answer.headers.get('content-type')?.startsWith('text/event-stream') === true
  const text = isStream ? await beginningOf(answer) : await answer.text()
  await expectInOpenApi(method, new URL(url).pathname.slice('/v1'.length), { status: answer.status, headers: answer.headers, text })
  const isJson = answer.headers.get('content-type')?.startsWith('application/json') === true
  return { status: answer.status, headers: answer.headers, text, body: isJson ? (JSON.parse(text) as Body) : ({} as Body) }
}

/** Returns the first part of an endless response. */
async function beginningOf(answer: Response): Promise<string> {
  const reader = (answer.body as ReadableStream<Uint8Array>).getReader()
  const { value } = await reader.read()
  await reader.cancel()
  return new TextDecoder().decode(value)
}
