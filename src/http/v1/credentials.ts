/** API keys and SMTP logins (contract section 9). */

import Type, { type Static } from 'typebox'
import { Refusal } from '#base'
import {
  accessKeyIdOf,
  addCredential,
  type CredentialRecord,
  changeCredential,
  credentialTypes,
  getCredential,
  keyFormats,
  listCredentials,
  type Permission,
  permissions,
  revokeCredential,
} from '#credentials'
import { allParameter, nullable, optional, pageFields, tenantFields, tenantNamedIn, tenantParameter } from './common-schemas.ts'
import { type ApiDeps, listRoute, route } from './define-endpoint.ts'
import { query } from './query-parameters.ts'

const manages = { permission: 'full access', scope: 'organisation, or the tenant in the path', families: 'both' } as const

const CredentialType = Type.Unsafe<CredentialRecord['type']>({ type: 'string', enum: credentialTypes })
const Mode = Type.Unsafe<CredentialRecord['mode']>({ type: 'string', enum: ['live', 'test'] })
const Name = Type.String({ minLength: 1, maxLength: 50, pattern: '^[a-zA-Z0-9_-]{1,50}$' })
const Permissions = nullable(
  Type.Array(Type.Unsafe<Permission>({ type: 'string', enum: permissions }), {
    minItems: 1,
    maxItems: 20,
    description: 'null: full access',
  }),
)

const CredentialObject = Type.Object({
  id: Type.Integer(),
  name: Type.String(),
  type: CredentialType,
  hold: Type.Boolean({ description: 'true: every request with the key is refused' }),
  key: Type.Optional(Type.String({ description: 'The secret; returned on creation' })),
  accessKeyId: Type.Optional(Type.String({ description: 'Only for a key of format `ses`: names the key in the requests that it signs' })),
  smtpUsername: Type.Optional(Type.String({ description: 'Only for an SMTP login, together with the key' })),
  lastUsedAt: nullable(Type.String({ format: 'date-time' })),
  createdAt: Type.String({ format: 'date-time' }),
  updatedAt: Type.String({ format: 'date-time' }),
  tenantId: nullable(Type.String({ description: 'null: organisation-level' })),
  mode: Mode,
  permissions: Permissions,
  keyPrefix: Type.String(),
})

const reveal = Type.Optional(Type.Boolean({ description: 'true: includes the key, if the operator stores keys (POSTRIDER_REVEAL_KEYS)' }))

export const createCredential = route({
  method: 'POST',
  path: '/credentials',
  name: 'credentials.create',
  summary: 'Create an API key, an SMTP login or a key that signs requests',
  ...manages,
  body: Type.Object({
    name: Name,
    type: CredentialType,
    mode: optional(Mode),
    permissions: Type.Optional(Permissions),
    format: optional(
      Type.Unsafe<(typeof keyFormats)[number]>({
        type: 'string',
        enum: keyFormats,
        description: 'ses: an access key id and a secret that sign requests, as the SDKs of Amazon SES do',
      }),
    ),
    ...tenantFields,
  }),
  status: 201,
  data: CredentialObject,
  refuses: ['tenant_archived', 'tenant_mismatch', 'not_found'],
  handle: async (call, { db, clock, ids, tenants, secrets, config }) => {
    const tenantId = await tenantNamedIn(call, tenants)
    const { name, type, mode, permissions: allowed, format } = call.body
    const wanted = { name, type, mode: mode ?? 'live', permissions: allowed ?? null, tenantId, format: format ?? undefined }
    const facts = { nowMs: clock.nowMs(), ids, keepIn: config.revealKeys ? secrets : undefined, sealIn: secrets }
    const { credential, key } = await db.transaction((tx) => addCredential(tx, wanted, facts))
    return credentialToWire(credential, key)
  },
})

