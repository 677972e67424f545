/** Keys that another program made, for callers that go on with them. Of a key its hash and its first and last four characters are stored. */
import { type Ids, wrongField } from '#base'
import { type Queryable, sql, type Tx } from '#db'
import { tenantForNew } from '#tenants'
import { type CredentialType, endLength, keyHashOf } from './manage-credentials.ts'

/** Keys of other programs that can be taken over: letters and digits, so that a header and an SMTP client carry them unchanged. */
export const importedKeyForm = /^[0-9A-Za-z]{16,64}$/

export interface ImportedKey {
  type: CredentialType
  /** Any name; it is shortened to the characters that names of credentials may have. */
  name: string
  tenantId: string
  /** Of `importedKeyForm`. */
  key: string
  hold: boolean
  lastUsedAt: Date | null
  createdAt: Date
  /** The program that made the key. */
  from: 'postal'
}

const insertImported = sql<{ id: number }>`
  insert into credentials (id, tenant_id, name, type, mode, hold, key_hash, key_prefix, permissions, last_used_at, created_at, updated_at,
                           imported_from, key_end)
  select number, $1, $2, $3, 'live', $4::boolean, $5::bytea, $6, null, $7::timestamptz, $8::timestamptz, $8, $9, $11
  from unnest($10::integer[]) with ordinality as drawn (number, nth)
  where not exists (select from credentials where id = number)
  order by nth
  limit 1
  on conflict (key_hash) do nothing
  returning id`

const ownersOfKeys = sql<{ keyHash: Buffer; tenantId: string | null }>`
  select key_hash as "keyHash", tenant_id as "tenantId"
  from credentials
  where key_hash = any($1::bytea[])`

/** The tenant ('': the organisation) of each of these keys that this installation has, also of revoked ones. */
export async function findImportedKeys(on: Queryable, keys: readonly string[]): Promise<Map<string, string>> {
  const byHash = new Map(keys.map((key) => [keyHashOf(key).toString('hex'), key]))
  const rows = await on.rows(ownersOfKeys, [[...byHash.keys()].map((hex) => `\\x${hex}`)])
  return new Map(rows.map(({ keyHash, tenantId }) => [byHash.get(keyHash.toString('hex')) ?? '', tenantId ?? '']))
}

/**
 * Stores a key that another program made, so that its callers go on with it. Returns false if this installation has the key
 * already, also a revoked one. Refuses `validation_error` for a key of another form, and as `tenantForNew`.
 */
export async function importCredential(tx: Tx, imported: ImportedKey, { ids }: { ids: Ids }): Promise<boolean> {
  if (!importedKeyForm.test(imported.key)) throw wrongField('key', 'must have 16 to 64 letters and digits')
  await tenantForNew(tx, imported.tenantId)
  const name = imported.name.replace(/[^a-zA-Z0-9_-]+/g, '-').slice(0, 50) || 'imported'
  const { tenantId, type, hold, key, lastUsedAt, createdAt, from } = imported
  const row = [
    tenantId,
    name,
    type,
    hold,
    keyHashOf(key),
    key.slice(0, 4),
    lastUsedAt,
    createdAt,
    from,
    ids.numbers(),
    key.slice(-endLength),
  ]
  return (await tx.first(insertImported, row)) !== undefined
}
