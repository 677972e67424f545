/** Credential management: create, list, change, revoke. A revoked credential stays as a tombstone that no query returns. */
import { createHash } from 'node:crypto'
import { type Ids, Refusal, rejectUnstorableText, type Secrets, wrongField } from '#base'
import { type Queryable, type SealedValue, sealedColumn, sql, type Tx } from '#db'
import { tenantForNew } from '#tenants'
import { checkBounds, type StoredBounds, type WantedBounds } from './key-bounds.ts'

export const permissions = ['emails:send', 'emails:read', 'domains:manage', 'webhooks:manage', 'suppressions:manage'] as const
export type Permission = (typeof permissions)[number]

export const credentialTypes = ['api', 'smtp'] as const
export type CredentialType = (typeof credentialTypes)[number]

/** An API key is sent with each request, or (ses) signs it, as the SDKs of Amazon SES do. */
export const keyFormats = ['postrider', 'ses'] as const
export type KeyFormat = (typeof keyFormats)[number]

export interface CredentialRecord extends StoredBounds {
  id: number
  /** null: organisation-level. */
  tenantId: string | null
  name: string
  type: CredentialType
  mode: 'live' | 'test'
  hold: boolean
  /** null: full access. */
  permissions: Permission[] | null
  /** The beginning of the key; of a key of format `ses` its access key id, which is not secret. */
  keyPrefix: string
  /** Its last four characters; null: a version before made or took over the key. */
  keyEnd: string | null
  lastUsedAt: Date | null
  createdAt: Date
  updatedAt: Date
}

export interface NewCredential extends WantedBounds {
  type: CredentialType
  mode: 'live' | 'test'
  name: string
  /** null: organisation-level, which is not possible for an SMTP login. */
  tenantId: string | null
  permissions: readonly Permission[] | null
  /** Of an API key; absent: `postrider`. */
  format?: KeyFormat | undefined
}

const keyLength = 32
const accessKeyIdLength = 13
const signingSecretLength = 40
const prefixLength = 8
/** So many last characters of a key are shown. */
export const endLength = 4

const columns = sql.part`
  id, tenant_id as "tenantId", name, type, mode, hold, permissions, key_prefix as "keyPrefix", key_end as "keyEnd",
  allowed_from as "allowedFrom", allowed_networks as "allowedNetworks", expires_at as "expiresAt", last_used_at as "lastUsedAt",
  created_at as "createdAt", updated_at as "updatedAt"`

const insertCredential = sql<CredentialRecord>`
  insert into credentials (id, tenant_id, name, type, mode, hold, key_hash, key_prefix, sealed_key, permissions, created_at, updated_at,
                           key_end, allowed_from, allowed_networks, expires_at)
  select number, $1, $2, $3, $4, false, $5, $6, $7, $8::text[], $9::timestamptz, $9, $11, $12::text[], $13::text[], $14::timestamptz
  from unnest($10::integer[]) with ordinality as drawn (number, nth)
  where not exists (select from credentials where id = number)
  order by nth
  limit 1
  returning ${columns}`

/** $2: only this tenant; null: any. */
const credentialById = sql<CredentialRecord & { sealedKey: Buffer | null; keyHash: Buffer }>`
  select ${columns}, sealed_key as "sealedKey", key_hash as "keyHash"
  from credentials
  where id = $1 and ($2::text is null or tenant_id = $2) and revoked_at is null`

const listed = sql.part`
  where ($3::boolean or tenant_id is not distinct from $1) and ($2::text is null or type = $2) and revoked_at is null`

const pageOfCredentials = sql<CredentialRecord>`
  select ${columns}
  from credentials
  ${listed}
  order by created_at desc, id desc
  limit $4 offset $5`

const countCredentials = sql<{ total: number }>`
  select count(*) as total
  from credentials
  ${listed}`

const saveCredential = sql`
  update credentials
  set name = coalesce($3, name), hold = coalesce($4, hold), permissions = case when $5 then $6 else permissions end, updated_at = $7,
      allowed_from = case when $8 then $9::text[] else allowed_from end,
      allowed_networks = case when $10 then $11::text[] else allowed_networks end,
      expires_at = case when $12 then $13::timestamptz else expires_at end
  where id = $1 and ($2::text is null or tenant_id = $2) and revoked_at is null`

const revokeById = sql`
  update credentials
  set revoked_at = $3, sealed_key = null
  where id = $1 and ($2::text is null or tenant_id = $2) and revoked_at is null`

