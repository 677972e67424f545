/** The roles that may have processes of their own: `delivery`, `inbound` and `webhooks`. Each has its own database connections. */
import { type Children, type Config, type HostedRole, type Log, openLog, startChildren, startInProcess } from '#base'
import { readReport } from '#bounces'
import { type Db, openDb } from '#db'
import { openDomains } from '#domains'
import { openGuard, openPost, openResolver } from '#net'
import { openReader, openReturns, readHere } from '#returns'
import { deregisterProcess, shardLeases } from '#spool'
import { openTenants } from '#tenants'
import { openAcceptance } from './acceptance-pipeline.ts'
import { clock, environment, failpoint, type Ground, ids, type RunningRole, tracesOf, version } from './process.ts'

const script = new URL('../../bin/postrider.js', import.meta.url).pathname
/** Of `serve` itself, for the API and housekeeping. */
export const apiConnections = 12
/** Shorter than the five seconds after which many receivers close an unused connection. */
const webhookIdleMs = 3000

/** The statements of the hot path find their rows by index; a plan made while a table was empty must not scan it when it is full. */
const deliveryDatabaseSettings = {
  enable_seqscan: 'off',
  enable_hashjoin: 'off',
  enable_mergejoin: 'off',
  enable_bitmapscan: 'off',
  jit: 'off',
}

/**
 * For glibc's allocator: large blocks are mapped individually and so returned when freed. Without it a freed block of 10 MB makes it keep
 * all smaller ones.
 */
const memoryGivenBack = { MALLOC_ARENA_MAX: '2', MALLOC_MMAP_THRESHOLD_: '1048576' }

/** Starts a role in processes of its own, and restarts them when they die; or in this process, where the settings say so. */
export function hostRole(role: HostedRole, ground: Ground, { url, ending }: { url: string; ending: AbortSignal }): Children {
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

/** A role that may have processes of its own. */
interface Hosted {
  poolSize: number
  databaseSettings?: Readonly<Record<string, string>>
  /** `name`: unique among all processes, ever. */
  start(ground: Ground, name: string): Promise<RunningRole>
  /** Called when the process of this name has ended. */
  ended(db: Db, name: string): Promise<void>
}

export const hostedRoles: Record<HostedRole, Hosted> = {
  delivery: {
    poolSize: 6,
    databaseSettings: deliveryDatabaseSettings,
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

async function startListeners(ground: Ground): Promise<RunningRole> {
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
  const receiving = { db, clock, ids, log, secrets, domains, tenants, resolver, hostname, read: routeReader.read }
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

/** Connections that the roles of an instance open at most: a pool for each process or role of `serve`, and one for its notifications. */
export function maxConnections({ deliveryProcesses, separateProcesses }: Pick<Config, 'deliveryProcesses' | 'separateProcesses'>): number {
  const deliveries = separateProcesses.includes('delivery') ? deliveryProcesses : 1
  const { delivery, inbound, webhooks } = hostedRoles
  return [apiConnections, inbound.poolSize, webhooks.poolSize, ...Array<number>(deliveries).fill(delivery.poolSize)].reduce(
    (sum, poolSize) => sum + poolSize + 1,
    0,
  )
}

/** Database connections for one role. */
export const openRoleDb = (role: HostedRole, name: string, url: string, log: Log): Promise<Db> => {
  const { poolSize, databaseSettings } = hostedRoles[role]
  return openDb({ url, poolSize, applicationName: `postrider ${role} ${name}`, settings: databaseSettings, log })
}

/** Starts a role in this process, with database connections of its own. */
async function startHere(role: HostedRole, name: string, url: string, ground: Ground): Promise<RunningRole> {
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
