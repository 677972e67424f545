/** Suppressions of a tenant or of the organisation (contract section 12). */

import Type, { type Static } from 'typebox'
import { rejectUnstorableText } from '#base'
import {
  findSuppression,
  importSuppressions,
  listSuppressions,
  removeSuppression,
  type Suppression,
  saveSuppression,
  saveSuppressions,
  suppressionId,
} from '#suppressions'
import {
  allParameter,
  nullable,
  optional,
  pageFields,
  readInstant,
  tenantFields,
  tenantNamedIn,
  tenantParameter,
} from './common-schemas.ts'
import { ensureRoute, listRoute, route } from './define-endpoint.ts'
import { query } from './query-parameters.ts'
import { listTurns } from './search-turns.ts'

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
  handle: async ({ query, tenantId, credential, connection }, { db }) => {
    const filter = { tenantId: tenantId === null && query.all ? null : listOf(tenantId), address: query.address, reason: query.reason }
    const { entries, total } = await listTurns.run({ tenantId: credential.tenantId, gone: connection?.gone }, () =>
      listSuppressions(db, filter, { number: query.page, size: query.perPage }),
    )
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

const Imported = Type.Object({
  ...Wanted,
  createdAt: optional(Type.String({ description: 'Time at the other service; default, and at most: now', maxLength: 40 })),
  source: optional(Type.Unsafe<'manual' | 'automatic'>({ type: 'string', enum: ['manual', 'automatic'], description: 'Default: manual' })),
})

/** An own addition to the contract, for moves from other services. */
export const importSuppressionsRoute = route({
  method: 'POST',
  path: '/suppressions/import',
  name: 'suppressions.import',
  summary: 'Add up to 1000 suppressions of another service with their times; listed addresses stay as they are',
  ...manages,
  body: Type.Object({
    suppressions: Type.Array(Imported, { maxItems: 1000 }),
    dryRun: optional(Type.Boolean({ description: 'true: only counts' })),
    ...tenantFields,
  }),
  data: Type.Object({
    totalRequested: Type.Integer(),
    added: Type.Integer(),
    existing: Type.Integer({ description: 'Already listed, or repeated in the request' }),
    failed: Type.Integer({ description: 'Invalid addresses' }),
  }),
  refuses: ['tenant_archived', 'tenant_mismatch', 'not_found'],
  handle: async (call, { db, clock, tenants }) => {
    const tenantId = await tenantNamedIn(call, tenants)
    const { suppressions, dryRun } = call.body
    const entries = suppressions.map((one, index) => importedOf(one, `suppressions[${index}]`, clock.nowMs()))
    const { added, failed } = await importSuppressions(db, listOf(tenantId), entries, { dryRun: dryRun === true })
    return { totalRequested: entries.length, added, existing: entries.length - added - failed, failed }
  },
})

/** The time is between 1970 and now. Refuses `validation_error`. */
function importedOf({ address, reason, createdAt, source }: Static<typeof Imported>, field: string, nowMs: number) {
  if (reason) rejectUnstorableText(`${field}.reason`, reason)
  const atMs = createdAt == null ? nowMs : readInstant(`${field}.createdAt`, createdAt).getTime()
  return {
    address,
    reason: reason ?? null,
    source: source ?? ('manual' as const),
    createdAt: new Date(Math.min(Math.max(atMs, 0), nowMs)),
    keepUntil: null,
  }
}

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