const revokeAll = sql<{ id: number }>`
  update credentials
  set revoked_at = $2, sealed_key = null
  where tenant_id = $1 and revoked_at is null
  returning id`

const ofOtherTenants = sql<{ id: number }>`
  select id
  from credentials
  where tenant_id <> $1`

/** Credentials of every tenant but this one, without those of the organisation. */
export const listCredentialsOfOthers = async (on: Queryable, tenantId: string): Promise<number[]> =>
  (await on.rows(ofOtherTenants, [tenantId])).map(({ id }) => id)

export const keyHashOf = (key: string): Buffer => createHash('sha256').update(key).digest()

function checkName(name: string): void {
  rejectUnstorableText('name', name)
  if (!/^[a-zA-Z0-9_-]{1,50}$/.test(name)) throw wrongField('name', 'must be 1 to 50 letters, digits, _ or -')
}

function distinct(wanted: readonly Permission[] | null): Permission[] | null {
  if (wanted?.length === 0) throw wrongField('permissions', 'must list at least one permission, or be null for full access')
  return wanted && [...new Set(wanted)]
}

const nameOfHash = (hex: string) => `credential ${hex}`
const sealName = (keyHash: Uint8Array) => nameOfHash(Buffer.from(keyHash).toString('hex'))

const findSealed = sql<SealedValue>`
  select id::text as key, encode(key_hash, 'hex') as named, sealed_key as sealed
  from credentials
  where id > coalesce(nullif($2::text, ''), '0')::bigint and substring(sealed_key from 1 for 5) <> $1::bytea
  order by id
  limit $3`

const saveSealed = sql`
  update credentials
  set sealed_key = $2
  where id = $1::bigint and sealed_key = $3`

/** The secret of a key of format `ses`. */
export const signingSecretOf = (accessKeyId: string, sealed: Buffer, secrets: Secrets): string =>
  secrets.open(sealName(accessKeyHashOf(accessKeyId)), sealed).toString()

export const sealedOfCredentials = [sealedColumn('credentials.sealed_key', nameOfHash, { find: findSealed, save: saveSealed })]

interface MadeKey {
  key: string
  prefix: string
  hash: Buffer
  sealed: Buffer | null
}

const accessKeyForm = /^SVC(?:LIVE|TEST)[0-9A-Za-z]{13}$/

/** The id that names a key of format `ses`; undefined: a key of another format. */
export const accessKeyIdOf = ({ keyPrefix }: Pick<CredentialRecord, 'keyPrefix'>): string | undefined =>
  accessKeyForm.test(keyPrefix) ? keyPrefix : undefined

/** The text that is hashed has a space, so that the id alone is not a key. */
export const accessKeyHashOf = (accessKeyId: string): Buffer => keyHashOf(`access key ${accessKeyId}`)

/**
 * With a key of format `ses` callers sign, so a sealed copy of it is always stored, and its hash is that of its access key id, by which a
 * request names it. An SMTP login's key has no svc_ prefix, so that the kinds cannot be confused.
 */
function madeKey({ type, mode, format }: NewCredential, { ids, keepIn, sealIn }: KeyFacts): MadeKey {
  if (format === 'ses') {
    if (!sealIn) throw new Error('a key of format ses needs the secret that seals it')
    const accessKeyId = `SVC${mode.toUpperCase()}${ids.token(accessKeyIdLength)}`
    const key = ids.token(signingSecretLength)
    const hash = accessKeyHashOf(accessKeyId)
    return { key, prefix: accessKeyId, hash, sealed: sealIn.seal(sealName(hash), Buffer.from(key)) }
  }
  const random = ids.token(keyLength)
  const key = type === 'smtp' ? random : `svc_${mode}_${random}`
  const hash = keyHashOf(key)
  return { key, prefix: key.slice(0, prefixLength), hash, sealed: keepIn?.seal(sealName(hash), Buffer.from(key)) ?? null }
}

interface KeyFacts {
  ids: Ids
  /** Stores a sealed copy of every key, so that it can be revealed again. */
  keepIn?: Secrets | undefined
  /** For keys of format `ses`. */
  sealIn?: Secrets | undefined
}

