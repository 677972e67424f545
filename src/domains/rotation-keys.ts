/** The next and retired DKIM keys of sending domains as rows, and the change of the keys that sign, which is one transaction. */
import type { Ids, Secrets } from '#base'
import { type Queryable, sql, type Tx } from '#db'
import { type KeyPair, makeEd25519Key, makeRsaKey } from '#dkim'
import type { RecordStatus } from './dns-records.ts'
import { sealNameOf, sealNameOfNext } from './sealed-keys.ts'

/** The key that names a domain's rows. */
export interface DomainKey {
  tenantId: string
  id: number
}

/** A sending domain, as its rotation needs it. */
export interface RotatedDomain extends DomainKey {
  uuid: string
  name: string
  selector: string
  rsaPublic: string
  ed25519Public: string
  ownKey: boolean
  verified: boolean
  testOnly: boolean
  dkimStatus: RecordStatus | null
  delegated: boolean
  /** Since when the present keys sign. */
  keySince: Date
}

/** A key beside the ones that sign. */
export interface OtherKey {
  domainId: number
  selector: string
  state: 'next' | 'retired'
  rsaPublic: string
  ed25519Public: string
  reason: 'command' | 'schedule'
  createdAt: Date
  checkedAt: Date | null
  seenSince: Date | null
  ed25519SeenSince: Date | null
  problem: string | null
  keepUntil: Date | null
}

const rotatedColumns = sql.part`
  tenant_id as "tenantId", id, uuid, name, selector, rsa_public as "rsaPublic", ed25519_public as "ed25519Public", own_key as "ownKey", verified,
  test_only as "testOnly", dkim_status as "dkimStatus", delegated, coalesce(key_since, created_at) as "keySince"`

const otherColumns = sql.part`
  domain_id as "domainId", selector, state, rsa_public as "rsaPublic", ed25519_public as "ed25519Public", reason, created_at as "createdAt",
  checked_at as "checkedAt", seen_since as "seenSince", ed25519_seen_since as "ed25519SeenSince", problem, keep_until as "keepUntil"`

const claimDue = sql<RotatedDomain>`
  with due (due_tenant_id, due_id) as materialized (
    select tenant_id, id
    from domains
    where next_rotation_at <= $1 and not test_only
    order by next_rotation_at
    limit $3
    for update skip locked
  )
  update domains
  set next_rotation_at = $2
  from due
  where tenant_id = due_tenant_id and id = due_id
  returning ${rotatedColumns}`

const rotatedById = sql<RotatedDomain>`
  select ${rotatedColumns}
  from domains
  where tenant_id = $1 and id = $2`

const rotatedOf = sql<RotatedDomain>`
  select ${rotatedColumns}
  from domains
  where not test_only and ($1::text is null or tenant_id = $1)
  order by name, tenant_id`

const setNextLook = sql`
  update domains
  set next_rotation_at = $3, delegated = coalesce($4, delegated)
  where tenant_id = $1 and id = $2`

const othersOf = sql<OtherKey>`
  select ${otherColumns}
  from dkim_keys
  where tenant_id = $1 and domain_id = $2
  order by created_at, selector`

const allOthers = sql<OtherKey>`
  select ${otherColumns}
  from dkim_keys
  where $1::text is null or tenant_id = $1
  order by created_at, selector`

/** Of the columns that make up the records below the platform's name. */
const targetsDigest = sql<{ digest: string | null }>`
  with keys as (
    select id as domain_id, selector, rsa_public, ed25519_public
    from domains
    where not test_only and not own_key
    union all
    select domain_id, selector, rsa_public, ed25519_public
    from dkim_keys
  ), hashes as (
    select domain_id, selector, sha256(convert_to(concat_ws(' ', domain_id, selector, rsa_public, ed25519_public), 'UTF8')) as hash
    from keys
  )
  select encode(sha256(string_agg(hash, '' order by domain_id, selector)), 'hex') as digest
  from hashes`

const insertNext = sql`
  insert into dkim_keys (tenant_id, domain_id, selector, uuid, state, rsa_private, rsa_public, ed25519_private, ed25519_public, reason, created_at)
  select tenant_id, id, $3, $4::uuid, 'next', $5::bytea, $6, $7::bytea, $8, $9, $10::timestamptz
  from domains
  where tenant_id = $1 and id = $2 and selector <> $3
  on conflict do nothing`

const saveSight = sql`
  update dkim_keys
  set checked_at = $4, seen_since = $5, ed25519_seen_since = $6, problem = $7
  where tenant_id = $1 and domain_id = $2 and selector = $3 and state = 'next'`

const dropNext = sql`
  delete from dkim_keys
  where tenant_id = $1 and domain_id = $2 and state = 'next'`

const dropEnded = sql`
  delete from dkim_keys
  where tenant_id = $1 and domain_id = $2 and state = 'retired' and keep_until <= $3`

const lockDomain = sql<{ uuid: string; selector: string }>`
  select uuid, selector
  from domains
  where tenant_id = $1 and id = $2
  for update`

const lockNext = sql<{ uuid: string; rsaPrivate: Buffer; ed25519Private: Buffer }>`
  select uuid, rsa_private as "rsaPrivate", ed25519_private as "ed25519Private"
  from dkim_keys
  where tenant_id = $1 and domain_id = $2 and selector = $3 and state = 'next'
  for update`

/** Its private keys are not kept. */
const retirePresent = sql`
  insert into dkim_keys (tenant_id, domain_id, selector, uuid, state, rsa_public, ed25519_public, reason, created_at, keep_until)
  select tenant_id, id, selector, $3::uuid, 'retired', rsa_public, ed25519_public, $4, coalesce(key_since, created_at), $5
  from domains
  where tenant_id = $1 and id = $2`

