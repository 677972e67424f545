/**
 * API keys, SMTP logins and signing keys: authentication and permissions.
 * Owns: credentials. Uses: base, mail, db, tenants. Used by: housekeeping, installation, sendgrid, imports, agents, accept, inbound, http, cli,
 * main.
 * Promises: a key is shown once and stored as a SHA-256 hash, a signing key sealed; a revoked or held key stops working in every process within
 * a second. A key past its expiry, or from outside its networks, is refused at each use.
 */
import { LRUCache } from 'lru-cache'
import { atMost, type Clock, cached, type Ids, Refusal, type Secrets } from '#base'
import { type Db, sql, type Tx } from '#db'
import { importedKeyForm } from './imported-keys.ts'
import { type KeyBounds, keyBoundsOf, refuseOutOfBounds, type StoredBounds } from './key-bounds.ts'
import {
  accessKeyHashOf,
  accessKeyIdOf,
  addCredential,
  type CredentialType,
  keyHashOf,
  type Permission,
  signingSecretOf,
} from './manage-credentials.ts'

export { findImportedKeys, type ImportedKey, importCredential, importedKeyForm } from './imported-keys.ts'
export { type KeyBounds, maySendFrom } from './key-bounds.ts'
export {
  accessKeyIdOf,
  addCredential,
  type CredentialRecord,
  changeCredential,
  credentialTypes,
  getCredential,
  keyFormats,
  listCredentials,
  listCredentialsOfOthers,
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
  /** Absent: an ordinary key. */
  bounds?: KeyBounds | undefined
}

interface StoredCredential extends Omit<Credential, 'bounds'>, StoredBounds {}

const keyForm = /^svc_(live|test)_[0-9A-Za-z]{32}$/
const loginForm = /^[0-9A-Za-z]{16,64}$/
const testKeyForm = /^svc_test_[0-9A-Za-z]{32}$/
/** The user name of a test key over SMTP, for the key's own tenant or the default one. */
const testKeyUserName = 'apikey'

const credentialByKey = sql<StoredCredential>`
  select id, tenant_id as "tenantId", name, mode, hold, permissions, key_prefix as "keyPrefix", revoked_at is not null as revoked,
         imported_from is not null as imported, allowed_from as "allowedFrom", allowed_networks as "allowedNetworks",
         expires_at as "expiresAt"
  from credentials
  where key_hash = $1 and type = $2`

