/** The databases of a simulation: a template with tenants, sending domains and webhooks, and a copy of it for each seed. */
import './deterministic-scheduler.ts'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openIds, silentLog, systemClock, systemRandom } from '#base'
import { openSeededRandom } from '#crash-test'
import { type Db, ensurePartitions, migrate, openDb, type PartitionedTable, startEmbedded } from '#db'
import { addDomain, makeDomain } from '#domains'
import { emailTables } from '#emails'
import { eventTables } from '#events'
import { ensureUpcomingPartitions } from '#housekeeping'
import type { Post } from '#net'
import { addTenant, createOrganisation, openTenants } from '#tenants'
import { openWebhooks } from '#webhooks'
import { databaseAt } from '../support/database-url.ts'
import { randomOf, simulationSecrets } from './processes.ts'

/** The start of every simulation: a Friday noon, UTC. */
export const startMs = Date.UTC(2026, 10, 20, 12)
const days = 14
const dayMs = 86_400_000
const tenantNames = ['Ash', 'Birch', 'Cedar', 'Dogwood']

export interface Tenancy {
  tenantId: string
  domain: string
  /** The URL of its webhook. */
  url: string
}

export interface Store {
  /** The smallest id first. */
  tenants: readonly Tenancy[]
  /** Copies the template, or another database. */
  copy(of?: string): Promise<{ name: string; url: string; drop: () => Promise<void> }>
  close(): Promise<void>
}

/**
 * Starts one PostgreSQL for this run only. The readable part of the event log depends on the transactions of all its databases, and a run
 * must repeat. Its processes are never killed, so fsync is not needed.
 */
export async function startServer(): Promise<{ url: string; stop(): Promise<void> }> {
  const folder = await mkdtemp(join(tmpdir(), 'postrider-simulation-'))
  const settingsForTests = ['fsync=off', 'full_page_writes=off', 'synchronous_commit=off', 'autovacuum=off', 'max_wal_size=1GB', 'jit=off']
  const embedded = await startEmbedded({ folder, clock: systemClock, log: silentLog, settingsForTests })
  return {
    url: embedded.url.replace('://postrider:', '://postgres:'),
    async stop() {
      await embedded.stop()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

const noPost: Post = {
  look: async () => ({ kind: 'allowed' }) as never,
  post: () => Promise.reject(new Error('nothing is posted')),
  get: () => Promise.reject(new Error('nothing is fetched')),
  close() {},
}

export async function openStore(serverUrl: string): Promise<Store> {
  const label = openIds(systemRandom).label(8)
  const name = `simulation_template_${label}`
  const admin = await openDb({ url: databaseAt(serverUrl, 'postgres'), poolSize: 1, applicationName: 'simulation' })
  await admin.script(`create database ${name} template template0`)
  const db = await openDb({ url: databaseAt(serverUrl, name), poolSize: 2, applicationName: 'simulation' })
  await migrate(db, systemClock)
  const tenants = await furnish(db)
  await db.close()
  let copies = 0
  return {
    tenants,
    async copy(of = name) {
      const copy = `simulation_${label}_${++copies}`
      await admin.script(`create database ${copy} template ${of}`)
      return { name: copy, url: databaseAt(serverUrl, copy), drop: () => admin.script(`drop database ${copy} with (force)`) }
    },
    async close() {
      await admin.script(`drop database ${name} with (force)`)
      await admin.close()
    },
  }
}

async function furnish(db: Db): Promise<Tenancy[]> {
  const chance = openSeededRandom(1)
  const random = randomOf(chance)
  const ids = openIds(random)
  const secrets = simulationSecrets(random)
  const facts = { nowMs: startMs, ids, secrets }
  const time: PartitionedTable[] = [...emailTables, ...eventTables]
  await ensureUpcomingPartitions(db, startMs)
  await ensurePartitions(db, time, startMs - dayMs, days)
  await db.transaction((tx) => createOrganisation(tx, { name: 'Simulation', secretFingerprint: secrets.fingerprint, ...facts }))
  const clock = { ...systemClock, nowMs: () => startMs }
  const deps = {
    db,
    clock,
    ids,
    random,
    secrets,
    post: noPost,
    config: { webhookSignatureHeader: 'X-Webhook-Signature' },
    version: 'simulation',
  }
  const webhooks = openWebhooks({ ...deps, tenants: openTenants({ db, clock }) })
  await webhooks.jwks()
  const made: Tenancy[] = []
  for (const name of tenantNames) {
    const { id: tenantId } = await addTenant(db, { name }, facts)
    const domain = `${name.toLowerCase()}.example`
    const added = await makeDomain({ tenantId, name: domain, trusted: true }, facts)
    await db.transaction((tx) => addDomain(tx, added))
    const url = `https://hooks.example/${name}`
    await webhooks.create(tenantId, { name, url, allEvents: true })
    made.push({ tenantId, domain, url })
  }
  return made.toSorted((a, b) => (a.tenantId < b.tenantId ? -1 : 1))
}