const useNext = sql`
  update domains
  set selector = used.selector, rsa_private = $4, rsa_public = used.rsa_public, ed25519_private = $5, ed25519_public = used.ed25519_public,
      own_key = false, signs_ed25519 = $6::boolean, key_since = $7::timestamptz, dkim_status = 'OK',
      dkim_ed25519_status = case when $6 then 'OK' else 'Missing' end,
      next_check_at = case when next_check_at is null then null else $7 end
  from dkim_keys used
  where domains.tenant_id = $1 and domains.id = $2 and used.tenant_id = $1 and used.domain_id = $2 and used.selector = $3`

export const claimDueRotations = (on: Queryable, { nowMs, untilMs }: { nowMs: number; untilMs: number }, maximum: number) =>
  on.rows(claimDue, [new Date(nowMs), new Date(untilMs), maximum])
export const findRotated = (on: Queryable, { tenantId, id }: DomainKey) => on.first(rotatedById, [tenantId, id])
/** Every domain with keys, by name; of one tenant, or of the organisation (null). */
export const listRotated = (on: Queryable, scope: string | null) => on.rows(rotatedOf, [scope])
export const listOtherKeys = (on: Queryable, { tenantId, id }: DomainKey) => on.rows(othersOf, [tenantId, id])
export const listAllOtherKeys = (on: Queryable, scope: string | null) => on.rows(allOthers, [scope])
/** Changes when `listDkimTargets` does; null: no targets. Takes no key out of the database. */
export const digestDkimTargets = async (on: Queryable): Promise<string | null> => (await on.first(targetsDigest))?.digest ?? null
/** `delegated` undefined: unchanged. */
export const saveNextLook = (on: Queryable, { tenantId, id }: DomainKey, nextMs: number, delegated?: boolean) =>
  on.run(setNextLook, [tenantId, id, new Date(nextMs), delegated ?? null])

/** Gives up the next keys, and returns whether there were any: the present ones go on signing. */
export const cancelRotation = async (on: Queryable, { tenantId, id }: DomainKey): Promise<boolean> =>
  (await on.run(dropNext, [tenantId, id])) > 0

export const dropEndedKeys = (on: Queryable, { tenantId, id }: DomainKey, nowMs: number) =>
  on.run(dropEnded, [tenantId, id, new Date(nowMs)])

export interface MadeKeys {
  rsa: KeyPair
  ed25519: KeyPair
}

/** Off the event loop, and before a transaction: it takes a fifth of a second. */
export const makeKeys = async (): Promise<MadeKeys> => ({ rsa: await makeRsaKey(), ed25519: makeEd25519Key() })

/** Returns whether they were stored: a domain has one pair of next keys. */
export async function insertNextKeys(
  on: Queryable,
  { tenantId, id }: DomainKey,
  { selector, keys, reason }: { selector: string; keys: MadeKeys; reason: OtherKey['reason'] },
  { ids, secrets, nowMs }: { ids: Ids; secrets: Secrets; nowMs: number },
): Promise<boolean> {
  const uuid = ids.uuid()
  const seal = (algorithm: 'rsa' | 'ed25519') => secrets.seal(sealNameOfNext(algorithm)(uuid), Buffer.from(keys[algorithm].privateKey))
  const row = [
    tenantId,
    id,
    selector,
    uuid,
    seal('rsa'),
    keys.rsa.publicKey,
    seal('ed25519'),
    keys.ed25519.publicKey,
    reason,
    new Date(nowMs),
  ]
  return (await on.run(insertNext, row)) > 0
}

export const saveKeySight = (
  on: Queryable,
  { tenantId, id }: DomainKey,
  {
    selector,
    nowMs,
    seenSinceMs,
    ed25519SeenSinceMs,
    problem,
  }: {
    selector: string
    nowMs: number
    seenSinceMs: number | null
    ed25519SeenSinceMs: number | null
    problem: string | null
  },
) => on.run(saveSight, [tenantId, id, selector, new Date(nowMs), dateOf(seenSinceMs), dateOf(ed25519SeenSinceMs), problem])

const dateOf = (ms: number | null) => (ms === null ? null : new Date(ms))

/**
 * Puts the next keys to use and retires the present ones. Returns false, without a change, if another process did so before, or the
 * domain or its next keys are gone.
 */
export async function switchKeys(
  tx: Tx,
  { tenantId, id, selector: present }: DomainKey & { selector: string },
  next: { selector: string; withEd25519: boolean; reason: OtherKey['reason'] },
  { ids, secrets, nowMs, keepMs }: { ids: Ids; secrets: Secrets; nowMs: number; keepMs: number },
): Promise<boolean> {
  const domain = await tx.first(lockDomain, [tenantId, id])
  const key = domain?.selector === present ? await tx.first(lockNext, [tenantId, id, next.selector]) : undefined
  if (!domain || !key) return false
  const reseal = (algorithm: 'rsa' | 'ed25519', sealed: Buffer) =>
    secrets.seal(sealNameOf(algorithm)(domain.uuid), secrets.open(sealNameOfNext(algorithm)(key.uuid), sealed))
  await tx.run(retirePresent, [tenantId, id, ids.uuid(), next.reason, new Date(nowMs + keepMs)])
  await tx.run(useNext, [
    tenantId,
    id,
    next.selector,
    reseal('rsa', key.rsaPrivate),
    reseal('ed25519', key.ed25519Private),
    next.withEd25519,
    new Date(nowMs),
  ])
  await tx.run(dropNext, [tenantId, id])
  return true
}
