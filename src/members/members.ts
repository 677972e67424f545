/**
 * People who log in. Members of the organisation (without a tenant) may also receive sandbox mail.
 * Owns: members. Uses: base, db. Used by: accept, cli.
 * Promises: a sign-in link is kept as a hash only, works once and for 24 hours.
 */
import { createHash } from 'node:crypto'
import { type Ids, Refusal } from '#base'
import { type Db, type Queryable, sql } from '#db'

export type Role = 'owner' | 'admin' | 'viewer'

export interface Member {
  address: string
  role: Role
  tenantId: string | null
}

const signInLifeMs = 24 * 3_600_000
const signInTokenLength = 43

const insertMember = sql<Member>`
  insert into members (address, tenant_id, role, sign_in_hash, sign_in_until, created_at)
  values ($1, $2, $3, $4, $5, $6)
  on conflict (address) do nothing
  returning address, role, tenant_id as "tenantId"`

const organisationMembersAmong = sql<{ address: string }>`
  select address
  from members
  where tenant_id is null and address = any($1)`

/** Adds a member and makes the sign-in token of the link, to be shown once. */
export async function addMember(
  on: Queryable,
  member: { address: string; role: Role; tenantId: string | null },
  facts: { nowMs: number; ids: Ids },
): Promise<{ member: Member; signInToken: string }> {
  const signInToken = facts.ids.token(signInTokenLength)
  const hash = createHash('sha256').update(signInToken).digest()
  const parameters = [
    member.address.toLowerCase(),
    member.tenantId,
    member.role,
    hash,
    new Date(facts.nowMs + signInLifeMs),
    new Date(facts.nowMs),
  ]
  const added = await on.first(insertMember, parameters)
  if (!added) {
    throw new Refusal('validation_error', {
      field: 'address',
      message: `address: ${member.address} is a member already`,
      suggestion: 'Use the existing member',
    })
  }
  return { member: added, signInToken }
}

/** Those of `addresses` that belong to members of the organisation, in lower case. */
export async function membersAmong(db: Db, addresses: readonly string[]): Promise<Set<string>> {
  const rows = await db.rows(organisationMembersAmong, [addresses.map((address) => address.toLowerCase())])
  return new Set(rows.map((row) => row.address))
}
