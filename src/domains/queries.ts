/** Sending domains as rows: find, list, delete. Private keys are in columns that this file does not read. */
import { Refusal } from '#base'
import { type Queryable, sql, type Tx } from '#db'
import type { PublishedFacts, RecordProblems } from './dns-records.ts'

export interface Domain extends PublishedFacts {
  id: number
  uuid: string
  tenantId: string
  trusted: boolean
  verified: boolean
  verifiedAt: Date | null
  /** Usable by test keys only. */
  testOnly: boolean
  /** The RSA key was brought along; the Ed25519 key signs only once its record was found. */
  ownKey: boolean
  createdAt: Date
}

/** With the time of the last check, and the DMARC record that it found. */
export type ListedDomain = Domain & { checkedAt: Date | null; dmarcRecord: string | null }

/** With the last check's results. */
export interface CheckedDomain extends Domain {
  findings: RecordProblems
  checkedAt: Date | null
  /** Consecutive failed background checks while verified. */
  failedChecks: number
}

export const domainColumns = sql.part`
  id, uuid, tenant_id as "tenantId", name, trusted, verified, verified_at as "verifiedAt", test_only as "testOnly", own_key as "ownKey", selector,
  rsa_public as "rsaPublic", ed25519_public as "ed25519Public", spf_status as "spfStatus", dkim_status as "dkimStatus",
  dkim_ed25519_status as "dkimEd25519Status", return_path_status as "returnPathStatus", created_at as "createdAt"`

export const checkedColumns = sql.part`${domainColumns}, findings, checked_at as "checkedAt", failed_checks as "failedChecks"`

const domainById = sql<CheckedDomain>`
  select ${checkedColumns}
  from domains
  where id = $1 and ($2::text is null or tenant_id = $2)`

const domainByUuid = sql<CheckedDomain>`
  select ${checkedColumns}
  from domains
  where uuid = $1 and ($2::text is null or tenant_id = $2)`

const verifiedIds = sql<{ id: number }>`
  select id
  from domains
  where id = any($1::bigint[]) and verified`

const allDomains = sql<ListedDomain>`
  select ${domainColumns}, checked_at as "checkedAt",
         case when findings->'dmarc'->>'status' = 'OK' then findings->'dmarc'->'found'->>0 end as "dmarcRecord"
  from domains
  where $1::text is null or tenant_id = $1
  order by created_at, id`

const trust = sql<Domain>`
  update domains
  set trusted = true, verified = true, verified_at = coalesce(verified_at, $3), failed_checks = 0, next_check_at = coalesce(next_check_at, $3)
  where tenant_id = $1 and id = $2
  returning ${domainColumns}`

const dropDomain = sql`
  delete from domains
  where tenant_id = $1 and id = $2`

const dropDomainsOf = sql`
  delete from domains
  where tenant_id = $1`

/** Sixteen digits could exceed the exact integers of a double. */
const decimal = /^[1-9]\d{0,14}$/
const uuidForm = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

const noSuchDomain = () => new Refusal('not_found', { message: 'no such domain' })

/** By id or uuid, as in a path. A scope of null is the whole organisation. Refuses `not_found`. */
export async function getDomain(on: Queryable, id: string, scope: string | null): Promise<CheckedDomain> {
  const found = decimal.test(id)
    ? await on.first(domainById, [id, scope])
    : uuidForm.test(id)
      ? await on.first(domainByUuid, [id, scope])
      : undefined
  if (!found) throw noSuchDomain()
  return found
}

/** By id only. A scope of null is the whole organisation. */
export const findDomainById = (on: Queryable, id: number, scope: string | null): Promise<CheckedDomain | undefined> =>
  on.first(domainById, [id, scope])

/** Which of these ids are of domains that their tenants have proven to control, or that the operator trusts. */
export async function listVerifiedIds(on: Queryable, ids: readonly number[]): Promise<Set<number>> {
  return new Set((await on.rows(verifiedIds, [ids])).map(({ id }) => id))
}

/** The domain with this uuid, of any tenant. */
export const findDomainByUuid = (on: Queryable, uuid: string): Promise<CheckedDomain | undefined> => on.first(domainByUuid, [uuid, null])

/** All domains of a tenant, or of the organisation (null), the oldest first. */
export const listDomains = (on: Queryable, scope: string | null): Promise<ListedDomain[]> => on.rows(allDomains, [scope])

/** The operator's override: usable without DNS verification. Refuses `not_found`. */
export async function trustDomain(on: Queryable, { tenantId, id }: Pick<Domain, 'tenantId' | 'id'>, nowMs: number): Promise<Domain> {
  const trusted = await on.first(trust, [tenantId, id, new Date(nowMs)])
  if (!trusted) throw noSuchDomain()
  return trusted
}

/** The caller updates the queue. Refuses `not_found` if it was deleted before. */
export async function removeDomain(tx: Tx, { tenantId, id }: Pick<Domain, 'tenantId' | 'id'>): Promise<void> {
  if ((await tx.run(dropDomain, [tenantId, id])) === 0) throw noSuchDomain()
}

/** Deletes all domains of a tenant; the caller deletes the tenant. */
export const removeDomainsOfTenant = (tx: Tx, tenantId: string): Promise<number> => tx.run(dropDomainsOf, [tenantId])
