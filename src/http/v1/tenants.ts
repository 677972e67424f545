/** Tenants (contract section 8). */

import Type, { type Static } from 'typebox'
import { Refusal } from '#base'
import { updateTenant as changeTenant, deleteTenant as closeTenant } from '#housekeeping'
import { addTenant, getTenant, listTenants, type Tenant, type TenantMetadata, tenantStatuses } from '#tenants'
import { nullable, optional, pageFields } from './common-schemas.ts'
import { listRoute, route } from './define-endpoint.ts'
import { query } from './query-parameters.ts'

const manages = { permission: 'full access', scope: 'organisation', families: 'organisation' } as const

const TenantStatus = Type.Unsafe<Tenant['status']>({ type: 'string', enum: tenantStatuses })

const Metadata = Type.Unsafe<TenantMetadata>({
  type: 'object',
  maxProperties: 50,
  propertyNames: { minLength: 1, maxLength: 40 },
  additionalProperties: { type: ['string', 'number', 'boolean', 'null'], maxLength: 500 },
  description: 'At most 8192 bytes as JSON',
})

const instant = Type.String({ format: 'date-time' })

const TenantObject = Type.Object({
  id: Type.String(),
  name: Type.String(),
  status: TenantStatus,
  metadata: Metadata,
  createdAt: instant,
  updatedAt: instant,
  created_at: Type.String({ format: 'date-time', description: 'Older spelling of createdAt' }),
  updated_at: Type.String({ format: 'date-time', description: 'Older spelling of updatedAt' }),
  isDefault: Type.Boolean({ description: 'true: tenant of emails without a tenantId' }),
  pauseReason: nullable(Type.String({ description: 'Reason for a pause by an operator or by the automatic pause; null: not paused' })),
})

const Name = Type.String({ minLength: 1, maxLength: 100 })

export const createTenant = route({
  method: 'POST',
  path: '/tenants',
  name: 'tenants.create',
  summary: 'Create a tenant',
  ...manages,
  body: Type.Object({ name: Name, metadata: optional(Metadata) }),
  status: 201,
  data: TenantObject,
  refuses: [],
  handle: async ({ body }, { db, clock, ids }) => tenantToWire(await addTenant(db, body, { nowMs: clock.nowMs(), ids })),
})

export const listTenantsRoute = listRoute({
  method: 'GET',
  path: '/tenants',
  name: 'tenants.list',
  summary: 'List tenants, newest first',
  ...manages,
  query: query({ ...pageFields, status: Type.Optional(TenantStatus) }),
  data: TenantObject,
  refuses: [],
  handle: async ({ query }, { db }) => {
    const { tenants, total } = await listTenants(db, query.status, { number: query.page, size: query.perPage })
    return { items: tenants.map(tenantToWire), page: query.page, perPage: query.perPage, total }
  },
})

export const retrieveTenant = route({
  method: 'GET',
  path: '/tenants/{tenantId}',
  name: 'tenants.retrieve',
  summary: 'Get a tenant',
  ...manages,
  permission: 'full access, or any key of the tenant',
  scope: 'organisation or tenant',
  data: TenantObject,
  refuses: ['not_found', 'tenant_mismatch'],
  handle: async ({ params }, { db }) => tenantToWire(await getTenant(db, params.tenantId)),
})

export const updateTenantEndpoint = route({
  method: 'PATCH',
  path: '/tenants/{tenantId}',
  name: 'tenants.update',
  summary: 'Change a tenant',
  ...manages,
  body: Type.Object({
    name: Type.Optional(Name),
    metadata: Type.Optional(nullable(Metadata)),
    status: Type.Optional(TenantStatus),
  }),
  data: TenantObject,
  refuses: ['not_found', 'default_tenant_protected'],
  handle: async ({ params, body }, { db, clock, tenants }) => {
    if (body.name === undefined && body.metadata === undefined && body.status === undefined)
      throw new Refusal('validation_error', {
        message: 'the body changes nothing: name, metadata or status is required',
        suggestion: 'Send at least one of name, metadata and status',
      })
    const changed = await changeTenant(db, params.tenantId, body, clock.nowMs())
    tenants.forget()
    return tenantToWire(changed)
  },
})

export const deleteTenantEndpoint = route({
  method: 'DELETE',
  path: '/tenants/{tenantId}',
  name: 'tenants.delete',
  summary: 'Delete a tenant and its configuration; its emails and logs are kept for their retention period',
  ...manages,
  data: Type.Object({ deleted: Type.Unsafe<true>({ type: 'boolean', enum: [true] }) }),
  refuses: ['not_found', 'default_tenant_protected'],
  handle: async ({ params }, { db, clock, tenants, credentials, domains }) => {
    await closeTenant(db, params.tenantId, clock.nowMs())
    for (const cached of [tenants, credentials, domains]) cached.forget()
    return { deleted: true as const }
  },
})

function tenantToWire(tenant: Tenant): Static<typeof TenantObject> {
  const [createdAt, updatedAt] = [tenant.createdAt.toISOString(), tenant.updatedAt.toISOString()]
  const { id, name, status, metadata, isDefault, pauseReason } = tenant
  const older = { created_at: createdAt, updated_at: updatedAt }
  return { id, name, status, metadata, createdAt, updatedAt, ...older, isDefault, pauseReason }
}