export const listCredentialsRoute = listRoute({
  method: 'GET',
  path: '/credentials',
  name: 'credentials.list',
  summary: "List a tenant's credentials, or the organisation-level ones, newest first",
  ...manages,
  query: query({ ...pageFields, type: Type.Optional(CredentialType), all: allParameter, tenantId: tenantParameter }),
  data: CredentialObject,
  refuses: ['tenant_mismatch', 'not_found'],
  handle: async ({ query, tenantId }, { db }) => {
    const { credentials, total } = await listCredentials(
      db,
      { tenantId, type: query.type, all: query.all },
      { number: query.page, size: query.perPage },
    )
    return { items: credentials.map((one) => credentialToWire(one)), page: query.page, perPage: query.perPage, total }
  },
})

export const retrieveCredential = route({
  method: 'GET',
  path: '/credentials/{credentialId}',
  name: 'credentials.retrieve',
  summary: 'Get a credential',
  ...manages,
  query: query({ reveal, tenantId: tenantParameter }),
  data: CredentialObject,
  refuses: ['tenant_mismatch', 'not_found'],
  handle: ({ params, query, tenantId }, deps) => shown(params.credentialId, tenantId, query.reveal, deps),
})

export const updateCredential = route({
  method: 'PATCH',
  path: '/credentials/{credentialId}',
  name: 'credentials.update',
  summary: 'Rename a credential, hold it, or change its permissions',
  ...manages,
  query: query({ reveal, tenantId: tenantParameter }),
  body: Type.Object({
    name: Type.Optional(Name),
    hold: Type.Optional(Type.Boolean()),
    permissions: Type.Optional(Permissions),
    ...tenantFields,
  }),
  data: CredentialObject,
  refuses: ['tenant_mismatch', 'not_found'],
  handle: async (call, deps) => {
    const { name, hold, permissions: allowed } = call.body
    if (name === undefined && hold === undefined && allowed === undefined)
      throw new Refusal('validation_error', {
        message: 'the body changes nothing: name, hold or permissions is required',
        suggestion: 'Send at least one of name, hold and permissions',
      })
    const tenantId = await tenantNamedIn(call, deps.tenants)
    const { credentialId } = call.params
    await changeCredential(deps.db, credentialId, tenantId, { name, hold, permissions: allowed }, deps.clock.nowMs())
    deps.credentials.forget()
    return shown(credentialId, tenantId, call.query.reveal, deps)
  },
})

export const deleteCredential = route({
  method: 'DELETE',
  path: '/credentials/{credentialId}',
  name: 'credentials.delete',
  summary: 'Revoke a credential',
  ...manages,
  query: query({ tenantId: tenantParameter }),
  data: Type.Object({ deleted: Type.Unsafe<true>({ type: 'boolean', enum: [true] }) }),
  refuses: ['tenant_mismatch', 'not_found'],
  handle: async ({ params, tenantId }, { db, clock, credentials }) => {
    await revokeCredential(db, params.credentialId, tenantId, clock.nowMs())
    credentials.forget()
    return { deleted: true as const }
  },
})

async function shown(id: string, tenantId: string | null, withKey: boolean | undefined, { db, secrets, config }: ApiDeps) {
  const { credential, key } = await getCredential(db, id, tenantId, withKey && config.revealKeys ? secrets : undefined)
  return credentialToWire(credential, key)
}

function credentialToWire(one: CredentialRecord, key?: string): Static<typeof CredentialObject> {
  const accessKeyId = accessKeyIdOf(one)
  return {
    id: one.id,
    name: one.name,
    type: one.type,
    hold: one.hold,
    ...(key === undefined ? {} : { key }),
    ...(accessKeyId === undefined ? {} : { accessKeyId }),
    ...(key === undefined || one.type !== 'smtp' ? {} : { smtpUsername: `${one.tenantId}/${key}` }),
    lastUsedAt: one.lastUsedAt?.toISOString() ?? null,
    createdAt: one.createdAt.toISOString(),
    updatedAt: one.updatedAt.toISOString(),
    tenantId: one.tenantId,
    mode: one.mode,
    permissions: one.permissions,
    keyPrefix: one.keyPrefix,
  }
}
