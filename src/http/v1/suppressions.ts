/** Suppressions of a tenant or of the organisation (contract section 12). */

import Type, { type Static } from 'typebox'
import {
  findSuppression,
  listSuppressions,
  removeSuppression,
  type Suppression,
  saveSuppression,
  saveSuppressions,
  suppressionId,
} from '#suppressions'
import { allParameter, nullable, optional, pageFields, tenantFields, tenantNamedIn, tenantParameter } from './common-schemas.ts'
import { ensureRoute, listRoute, route } from './define-endpoint.ts'
import { query } from './query-parameters.ts'

const manages = { permission: 'suppressions:manage', scope: 'organisation or tenant', families: 'both' } as const

const Entry = Type.Object({
  id: Type.String(),
  address: Type.String({ description: 'Lower case' }),
  reason: Type.Optional(Type.String()),
  createdAt: Type.String({ format: 'date-time' }),
  tenantId: nullable(Type.String({ description: 'null: list of the organisation' })),
  source: Type.Unsafe<'manual' | 'automatic'>({ type: 'string', enum: ['manual', 'automatic'] }),
  emailId: Type.Optional(Type.String({ description: 'Id of the email that caused an automatic entry' })),
})

const Wanted = {
  address: Type.String(),
  reason: optional(Type.String({ maxLength: 500 })),
}

/** The organisation's list has the empty id. */
const listOf = (tenantId: string | null) => tenantId ?? ''

export const createSuppression = ensureRoute({
  method: 'POST',
  path: '/suppressions',
  name: 'suppressions.create',
  summary: 'Suppress an address, or change its reason',
  ...manages,
  body: Type.Object({ ...Wanted, ...tenantFields }),
  data: Entry,
  refuses: ['invalid_email_format', 'tenant_archived', 'tenant_mismatch', 'not_found'],
  handle: async (call, { db, clock, tenants }) => {
    const tenantId = await tenantNamedIn(call, tenants)
    const { entry, added } = await saveSuppression(db, listOf(tenantId), call.body, clock.nowMs())
    return { made: added, data: entryToWire(entry) }
  },
})

export const listSuppressionsRoute = listRoute({
  method: 'GET',
  path: '/suppressions',
  name: 'suppressions.list',
  summary: 'List suppressed addresses, newest first',
  ...manages,
  query: query({
    ...pageFields,
    address: Type.Optional(Type.String({ description: 'Substring of the address' })),
    reason: Type.Optional(Type.String({ description: 'Exact reason' })),
    all: allParameter,
    tenantId: tenantParameter,
  }),
  data: Entry,
  refuses: ['tenant_mismatch', 'not_found'],
  handle: async ({ query, tenantId }, { db }) => {
    const filter = { tenantId: tenantId === null && query.all ? null : listOf(tenantId), address: query.address, reason: query.reason }
    const { entries, total } = await listSuppressions(db, filter, { number: query.page, size: query.perPage })
    return { items: entries.map(entryToWire), page: query.page, perPage: query.perPage, total }
  },
})

export const createSuppressions = route({
  method: 'POST',
  path: '/suppressions/bulk',
  name: 'suppressions.bulkCreate',
  summary: 'Suppress up to 1000 addresses',
  ...manages,
  body: Type.Object({ suppressions: Type.Array(Type.Object(Wanted), { maxItems: 1000 }), ...tenantFields }),
  data: Type.Object({
    totalRequested: Type.Integer(),
    added: Type.Integer(),
    updated: Type.Integer({ description: 'Already listed, or repeated in the request' }),
    failed: Type.Integer({ description: 'Invalid addresses' }),
  }),
  refuses: ['tenant_archived', 'tenant_mismatch', 'not_found'],
  handle: async (call, { db, clock, tenants }) => {
    const tenantId = await tenantNamedIn(call, tenants)
    const { suppressions } = call.body
    return { totalRequested: suppressions.length, ...(await saveSuppressions(db, listOf(tenantId), suppressions, clock.nowMs())) }
  },
})

export const retrieveSuppression = route({
  method: 'GET',
  path: '/suppressions/{email}',
  name: 'suppressions.retrieve',
  summary: 'Check whether an address is suppressed',
  ...manages,
  query: query({ tenantId: tenantParameter }),
  data: Type.Object({
    address: Type.String(),
    suppressed: Type.Boolean(),
    reason: nullable(Type.String()),
    createdAt: nullable(Type.String({ format: 'date-time' })),
  }),
  refuses: ['invalid_email_format', 'tenant_mismatch', 'not_found'],
  handle: async ({ params, tenantId }, { db }) => {
    const { address, entry } = await findSuppression(db, listOf(tenantId), params.email)
    return {
      address,
      suppressed: entry !== undefined,
      reason: entry?.reason ?? null,
      createdAt: entry?.createdAt.toISOString() ?? null,
    }
  },
})

export const deleteSuppression = route({
  method: 'DELETE',
  path: '/suppressions/{email}',
  name: 'suppressions.delete',
  summary: 'Remove an address from the list',
  ...manages,
  query: query({ tenantId: tenantParameter }),
  data: Type.Object({ message: Type.String() }),
  refuses: ['tenant_mismatch', 'not_found'],
  handle: async ({ params, tenantId }, { db, clock }) => {
    await removeSuppression(db, listOf(tenantId), params.email, clock.nowMs())
    return { message: 'The address has been removed from the list' }
  },
})

function entryToWire({ tenantId, address, reason, source, createdAt, emailId }: Suppression): Static<typeof Entry> {
  return {
    id: String(suppressionId({ tenantId, address })),
    address,
    ...(reason === null ? {} : { reason }),
    createdAt: createdAt.toISOString(),
    tenantId: tenantId === '' ? null : tenantId,
    source,
    ...(emailId === null ? {} : { emailId }),
  }
}
