/**
 * API keys and SMTP logins: authentication and permissions.
 * Owns: credentials. Uses: base, mail, db, tenants. Used by: housekeeping, installation, sendgrid, imports, inbound, http, cli,
 * main.
 * Promises: a key is shown once and stored as a SHA-256 hash; a revoked or held key stops working in every process within a second. A
 * key past its expiry, or from outside its networks, is refused at each use.
 */
import { LRUCache } from 'lru-cache'
import { type Clock, cached, type Ids, Refusal } from '#base'
import { type Db, sql, type Tx } from '#db'
import { boundsOf, type KeyBounds, refuseOutOfBounds, type StoredBounds } from './key-bounds.ts'
import { addCredential, type CredentialType, importedKeyForm, keyHashOf, type Permission } from './manage-credentials.ts'

export { type KeyBounds, maySendFrom } from './key-bounds.ts'
export {
  addCredential,
  type CredentialRecord,
  changeCredential,
  credentialTypes,
  findImportedKeys,
  getCredential,
  type ImportedKey,
  importCredential,
  importedKeyForm,
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
  /** Absent: an ordinary key. */
  bounds?: KeyBounds | undefined
}

interface StoredCredential extends Omit<Credential, 'bounds'>, StoredBounds {}

const keyForm = /^svc_(live|test)_[0-9A-Za-z]{32}$/
const loginForm = /^[0-9A-Za-z]{16,64}$/

const credentialByKey = sql<StoredCredential>`
  select id, tenant_id as "tenantId", name, mode, hold, permissions, key_prefix as "keyPrefix", revoked_at is not null as revoked,
         imported_from is not null as imported, allowed_from as "allowedFrom", allowed_networks as "allowedNetworks",
         expires_at as "expiresAt"
  from credentials
  where key_hash = $1 and type = $2`

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

export interface Credentials {
  /**
   * The credential of a key; refuses `invalid_api_key` for a malformed or unknown key, `expired_api_key` for a revoked or expired one, and
   * `permission_denied` to a client outside its networks. A held one is returned; its restrictions are checked later, in the contract's
   * order. `addressOf`: the client's address.
   */
  authenticate(key: string, addressOf: () => string): Promise<Credential>
  /**
   * The SMTP login of a user name (`{tenantId}/{key}`, `{tenantId}/{name of the credential}` or `{tenantId}`; of an imported key, any user
   * name) and its key. Refuses `invalid_api_key`, `expired_api_key`, `credential_on_hold`, and `permission_denied` to one that may not send
   * or to a client outside its networks.
   */
  authenticateLogin(userName: string, key: string, address: string): Promise<Credential & { tenantId: string }>
  /** Saves the last uses since the previous call, at most one per minute for each credential. */
  saveUses(): Promise<void>
  /** Clears the cache after this process changed a credential. */
  forget(): void
}

export function openCredentials({ db, clock }: { db: Db; clock: Clock }): Credentials {
  const find = async (key: string, type: CredentialType): Promise<Credential | undefined> => {
    const stored = await db.first(credentialByKey, [keyHashOf(key), type])
    return stored && { ...stored, bounds: boundsOf(stored) }
  }
  const known = cached(clock, (key) => find(key, 'api'))
  const knownLogins = cached(clock, (key) => find(key, 'smtp'))
  const savedAt = new LRUCache<number, number>({ max: 10_000 })
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
      const credential = loginForm.test(key) ? await knownLogins.get(key) : undefined
      if (!credential || !isNamed(userName, credential, key))
        throw new Refusal('invalid_api_key', { message: 'wrong SMTP username or password' })
      if (credential.revoked) throw new Refusal('expired_api_key', { message: 'the SMTP login has been revoked' })
      if (credential.bounds) refuseOutOfBounds(credential.bounds, clock.nowMs(), () => address)
      if (credential.hold) throw new Refusal('credential_on_hold', { message: 'the SMTP login is on hold' })
      if (credential.permissions && !credential.permissions.includes('emails:send'))
        throw new Refusal('permission_denied', { message: 'the SMTP login lacks the permission emails:send' })
      recordUse(credential)
      return credential
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
    },
  }
}

function isNamed(userName: string, credential: Credential, key: string): credential is Credential & { tenantId: string } {
  const { tenantId, name, imported } = credential
  if (imported) return tenantId !== null
  return tenantId !== null && [tenantId, `${tenantId}/${key}`, `${tenantId}/${name}`].includes(userName)
}
