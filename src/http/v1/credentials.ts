/**
 * API keys and SMTP logins (contract section 9), and their bounds, which are extensions of the contract: answers have those members only for a
 * key with such bounds. A narrow key cannot create, change or reveal keys, because those could do more than itself.
 */

import Type, { type Static } from 'typebox'
import { Refusal } from '#base'
import {
  accessKeyIdOf,
  addCredential,
  type Credential,
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
import { keyLimitScope, listSendLimitsOfKeys, removeLimitsOfKeys, setLimits } from '#limits'
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
import { refuseHiddenContent } from './content-access.ts'
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

const SenderList = Type.Array(Type.String({ minLength: 1, maxLength: 254 }), {
  minItems: 1,
  maxItems: 50,
  description: 'Sending domains and addresses that the key may send from',
  examples: [['example.com', 'shop@example.org']],
})
const NetworkList = Type.Array(Type.String({ minLength: 1, maxLength: 50 }), {
  minItems: 1,
  maxItems: 50,
  description: 'Networks in CIDR form that the key may be used from',
  examples: [['203.0.113.0/24']],
})
const SendLimit = Type.Integer({
  minimum: 1,
  maximum: 1_000_000_000,
  description: 'Emails per clock hour with the key; further ones wait, as with the send limit',
})

/** null: no bound. */
const boundsFields = {
  allowedFrom: Type.Optional(nullable(SenderList)),
  allowedNetworks: Type.Optional(nullable(NetworkList)),
  expiresAt: optional(
    Type.String({ maxLength: 40, description: 'ISO 8601; the key is refused from then on', examples: ['2030-01-31T00:00:00Z'] }),
  ),
  sendLimit: Type.Optional(nullable(SendLimit)),
}

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
  keyEnd: Type.Optional(Type.String({ description: 'The last four characters of the key, with `keyEnd=true`' })),
  allowedFrom: Type.Optional(SenderList),
  allowedNetworks: Type.Optional(NetworkList),
  expiresAt: Type.Optional(Type.String({ format: 'date-time' })),
  sendLimit: Type.Optional(SendLimit),
})

const keyEnd = Type.Optional(Type.Boolean({ description: 'true: includes the last four characters of the key, if they are known' }))
const reveal = Type.Optional(Type.Boolean({ description: 'true: includes the key, if the operator stores keys (POSTRIDER_REVEAL_KEYS)' }))

export const createCredential = route({
  method: 'POST',
  path: '/credentials',
  name: 'credentials.create',
  summary: 'Create an API key, an SMTP login or a key that signs requests',
  ...manages,
  leadsContentOut: true,
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
    ...boundsFields,
    ...tenantFields,
  }),
  status: 201,
  data: CredentialObject,
  refuses: ['tenant_archived', 'tenant_mismatch', 'not_found'],
  handle: async (call, { db, clock, ids, tenants, secrets, config, limitSettings }) => {
    await refuseNarrow(call.credential, 'create keys', { db })
    const tenantId = await tenantNamedIn(call, tenants)
    const { name, type, mode, permissions: allowed, format, sendLimit } = call.body
    const wanted = {
      name,
      type,
      mode: mode ?? 'live',
      permissions: allowed ?? null,
      tenantId,
      format: format ?? undefined,
      ...boundsIn(call.body),
    }
    const facts = { nowMs: clock.nowMs(), ids, keepIn: config.revealKeys ? secrets : undefined, sealIn: secrets }
    const { credential, key } = await db.transaction(async (tx) => {
      const added = await addCredential(tx, wanted, facts)
      if (sendLimit != null) await setLimits(tx, keyLimitScope(added.credential.id), { sendPerHour: sendLimit })
      return added
    })
    if (sendLimit != null) limitSettings.forget()
    return credentialToWire(credential, { key, sendLimit })
  },
})

export const listCredentialsRoute = listRoute({
  method: 'GET',
  path: '/credentials',
  name: 'credentials.list',
  summary: "List a tenant's credentials, or the organisation-level ones, newest first",
  ...manages,
  query: query({ ...pageFields, type: Type.Optional(CredentialType), all: allParameter, keyEnd, tenantId: tenantParameter }),
  data: CredentialObject,
  refuses: ['tenant_mismatch', 'not_found'],
  handle: async ({ query, tenantId }, { db }) => {
    const { credentials, total } = await listCredentials(
      db,
      { tenantId, type: query.type, all: query.all },
      { number: query.page, size: query.perPage },
    )
    const limits = await listSendLimitsOfKeys(
      db,
      credentials.map((one) => one.id),
    )
    const items = credentials.map((one) => credentialToWire(one, { sendLimit: limits.get(one.id), withEnd: query.keyEnd }))
    return { items, page: query.page, perPage: query.perPage, total }
  },
})

