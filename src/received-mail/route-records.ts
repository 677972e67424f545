/** Routes as rows. All routes of a domain name belong to one tenant, so that no tenant can take the mail of another. */
import { Refusal, wrongField } from '#base'
import { type Queryable, sql, type Tx } from '#db'

export interface MailRoute {
  tenantId: string
  id: string
  domainId: number
  domain: string
  local: string
  forwardTo: string | null
  enabled: boolean
  /** The star of its address stands only for signed names of emails. */
  replies: boolean
  createdAt: Date
  updatedAt: Date
}

export interface RoutePage {
  number: number
  size: number
}

export type RouteChanges = { forwardTo?: string | null | undefined; enabled?: boolean | undefined }

/** Of one tenant: a lookup reads all routes of a domain. */
const maxRoutes = 500

const columns = sql.part`
  tenant_id as "tenantId", id, domain_id as "domainId", domain, local, forward_to as "forwardTo", enabled, replies,
  created_at as "createdAt", updated_at as "updatedAt"`

const forwardingTo = sql<MailRoute>`
  select ${columns}
  from mail_routes
  where lower(forward_to) = $1 and ($2::text is null or tenant_id = $2)
  order by tenant_id, id`

/** Routes that forward to this address (lower case); `tenantId` null: of all tenants. */
export const listRoutesForwardingTo = (on: Queryable, address: string, tenantId: string | null): Promise<MailRoute[]> =>
  on.rows(forwardingTo, [address, tenantId])

/** Until the caller commits, so that two tenants cannot both add their first route of a domain. */
const lockDomain = sql`
  select pg_advisory_xact_lock(hashtextextended($1, 7305016))`

const otherOwners = sql<{ tenantId: string; domainId: number }>`
  select distinct tenant_id as "tenantId", domain_id as "domainId"
  from mail_routes
  where domain = $1 and tenant_id <> $2`

const dropRoutesOfDomain = sql`
  delete from mail_routes
  where tenant_id = $1 and domain_id = $2`

const insertRoute = sql<MailRoute>`
  insert into mail_routes (tenant_id, id, domain_id, domain, local, forward_to, enabled, replies, created_at, updated_at)
  values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $9)
  on conflict do nothing
  returning ${columns}`

const countRoutes = sql<{ total: number }>`
  select count(*)::integer as total
  from mail_routes
  where tenant_id = $1`

const pageOfRoutes = sql<MailRoute>`
  select ${columns}
  from mail_routes
  where tenant_id = $1
  order by domain, local
  limit $2 offset $3`

const routeById = sql<MailRoute>`
  select ${columns}
  from mail_routes
  where tenant_id = $1 and id = $2`

const routesOfDomain = sql<MailRoute>`
  select ${columns}
  from mail_routes
  where domain = $1 and enabled`

const domainHasRoute = sql<{ has: boolean }>`
  select exists (select from mail_routes where tenant_id = $1 and domain_id = $2) as has`

const saveRoute = sql<MailRoute>`
  update mail_routes
  set forward_to = case when $3 then $4 else forward_to end, enabled = coalesce($5, enabled), updated_at = $6
  where tenant_id = $1 and id = $2
  returning ${columns}`

const dropRoute = sql`
  delete from mail_routes
  where tenant_id = $1 and id = $2`

const dropRoutesOf = sql`
  delete from mail_routes
  where tenant_id = $1`

const keepRoutes = sql<{ id: string }>`
  select id
  from mail_routes
  where tenant_id = $1 and id = any($2) and enabled
  for key share`

const noSuchRoute = (id: string, field = 'routeId') =>
  new Refusal('not_found', { field, message: `${field}: no such route: ${id.slice(0, 64)}` })

/** The address as callers see it. */
export const routeAddress = ({ local, domain }: Pick<MailRoute, 'local' | 'domain'>) => `${local}@${domain}`

export type NewRoute = Omit<MailRoute, 'createdAt' | 'updatedAt'>

