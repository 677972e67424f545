/**
 * API keys, SMTP logins and signing keys: authentication and permissions.
 * Owns: credentials. Uses: base, db, tenants. Used by: housekeeping, installation, sendgrid, imports, inbound, http, cli,
 * main.
 * Promises: a key is shown once and stored as a SHA-256 hash, a signing key sealed; a revoked or held key stops working in every process within a second.
 */
import { LRUCache } from 'lru-cache'
import { atMost, type Clock, cached, type Ids, Refusal, type Secrets } from '#base'
import { type Db, sql, type Tx } from '#db'
import {
  accessKeyHashOf,
  accessKeyIdOf,
  addCredential,
  importedKeyForm,
  keyHashOf,
  type Permission,
  signingSecretOf,
} from './manage-credentials.ts'

export {
  accessKeyIdOf,
  addCredential,
  type CredentialRecord,
  changeCredential,
  credentialTypes,
  findImportedKeys,
  getCredential,
  type ImportedKey,
  importCredential,
  importedKeyForm,
  keyFormats,
  listCredentials,
  type Permission,
  permissions,
  revokeCredential,
  revokeCredentialsOfTenant,
  sealedOfCredentials,
} from './manage-credentials.ts'

export interface Credential {
  id: number
  /** null: organisation-level. */
  tenantId: string | null
  name: string
  mode: 'live' | 'test'
  hold: boolean
  /** null: full access. */
  permissions: Permission[] | null
  keyPrefix: string
  revoked: boolean
  /** The key was made by another program: as an SMTP login it counts alone, with any user name. */
  imported: boolean
}

const keyForm = /^svc_(live|test)_[0-9A-Za-z]{32}$/
const loginForm = /^[0-9A-Za-z]{16,64}$/

const credentialByKey = sql<Credential>`
  select id, tenant_id as "tenantId", name, mode, hold, permissions, key_prefix as "keyPrefix", revoked_at is not null as revoked,
         imported_from is not null as imported
  from credentials
  where key_hash = $1 and type = $2`

const signingCredential = sql<Credential & { sealed: Buffer | null }>`
  select id, tenant_id as "tenantId", name, mode, hold, permissions, key_prefix as "keyPrefix", revoked_at is not null as revoked,
         false as imported, sealed_key as sealed
  from credentials
  where key_hash = $1 and type = 'api'`

const markUsed = sql`
  update credentials
  set last_used_at = used.at
  from unnest($1::bigint[], $2::timestamptz[]) as used (id, at)
  where credentials.id = used.id`

/** Creates an API key, which is shown once. Refuses as `addCredential`. */
export async function createKey(
  tx: Tx,
  wanted: { mode: 'live' | 'test'; name: string; tenantId: string | null; permissions: readonly Permission[] | null },
  facts: { nowMs: number; ids: Ids },
): Promise<{ id: number; key: string }> {
  const { credential, key } = await addCredential(tx, { type: 'api', ...wanted }, facts)
  return { id: credential.id, key }
}

const lastUsedEveryMs = 60_000

interface SigningKey {
  credential: Credential
  secret: string
}

export interface Credentials {
  /**
   * The credential of a key; refuses `invalid_api_key` for a malformed or unknown key and `expired_api_key` for a revoked one. A held one
   * is returned; its restrictions are checked later, in the contract's order.
   */
  authenticate(key: string): Promise<Credential>
  /**
   * The SMTP login of a user name (`{tenantId}/{key}`, `{tenantId}/{name of the credential}` or `{tenantId}`) and its key; refuses
   * of an imported key, any user name. Refuses
   * `invalid_api_key`, `expired_api_key`, `credential_on_hold`, and `permission_denied` to one that may not send.
   */
  authenticateLogin(userName: string, key: string): Promise<Credential & { tenantId: string }>
  /**
   * The key that an access key id names, with the secret that signs its requests; undefined if it is unknown or revoked. A held one is
   * returned.
   */
  findSigningKey(accessKeyId: string, secrets: Secrets): Promise<SigningKey | undefined>
  /** Called once a signature was found to be right. */
  recordUse(credential: Credential): void
  /** Saves the last uses since the previous call, at most one per minute for each credential. */
  saveUses(): Promise<void>
  /** Clears the cache after this process changed a credential. */
  forget(): void
}

export function openCredentials({ db, clock }: { db: Db; clock: Clock }): Credentials {
  const known = cached(clock, (key) => db.first(credentialByKey, [keyHashOf(key), 'api']))
  const knownLogins = cached(clock, (key) => db.first(credentialByKey, [keyHashOf(key), 'smtp']))
  const knownSigning = cached(clock, (id) => db.first(signingCredential, [accessKeyHashOf(id)]))
  const savedAt = new LRUCache<number, number>(atMost(10_000))
  const toSave = new Map<number, Date>()
  const recordUse = ({ id }: Credential) => {
    const nowMs = clock.nowMs()
    if (nowMs - (savedAt.get(id) ?? 0) < lastUsedEveryMs) return
    savedAt.set(id, nowMs)
    toSave.set(id, new Date(nowMs))
  }
  return {
    async authenticate(key) {
      if (!keyForm.test(key) && !importedKeyForm.test(key))
        throw new Refusal('invalid_api_key', {
          message: 'invalid API key: it must be svc_live_ or svc_test_ followed by 32 letters and digits',
        })
      const credential = await known.get(key)
      if (!credential) throw new Refusal('invalid_api_key', { message: 'unknown API key' })
      if (credential.revoked) throw new Refusal('expired_api_key', { message: 'the API key has been revoked' })
      recordUse(credential)
      return credential
    },
    async authenticateLogin(userName, key) {
      const credential = loginForm.test(key) ? await knownLogins.get(key) : undefined
      if (!credential || !isNamed(userName, credential, key))
        throw new Refusal('invalid_api_key', { message: 'wrong SMTP username or password' })
      if (credential.revoked) throw new Refusal('expired_api_key', { message: 'the SMTP login has been revoked' })
      if (credential.hold) throw new Refusal('credential_on_hold', { message: 'the SMTP login is on hold' })
      if (credential.permissions && !credential.permissions.includes('emails:send'))
        throw new Refusal('permission_denied', { message: 'the SMTP login lacks the permission emails:send' })
      recordUse(credential)
      return credential
    },
    recordUse,
    async findSigningKey(accessKeyId, secrets) {
      const found = accessKeyIdOf({ keyPrefix: accessKeyId }) ? await knownSigning.get(accessKeyId) : undefined
      if (!found?.sealed || found.revoked) return undefined
      const { sealed, ...credential } = found
      return { credential, secret: signingSecretOf(accessKeyId, sealed, secrets) }
    },
    async saveUses() {
      if (toSave.size === 0) return
      const uses = [...toSave]
      toSave.clear()
      await db.run(markUsed, [uses.map(([id]) => id), uses.map(([, at]) => at)])
    },
    forget() {
      known.clear()
      knownLogins.clear()
      knownSigning.clear()
    },
  }
}

function isNamed(userName: string, credential: Credential, key: string): credential is Credential & { tenantId: string } {
  const { tenantId, name, imported } = credential
  if (imported) return tenantId !== null
  return tenantId !== null && [tenantId, `${tenantId}/${key}`, `${tenantId}/${name}`].includes(userName)
}