export const retrieveCredential = route({
  method: 'GET',
  path: '/credentials/{credentialId}',
  name: 'credentials.retrieve',
  summary: 'Get a credential',
  ...manages,
  query: query({ reveal, keyEnd, tenantId: tenantParameter }),
  data: CredentialObject,
  refuses: ['tenant_mismatch', 'not_found'],
  handle: async ({ params, query, tenantId, credential }, deps) => {
    if (query.reveal) {
      await refuseNarrow(credential, 'reveal keys', deps)
      await refuseHiddenContent(credential, tenantId, deps)
    }
    return shown(params.credentialId, tenantId, query, deps)
  },
})

export const updateCredential = route({
  method: 'PATCH',
  path: '/credentials/{credentialId}',
  name: 'credentials.update',
  summary: 'Rename a credential, hold it, or change its permissions and bounds',
  ...manages,
  leadsContentOut: true,
  query: query({ reveal, tenantId: tenantParameter }),
  body: Type.Object({
    name: Type.Optional(Name),
    hold: Type.Optional(Type.Boolean()),
    permissions: Type.Optional(Permissions),
    ...boundsFields,
    ...tenantFields,
  }),
  data: CredentialObject,
  refuses: ['tenant_mismatch', 'not_found'],
  handle: async (call, deps) => {
    const { name, hold, permissions: allowed, sendLimit } = call.body
    await refuseNarrow(call.credential, 'change keys', deps)
    const changes = { name, hold, permissions: allowed, ...boundsIn(call.body) }
    if ([...Object.values(changes), sendLimit].every((one) => one === undefined))
      throw new Refusal('validation_error', {
        message: 'the body changes nothing: name, hold or permissions is required',
        suggestion: 'Send at least one of name, hold and permissions',
      })
    const tenantId = await tenantNamedIn(call, deps.tenants)
    const { credentialId } = call.params
    await deps.db.transaction(async (tx) => {
      await changeCredential(tx, credentialId, tenantId, changes, deps.clock.nowMs())
      if (sendLimit !== undefined) await setLimits(tx, keyLimitScope(Number(credentialId)), { sendPerHour: sendLimit ?? 'unlimited' })
    })
    deps.credentials.forget()
    if (sendLimit !== undefined) deps.limitSettings.forget()
    return shown(credentialId, tenantId, call.query, deps)
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
    await db.transaction(async (tx) => {
      await revokeCredential(tx, params.credentialId, tenantId, clock.nowMs())
      await removeLimitsOfKeys(tx, [Number(params.credentialId)])
    })
    credentials.forget()
    return { deleted: true as const }
  },
})

/** Refuses `permission_denied` to a key with bounds: the other keys could do more than itself. */
async function refuseNarrow({ id, bounds }: Credential, verb: string, { db }: Pick<ApiDeps, 'db'>): Promise<void> {
  if (!bounds && !(await listSendLimitsOfKeys(db, [id])).has(id)) return
  throw new Refusal('permission_denied', {
    message: `a key with bounds cannot ${verb}`,
    suggestion: 'Use a key without allowedFrom, allowedNetworks, expiresAt and sendLimit, or the dashboard',
  })
}

const boundsIn = ({
  allowedFrom,
  allowedNetworks,
  expiresAt,
}: { [Name in keyof typeof boundsFields]?: Static<(typeof boundsFields)[Name]> }) => ({
  allowedFrom,
  allowedNetworks,
  expiresAt: expiresAt == null ? expiresAt : readInstant('expiresAt', expiresAt),
})

async function shown(
  id: string,
  tenantId: string | null,
  include: { reveal?: boolean | undefined; keyEnd?: boolean | undefined },
  { db, secrets, config }: ApiDeps,
) {
  const { credential, key } = await getCredential(db, id, tenantId, include.reveal && config.revealKeys ? secrets : undefined)
  const limits = await listSendLimitsOfKeys(db, [credential.id])
  return credentialToWire(credential, { key, sendLimit: limits.get(credential.id), withEnd: include.keyEnd })
}

interface Shown {
  key?: string | undefined
  sendLimit?: number | null | undefined
  withEnd?: boolean | undefined
}

function credentialToWire(one: CredentialRecord, { key, sendLimit, withEnd }: Shown): Static<typeof CredentialObject> {
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
    ...(withEnd && one.keyEnd !== null ? { keyEnd: one.keyEnd } : {}),
    ...(one.allowedFrom === null ? {} : { allowedFrom: one.allowedFrom }),
    ...(one.allowedNetworks === null ? {} : { allowedNetworks: one.allowedNetworks }),
    ...(one.expiresAt === null ? {} : { expiresAt: one.expiresAt.toISOString() }),
    ...(sendLimit == null ? {} : { sendLimit }),
  }
}