/** Creates a credential; `key` is shown once. Refuses `validation_error`, `not_found`, `tenant_archived`. */
export async function addCredential(
  tx: Tx,
  wanted: NewCredential,
  facts: KeyFacts & { nowMs: number },
): Promise<{ credential: CredentialRecord; key: string }> {
  checkName(wanted.name)
  const allowed = distinct(wanted.permissions)
  const bounds = checkBounds(wanted, facts.nowMs)
  if (wanted.type === 'smtp' && wanted.tenantId === null) throw wrongField('tenantId', 'is required: an SMTP login belongs to a tenant')
  if (wanted.tenantId !== null) await tenantForNew(tx, wanted.tenantId)
  if (wanted.type === 'smtp' && wanted.format === 'ses') throw wrongField('format', 'is only for API keys')
  const { key, prefix, hash, sealed } = madeKey(wanted, facts)
  const credential = await tx.first(insertCredential, [
    wanted.tenantId,
    wanted.name,
    wanted.type,
    wanted.type === 'smtp' ? 'live' : wanted.mode,
    hash,
    prefix,
    sealed,
    allowed,
    new Date(facts.nowMs),
    facts.ids.numbers(),
    key.slice(-endLength),
    bounds.allowedFrom ?? null,
    bounds.allowedNetworks ?? null,
    bounds.expiresAt ?? null,
  ])
  if (!credential) throw new Error('failed to save a credential')
  return { credential, key }
}

/** A decimal number within bigint; otherwise the credential cannot exist. */
function numberIn(id: string): string {
  if (!/^[1-9]\d{0,17}$/.test(id)) throw noSuchCredential()
  return id
}

const noSuchCredential = () => new Refusal('not_found', { message: 'no such credential' })

/**
 * Refuses `not_found`. With `revealFrom` also returns the key, if a sealed copy was stored. `tenantId` null: of any tenant or the
 * organisation.
 */
export async function getCredential(
  on: Queryable,
  id: string,
  tenantId: string | null,
  revealFrom?: Secrets,
): Promise<{ credential: CredentialRecord; key: string | undefined }> {
  const row = await on.first(credentialById, [numberIn(id), tenantId])
  if (!row) throw noSuchCredential()
  const { sealedKey, keyHash, ...credential } = row
  return { credential, key: sealedKey && revealFrom ? revealFrom.open(sealName(keyHash), sealedKey).toString() : undefined }
}

/** Newest first; `tenantId` null: the organisation-level ones, or with `all` also those of every tenant. */
export async function listCredentials(
  on: Queryable,
  filter: { tenantId: string | null; type?: CredentialType | undefined; all?: boolean | undefined },
  page: { number: number; size: number },
): Promise<{ credentials: CredentialRecord[]; total: number }> {
  const parameters = [filter.tenantId, filter.type ?? null, filter.tenantId === null && filter.all === true]
  const [counted, credentials] = await Promise.all([
    on.first(countCredentials, parameters),
    on.rows(pageOfCredentials, [...parameters, page.size, (page.number - 1) * page.size]),
  ])
  return { credentials, total: counted?.total ?? 0 }
}

export interface CredentialChanges extends WantedBounds {
  name?: string | undefined
  hold?: boolean | undefined
  /** null: full access; undefined: unchanged. */
  permissions?: readonly Permission[] | null | undefined
}

export async function changeCredential(
  on: Queryable,
  id: string,
  tenantId: string | null,
  changes: CredentialChanges,
  nowMs: number,
): Promise<void> {
  if (changes.name !== undefined) checkName(changes.name)
  const allowed = distinct(changes.permissions ?? null)
  const bounds = checkBounds(changes, nowMs)
  const parameters = [
    numberIn(id),
    tenantId,
    changes.name ?? null,
    changes.hold ?? null,
    changes.permissions !== undefined,
    allowed,
    new Date(nowMs),
    ...[bounds.allowedFrom, bounds.allowedNetworks, bounds.expiresAt].flatMap((bound) => [bound !== undefined, bound ?? null]),
  ]
  if ((await on.run(saveCredential, parameters)) === 0) throw noSuchCredential()
}

export async function revokeCredential(on: Queryable, id: string, tenantId: string | null, nowMs: number): Promise<void> {
  if ((await on.run(revokeById, [numberIn(id), tenantId, new Date(nowMs)])) === 0) throw noSuchCredential()
}

/** Revokes every credential of a tenant being deleted, and returns their ids. */
export const revokeCredentialsOfTenant = async (tx: Tx, tenantId: string, nowMs: number): Promise<number[]> =>
  (await tx.rows(revokeAll, [tenantId, new Date(nowMs)])).map((one) => one.id)
