/**
 * API keys: who is this, and what may they do.
 * Owns: credentials. Uses: base, db. Used by: http, cli.
 * Promises: a key is shown once and kept as a SHA-256 hash; a revoked or held key stops working in every process within a second.
 */
import { createHash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { type Clock, type Ids, Refusal } from '#base'
import { type Db, type Queryable, sql } from '#db'

export const permissions = ['emails:send', 'emails:read', 'domains:manage', 'webhooks:manage', 'suppressions:manage'] as const
export type Permission = (typeof permissions)[number]

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
}

const keyLength = 32
const keyForm = /^svc_(live|test)_[0-9A-Za-z]{32}$/

const insertCredential = sql<{ id: number }>`
  insert into credentials (tenant_id, name, type, mode, hold, key_hash, key_prefix, permissions, created_at, updated_at)
  values ($1, $2, 'api', $3, false, $4, $5, $6, $7, $7)
  returning id`

const credentialByKey = sql<Credential>`
  select id, tenant_id as "tenantId", name, mode, hold, permissions, key_prefix as "keyPrefix", revoked_at is not null as revoked
  from credentials
  where key_hash = $1 and type = 'api'`

const markUsed = sql`
  update credentials
  set last_used_at = used.at
  from unnest($1::bigint[], $2::timestamptz[]) as used (id, at)
  where credentials.id = used.id`

const hashOf = (key: string) => createHash('sha256').update(key).digest()

/** Creates an API key, to be shown once. */
export async function createKey(
  on: Queryable,
  wanted: { mode: 'live' | 'test'; name: string; tenantId: string | null; permissions: readonly Permission[] | null },
  facts: { nowMs: number; ids: Ids },
): Promise<{ id: number; key: string }> {
  if (!/^[a-zA-Z0-9_-]{1,50}$/.test(wanted.name)) {
    throw new Refusal('validation_error', { field: 'name', message: 'name must be 1 to 50 letters, digits, _ or -' })
  }
  if (wanted.permissions?.length === 0) {
    throw new Refusal('validation_error', {
      field: 'permissions',
      message: 'permissions must name at least one permission, or be left out for full access',
    })
  }
  const key = `svc_${wanted.mode}_${facts.ids.token(keyLength)}`
  const row = await on.first(insertCredential, [
    wanted.tenantId,
    wanted.name,
    wanted.mode,
    hashOf(key),
    key.slice(0, 8),
    wanted.permissions,
    new Date(facts.nowMs),
  ])
  return { id: (row as { id: number }).id, key }
}

/** A revoked or held key stops working within this time in every process. */
const cacheMs = 900
const lastUsedEveryMs = 60_000

export interface Credentials {
  /**
   * The credential of a key; refuses `invalid_api_key` for a malformed or unknown key and `expired_api_key` for a revoked one.
   * A held one is returned: what it may not do is said later, in the order of the contract.
   */
  authenticate(key: string): Promise<Credential>
  /** Writes down the last uses seen since the last call; at most one a minute for each credential. */
  saveUses(): Promise<void>
}

export function openCredentials({ db, clock }: { db: Db; clock: Clock }): Credentials {
  const cache = new LRUCache<string, { credential: Credential | undefined }>({
    max: 10_000,
    ttl: cacheMs,
    perf: { now: () => clock.monotonicMs() },
    fetchMethod: async (key) => ({ credential: await db.first(credentialByKey, [hashOf(key)]) }),
  })
  const savedAt = new LRUCache<number, number>({ max: 10_000 })
  const toSave = new Map<number, Date>()
  return {
    async authenticate(key) {
      if (!keyForm.test(key))
        throw new Refusal('invalid_api_key', {
          message: 'the API key must start with svc_live_ or svc_test_, followed by 32 letters and digits',
        })
      const credential = (await cache.fetch(key))?.credential
      if (!credential) throw new Refusal('invalid_api_key', { message: 'no credential has this API key' })
      if (credential.revoked) throw new Refusal('expired_api_key', { message: 'this API key has been revoked' })
      const nowMs = clock.nowMs()
      if (nowMs - (savedAt.get(credential.id) ?? 0) >= lastUsedEveryMs) {
        savedAt.set(credential.id, nowMs)
        toSave.set(credential.id, new Date(nowMs))
      }
      return credential
    },
    async saveUses() {
      if (toSave.size === 0) return
      const uses = [...toSave]
      toSave.clear()
      await db.run(markUsed, [uses.map(([id]) => id), uses.map(([, at]) => at)])
    },
  }
}