/**
 * Refuses `validation_error`: a taken address, a domain whose mail another tenant gets, too many routes. Deletes the routes of tenants for
 * which the domain is no longer verified.
 */
export async function addRoute(
  tx: Tx,
  route: NewRoute,
  { at, isVerified }: { at: Date; isVerified: (owner: { tenantId: string; domainId: number }) => Promise<boolean> },
): Promise<MailRoute> {
  const { tenantId, id, domainId, domain, local, forwardTo, enabled, replies } = route
  await tx.run(lockDomain, [domain])
  for (const other of await tx.rows(otherOwners, [domain, tenantId])) {
    if (await isVerified(other))
      throw wrongField(
        'address',
        `belongs to a domain with routes of another tenant: ${domain}`,
        'validation_error',
        'Mail for a domain goes to one tenant. Use a name below the domain, or delete the routes of the other tenant',
      )
    await tx.run(dropRoutesOfDomain, [other.tenantId, other.domainId])
  }
  const { total } = (await tx.first(countRoutes, [tenantId])) ?? { total: 0 }
  if (total >= maxRoutes) throw wrongField('address', `cannot be added: the tenant has ${maxRoutes} routes`)
  const added = await tx.first(insertRoute, [tenantId, id, domainId, domain, local, forwardTo, enabled, replies, at])
  if (!added)
    throw wrongField('address', `is the address of another route: ${routeAddress(route)}`, 'validation_error', 'Change the existing route')
  return added
}

/** By domain and address. */
export async function listRoutesOf(on: Queryable, tenantId: string, page: RoutePage): Promise<{ routes: MailRoute[]; total: number }> {
  const counted = await on.first(countRoutes, [tenantId])
  const routes = await on.rows(pageOfRoutes, [tenantId, page.size, (page.number - 1) * page.size])
  return { routes, total: counted?.total ?? 0 }
}

/** An id; other text may not even be storable. */
const known = (id: string, field?: string): string => {
  if (!/^\w{1,40}$/.test(id)) throw noSuchRoute(id, field)
  return id
}

/** Refuses `not_found`. `field`: the one that names the route; by default `routeId`. */
export async function getRoute(on: Queryable, tenantId: string, id: string, field?: string): Promise<MailRoute> {
  const found = await on.first(routeById, [tenantId, known(id, field)])
  if (!found) throw noSuchRoute(id, field)
  return found
}

/** The enabled routes of a domain name, all of one tenant. */
export const listRoutesOfDomain = (on: Queryable, domain: string): Promise<MailRoute[]> => on.rows(routesOfDomain, [domain])

export const hasRoute = async (on: Queryable, { tenantId, id }: { tenantId: string; id: number }): Promise<boolean> =>
  (await on.first(domainHasRoute, [tenantId, id]))?.has ?? false

/** Refuses `not_found`. */
export async function changeRoute(on: Queryable, tenantId: string, id: string, changes: RouteChanges, at: Date): Promise<MailRoute> {
  const { forwardTo, enabled } = changes
  const saved = await on.first(saveRoute, [tenantId, known(id), forwardTo !== undefined, forwardTo ?? null, enabled ?? null, at])
  if (!saved) throw noSuchRoute(id)
  return saved
}

/** Refuses `not_found`. */
export async function removeRoute(on: Queryable, tenantId: string, id: string): Promise<void> {
  if ((await on.run(dropRoute, [tenantId, known(id)])) === 0) throw noSuchRoute(id)
}

export const removeRoutesOf = (tx: Tx, tenantId: string): Promise<number> => tx.run(dropRoutesOf, [tenantId])

/** Whether all of these routes still exist and are enabled; they stay until the caller commits. */
export async function keepsRoutes(tx: Tx, tenantId: string, ids: readonly string[]): Promise<boolean> {
  return (await tx.rows(keepRoutes, [tenantId, ids])).length === ids.length
}
