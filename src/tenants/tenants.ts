/**
 * The organisation and its tenants. One installation is one organisation; exactly one tenant is its default.
 * Owns: organisation, tenants. Uses: base, db. Used by: members, credentials, limits, suppressions, domains, tracking, templates, accept,
 * delivery, returns, received-mail, webhooks, usage, reputation, privacy, housekeeping, installation, imports, http, cli, main.
 * Promises: a tenant's change is seen by every process within a second.
 */

import { type Clock, cached, type Ids, Refusal } from '#base'
import { type Db, type Queryable, sql, type Tx } from '#db'
import { checkTenant, type TenantMetadata } from './validate-tenant.ts'

export type { TenantMetadata } from './validate-tenant.ts'

export const tenantStatuses = ['active', 'suspended', 'archived'] as const
export type TenantStatus = (typeof tenantStatuses)[number]

export interface Tenant {
  id: string
  name: string
  status: TenantStatus
  metadata: TenantMetadata
  isDefault: boolean
  /** The reason why its mail is held; null: not paused. */
  pauseReason: string | null
  createdAt: Date
  updatedAt: Date
}

interface Organisation {
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

const saveFingerprint = sql`
  update organisation
  set secret_fingerprint = $1`

const tenantColumns = sql.part`
  id, name, status, metadata, is_default as "isDefault", pause_reason as "pauseReason", created_at as "createdAt", updated_at as "updatedAt"`

const tenantById = sql<Tenant>`
  select ${tenantColumns}
  from tenants
  where id = $1`

const formerReturnPaths = sql<{ local: string }>`
  select lower(metadata->>'postal_return_path') as local
  from tenants
  where metadata ? 'postal_return_path'`

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
  values ($1, $2, 'active', $3, $4, $5, $5)
  returning ${tenantColumns}`

const pageOfTenants = sql<Tenant>`
  select ${tenantColumns}
  from tenants
  where $1::text is null or status = $1
  order by created_at desc, id desc
  limit $2 offset $3`

const countTenants = sql<{ total: number }>`
  select count(*) as total
  from tenants
  where $1::text is null or status = $1`

/** Does not block `thereAmong`. */
const lockToChange = sql<Tenant>`
  select ${tenantColumns}
  from tenants
  where id = $1
  for no key update`

const lockToRemove = sql<Tenant>`
  select ${tenantColumns}
  from tenants
  where id = $1
  for update`

const thereAmong = sql<{ id: string }>`
  select id
  from tenants
  where id = any($1)
  for key share skip locked`

const keepTenant = sql<Tenant>`
  select ${tenantColumns}
  from tenants
  where id = $1
  for share`

const saveTenant = sql<Tenant>`
  update tenants
  set name = $2, metadata = $3, status = $4, updated_at = $5
  where id = $1
  returning ${tenantColumns}`

const savePause = sql`
  update tenants
  set pause_reason = $2
  where id = $1`

const endPause = sql`
  update tenants
  set pause_reason = null, resumed_at = $2
  where id = $1`

const pausedTenants = sql<{ id: string; reason: string }>`
  select id, pause_reason as reason
  from tenants
  where pause_reason is not null`

const resumedTenants = sql<{ id: string; resumedAt: Date }>`
  select id, resumed_at as "resumedAt"
  from tenants
  where id = any($1) and resumed_at is not null`

const dropTenant = sql`
  delete from tenants
  where id = $1`

/** For statements of other modules: leaves out rows that have outlived their tenant. */
export const isOfTenant = sql.part`tenant_id in (select id from tenants)`

/** The organisation of this installation, or undefined before its first start. */
export function findOrganisation(on: Queryable): Promise<Organisation | undefined> {
  return on.first(organisation)
}

/** The local parts of the return paths that Postal used for the imported tenants, in lower case. */
export const listFormerReturnPaths = async (on: Queryable): Promise<ReadonlySet<string>> =>
  new Set((await on.rows(formerReturnPaths)).map(({ local }) => local))

/** Tenant names by id; missing tenants are left out. */
export async function tenantNames(on: Queryable, ids: readonly string[]): Promise<Map<string, string>> {
  return new Map((await on.rows(namesById, [[...new Set(ids)]])).map(({ id, name }) => [id, name]))
}

/** The tenant or organisation of an event, as sent to webhooks (contract 13.9). */
interface Server {
  uuid: string
  name: string
  permalink: string
  organization: string
}

/** A tenant, or (null) the organisation itself. */
export async function findServer(on: Queryable, tenantId: string | null): Promise<Server> {
  const whole = await findOrganisation(on)
  const id = tenantId ?? whole?.id ?? ''
  const name = tenantId === null ? whole?.name : (await tenantNames(on, [tenantId])).get(tenantId)
  return { uuid: id, name: name ?? id, permalink: id, organization: whole?.slug ?? '' }
}

/** Sets the secret that processes must have from now on. */
export const saveSecretFingerprint = (tx: Tx, fingerprint: string): Promise<number> => tx.run(saveFingerprint, [fingerprint])

/** Creates the organisation and its default tenant. */
export async function createOrganisation(
  tx: Tx,
  facts: { name: string; secretFingerprint: string; nowMs: number; ids: Ids },
): Promise<Tenant> {
  const now = new Date(facts.nowMs)
  await tx.run(addOrganisation, [facts.ids.tenantId(), facts.name, 'default', facts.secretFingerprint, now])
  return (await tx.rows(insertTenant, [facts.ids.tenantId(), 'Default', {}, true, now]))[0] as Tenant
}

/** Adds an active tenant; refuses a name that is not 1 to 100 characters, and metadata over its limits. */
export async function addTenant(
  on: Queryable,
  wanted: { name: string; metadata?: TenantMetadata | null | undefined },
  facts: { nowMs: number; ids: Ids },
): Promise<Tenant> {
  checkTenant(wanted)
  const row = await on.first(insertTenant, [facts.ids.tenantId(), wanted.name, wanted.metadata ?? {}, false, new Date(facts.nowMs)])
  return row as Tenant
}

/** Newest first. */
export async function listTenants(
  on: Queryable,
  status: TenantStatus | undefined,
  page: { number: number; size: number },
): Promise<{ tenants: Tenant[]; total: number }> {
  const [counted, tenants] = await Promise.all([
    on.first(countTenants, [status ?? null]),
    on.rows(pageOfTenants, [status ?? null, page.size, (page.number - 1) * page.size]),
  ])
  return { tenants, total: counted?.total ?? 0 }
}

const tenantsByName = sql<Tenant>`
  select ${tenantColumns}
  from tenants
  where ($1::text is null or status = $1) and (name collate "C", id) > ($2, $3)
  order by name collate "C", id
  limit $4`

/** By name and id, those after `after`. */
export const listTenantsByName = (
  on: Queryable,
  status: TenantStatus | undefined,
  after: Pick<Tenant, 'name' | 'id'> | undefined,
  maximum: number,
): Promise<Tenant[]> => on.rows(tenantsByName, [status ?? null, after?.name ?? '', after?.id ?? '', maximum])

export interface TenantChanges {
  name?: string | undefined
  /** Replaces all metadata; null removes it. */
  metadata?: TenantMetadata | null | undefined
  status?: TenantStatus | undefined
}

/** Refuses `not_found`, and `default_tenant_protected` for an inactive status of the default tenant. */
export async function changeTenant(tx: Tx, id: string, changes: TenantChanges, nowMs: number): Promise<{ before: Tenant; after: Tenant }> {
  checkTenant(changes)
  const before = await tx.first(lockToChange, [id])
  if (!before) throw noSuchTenant()
  const { name = before.name, metadata = before.metadata, status = before.status } = changes
  if (before.isDefault && status !== 'active') {
    const message = 'status: the default tenant cannot be suspended or archived'
    throw new Refusal('default_tenant_protected', { field: 'status', message })
  }
  const after = (await tx.first(saveTenant, [id, name, metadata ?? {}, status, new Date(nowMs)])) as Tenant
  return { before, after }
}

/** Pauses (`reason` is the reason shown to people) or resumes (null); returns the tenant as it was. Refuses `not_found`. */
export async function setPause(tx: Tx, id: string, reason: string | null, nowMs: number): Promise<Tenant> {
  const before = await tx.first(lockToChange, [id])
  if (!before) throw noSuchTenant()
  if (reason === null) await tx.run(endPause, [id, new Date(nowMs)])
  else await tx.run(savePause, [id, reason])
  return before
}

/** The reasons of all paused tenants. */
export const listPauses = async (on: Queryable): Promise<Map<string, string>> =>
  new Map((await on.rows(pausedTenants)).map(({ id, reason }) => [id, reason]))

/** When the tenants among `ids` that were ever paused were last resumed. */
export async function resumedAt(on: Queryable, ids: readonly string[]): Promise<ReadonlyMap<string, Date>> {
  return new Map((await on.rows(resumedTenants, [ids])).map((one) => [one.id, one.resumedAt]))
}

/** Removes the tenant's own row; other modules remove their data in the same transaction. Refuses as `changeTenant`. */
export async function removeTenant(tx: Tx, id: string): Promise<void> {
  // Checked before locking: a concurrent `keepTenants` must not take a tenant that stays for one being deleted.
  if ((await findTenant(tx, id))?.isDefault) throw new Refusal('default_tenant_protected')
  if (!(await tx.first(lockToRemove, [id]))) throw noSuchTenant()
  await tx.run(dropTenant, [id])
}

const noSuchTenant = () => new Refusal('not_found', { message: 'no such tenant' })

/**
 * The tenant for a new record. It stays unchanged until the caller commits, so that no record is created under a tenant being deleted.
 * Refuses `not_found` and `tenant_archived`.
 */
export async function tenantForNew(tx: Tx, id: string): Promise<Tenant> {
  const tenant = await tx.first(keepTenant, [id])
  if (!tenant) throw new Refusal('not_found', { field: 'tenantId', message: `tenantId: no such tenant: ${id}` })
  if (tenant.status === 'archived') throw new Refusal('tenant_archived', { message: `tenant ${id} is archived` })
  return tenant
}

/**
 * The existing ones of these tenants; they stay until the caller commits. A tenant that is being deleted is not waited for and counts as
 * missing.
 */
export async function keepTenants(tx: Tx, ids: readonly string[]): Promise<ReadonlySet<string>> {
  return new Set((await tx.rows(thereAmong, [[...new Set(ids)]])).map(({ id }) => id))
}

/** The current row in the database. */
export const findTenant = (on: Queryable, id: string): Promise<Tenant | undefined> => on.first(tenantById, [id])

/** The current row in the database; refuses `not_found`. */
export async function getTenant(on: Queryable, id: string): Promise<Tenant> {
  const tenant = await findTenant(on, id)
  if (!tenant) throw noSuchTenant()
  return tenant
}

export interface Tenants {
  find(id: string): Promise<Tenant | undefined>
  /** The default tenant, which always exists. */
  default(): Promise<Tenant>
  /** Clears the cache after this process changed a tenant. */
  forget(): void
}

export function openTenants({ db, clock }: { db: Db; clock: Clock }): Tenants {
  const known = cached(clock, (key) => (key === '' ? db.first(defaultTenant) : db.first(tenantById, [key])))
  return {
    find: async (id) => (id === '' ? undefined : known.get(id)),
    async default() {
      const tenant = await known.get('')
      if (!tenant) throw new Error('the organisation has no default tenant')
      return tenant
    },
    forget: () => known.clear(),
  }
}
