/**
 * The organisation and its tenants. One installation is one organisation; exactly one tenant is its default.
 * Owns: organisation, tenants. Uses: base, db. Used by: domains, accept, delivery, webhooks, housekeeping, http, cli, main.
 * Promises: a tenant's change is seen by every process within a second.
 */

import { LRUCache } from 'lru-cache'
import { type Clock, type Ids, Refusal } from '#base'
import { type Db, type Queryable, sql, type Tx } from '#db'

export type TenantStatus = 'active' | 'suspended' | 'archived'

export interface Tenant {
  id: string
  name: string
  status: TenantStatus
  metadata: Record<string, string | number | boolean | null>
  isDefault: boolean
  createdAt: Date
  updatedAt: Date
}

export interface Organisation {
  id: string
  name: string
  slug: string
  secretFingerprint: string
}

const organisation = sql<Organisation>`
  select id, name, slug, secret_fingerprint as "secretFingerprint"
  from organisation`

const addOrganisation = sql`
  insert into organisation (id, name, slug, secret_fingerprint, created_at)
  values ($1, $2, $3, $4, $5)`

const tenantColumns = sql.part`
  id, name, status, metadata, is_default as "isDefault", created_at as "createdAt", updated_at as "updatedAt"`

const tenantById = sql<Tenant>`
  select ${tenantColumns}
  from tenants
  where id = $1`

const namesById = sql<{ id: string; name: string }>`
  select id, name
  from tenants
  where id = any($1)`

const defaultTenant = sql<Tenant>`
  select ${tenantColumns}
  from tenants
  where is_default`

const insertTenant = sql<Tenant>`
  insert into tenants (id, name, status, metadata, is_default, created_at, updated_at)
  values ($1, $2, 'active', '{}', $3, $4, $4)
  returning ${tenantColumns}`

/** The organisation of this installation, or undefined before its first start. */
export function findOrganisation(on: Queryable): Promise<Organisation | undefined> {
  return on.first(organisation)
}

/** The names of tenants by their ids; what is not there has none. */
export async function tenantNames(on: Queryable, ids: readonly string[]): Promise<Map<string, string>> {
  return new Map((await on.rows(namesById, [[...new Set(ids)]])).map(({ id, name }) => [id, name]))
}

/** Makes the organisation and its default tenant. */
export async function foundOrganisation(
  tx: Tx,
  facts: { name: string; secretFingerprint: string; nowMs: number; ids: Ids },
): Promise<Tenant> {
  const now = new Date(facts.nowMs)
  await tx.run(addOrganisation, [facts.ids.tenantId(), facts.name, 'default', facts.secretFingerprint, now])
  return (await tx.rows(insertTenant, [facts.ids.tenantId(), 'Default', true, now]))[0] as Tenant
}

/** Adds an active tenant; refuses a name that is not 1 to 100 characters. */
export async function addTenant(db: Db, name: string, facts: { nowMs: number; ids: Ids }): Promise<Tenant> {
  if (name.length < 1 || [...name].length > 100) {
    throw new Refusal('validation_error', { field: 'name', message: 'name must have 1 to 100 characters' })
  }
  return (await db.rows(insertTenant, [facts.ids.tenantId(), name, false, new Date(facts.nowMs)]))[0] as Tenant
}

/** A tenant's change reaches every process within this time. */
const cacheMs = 900

export interface Tenants {
  find(id: string): Promise<Tenant | undefined>
  /** The default tenant; there is always one. */
  default(): Promise<Tenant>
}

export function openTenants({ db, clock }: { db: Db; clock: Clock }): Tenants {
  const cache = new LRUCache<string, { tenant: Tenant | undefined }>({
    max: 10_000,
    ttl: cacheMs,
    perf: { now: () => clock.monotonicMs() },
    fetchMethod: async (key) => ({ tenant: await (key === '' ? db.first(defaultTenant) : db.first(tenantById, [key])) }),
  })
  return {
    find: async (id) => (id === '' ? undefined : (await cache.fetch(id))?.tenant),
    async default() {
      const tenant = (await cache.fetch(''))?.tenant
      if (!tenant) throw new Error('the organisation has no default tenant')
      return tenant
    },
  }
}