const signingCredential = sql<StoredCredential & { sealed: Buffer | null }>`
  select id, tenant_id as "tenantId", name, mode, hold, permissions, key_prefix as "keyPrefix", revoked_at is not null as revoked,
         false as imported, sealed_key as sealed, allowed_from as "allowedFrom", allowed_networks as "allowedNetworks",
         expires_at as "expiresAt"
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
   * The credential of a key; refuses `invalid_api_key` for a malformed or unknown key, `expired_api_key` for a revoked or expired one, and
   * `permission_denied` to a client outside its networks. A held one is returned; its restrictions are checked later, in the contract's
   * order. `addressOf`: the client's address.
   */
  authenticate(key: string, addressOf: () => string): Promise<Credential>
  /**
   * The SMTP login of a user name (`{tenantId}/{key}`, `{tenantId}/{name of the credential}` or `{tenantId}`; of an imported key, any user
   * name) and its key; or the test key that is the password of one of these user names or of `apikey`. `tenantId` is the tenant that it
   * sends for; null: the default one. Refuses `invalid_api_key`, `expired_api_key`, `credential_on_hold`, and `permission_denied` to one that
   * may not send or to a client outside its networks.
   */
  authenticateLogin(userName: string, key: string, address: string): Promise<Credential>
  /**
   * The key that an access key id names, with the secret that signs its requests; undefined if it is unknown or revoked. A held one is
   * returned, and one out of its bounds: `refuseOutOfBounds` checks them once the signature was found to be right.
   */
  findSigningKey(accessKeyId: string, secrets: Secrets): Promise<SigningKey | undefined>
  /** Refuses an expired key and a client outside the key's networks, as `authenticate`. */
  refuseOutOfBounds(credential: Credential, addressOf: () => string): void
  /** Called once a signature was found to be right. */
  recordUse(credential: Credential): void
  /** Saves the last uses since the previous call, at most one per minute for each credential. */
  saveUses(): Promise<void>
  /** Clears the cache after this process changed a credential. */
  forget(): void
}

/** Long because each way to use a key is one method. */
export function openCredentials({ db, clock }: { db: Db; clock: Clock }): Credentials {
  const find = async (key: string, type: CredentialType): Promise<Credential | undefined> => {
    const stored = await db.first(credentialByKey, [keyHashOf(key), type])
    return stored && { ...stored, bounds: keyBoundsOf(stored) }
  }
  const known = cached(clock, (key) => find(key, 'api'))
  const knownLogins = cached(clock, (key) => find(key, 'smtp'))
  const findLogin = async (userName: string, key: string): Promise<Credential | undefined> => {
    if (testKeyForm.test(key)) {
      const found = await known.get(key)
      return found && asTestLogin(userName, found, key)
    }
    const found = loginForm.test(key) ? await knownLogins.get(key) : undefined
    return found && isNamed(userName, found, key) ? found : undefined
  }
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
    async authenticate(key, addressOf) {
      if (!keyForm.test(key) && !importedKeyForm.test(key))
        throw new Refusal('invalid_api_key', {
          message: 'invalid API key: it must be svc_live_ or svc_test_ followed by 32 letters and digits',
        })
      const credential = await known.get(key)
      if (!credential) throw new Refusal('invalid_api_key', { message: 'unknown API key' })
      if (credential.revoked) throw new Refusal('expired_api_key', { message: 'the API key has been revoked' })
      if (credential.bounds) refuseOutOfBounds(credential.bounds, clock.nowMs(), addressOf)
      recordUse(credential)
      return credential
    },
    async authenticateLogin(userName, key, address) {
      const credential = await findLogin(userName, key)
      if (!credential) throw new Refusal('invalid_api_key', { message: 'wrong SMTP username or password' })
      if (credential.revoked) throw new Refusal('expired_api_key', { message: 'the SMTP login has been revoked' })
      if (credential.bounds) refuseOutOfBounds(credential.bounds, clock.nowMs(), () => address)
      if (credential.hold) throw new Refusal('credential_on_hold', { message: 'the SMTP login is on hold' })
      if (credential.permissions && !credential.permissions.includes('emails:send'))
        throw new Refusal('permission_denied', { message: 'the SMTP login lacks the permission emails:send' })
      recordUse(credential)
      return credential
    },
    recordUse,
    refuseOutOfBounds({ bounds }, addressOf) {
      if (bounds) refuseOutOfBounds(bounds, clock.nowMs(), addressOf)
    },
    async findSigningKey(accessKeyId, secrets) {
      const found = accessKeyIdOf({ keyPrefix: accessKeyId }) ? await knownSigning.get(accessKeyId) : undefined
      if (!found?.sealed || found.revoked) return undefined
      const { sealed, ...stored } = found
      return { credential: { ...stored, bounds: keyBoundsOf(stored) }, secret: signingSecretOf(accessKeyId, sealed, secrets) }
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

function isNamed(userName: string, { tenantId, name, imported }: Credential, key: string): boolean {
  if (imported) return tenantId !== null
  return tenantId !== null && [tenantId, `${tenantId}/${key}`, `${tenantId}/${name}`].includes(userName)
}

const tenantUserName = /^([a-z][a-z0-9]{0,63})(?:\/|$)/

/** A test key as an SMTP login of its tenant. The key of the organisation serves the tenant that the user name has. Undefined: wrong name. */
function asTestLogin(userName: string, credential: Credential, key: string): Credential | undefined {
  if (credential.mode !== 'test') return undefined
  if (userName === testKeyUserName) return credential
  const tenantId = credential.tenantId ?? tenantUserName.exec(userName)?.[1] ?? null
  return isNamed(userName, { ...credential, tenantId }, key) ? { ...credential, tenantId } : undefined
}
