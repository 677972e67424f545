/** Member administration: add, list, renew the sign-in link, remove. */
import { createHash } from 'node:crypto'
import { type Ids, Refusal } from '#base'
import { type Db, type Queryable, sql, type Tx } from '#db'
import { tenantForNew } from '#tenants'
import { removeSecondFactor } from './two-factor.ts'

export const roles = ['owner', 'admin', 'viewer'] as const
export type Role = (typeof roles)[number]

export interface Member {
  address: string
  role: Role
  /** null: the organisation. */
  tenantId: string | null
}

/** `provider`: an account of the identity provider, which replaces the password and the second factor. */
type SignInMeans = 'password' | 'provider'

interface ListedMember extends Member {
  signsInWith: SignInMeans
  /** The member has chosen a password. */
  hasPassword: boolean
  /** The member has signed in with an account of the identity provider, which is bound. */
  hasAccount: boolean
  hasSecondFactor: boolean
  createdAt: Date
  /** The end of the sign-in link that the member has not used yet; null: it was used. */
  invitedUntil: Date | null
  /** Of the newest session that has not ended; null: no session. */
  lastSeenAt: Date | null
}

const signInLifeMs = 24 * 3_600_000
const signInTokenLength = 43

export const tokenHashOf = (token: string): Buffer => createHash('sha256').update(token).digest()

/** Whether passwords and sign-in links work for this member. `passwordSignIn`: the setting, for members of the organisation. */
export const takesPassword = ({ tenantId }: Pick<Member, 'tenantId'>, passwordSignIn: boolean): boolean =>
  passwordSignIn || tenantId !== null

const meansOf = (member: Omit<ListedMember, 'signsInWith'>, passwordSignIn: boolean): SignInMeans =>
  !takesPassword(member, passwordSignIn) || (member.hasAccount && !member.hasPassword) ? 'provider' : 'password'

const insertMember = sql<Member>`
  insert into members (address, tenant_id, role, sign_in_token_hash, sign_in_expires_at, created_at)
  values ($1, $2, $3, $4, $5, $6)
  on conflict (address, tenant_id) do nothing
  returning address, role, tenant_id as "tenantId"`

const renewMember = sql`
  update members
  set sign_in_token_hash = $2, sign_in_expires_at = $3, password = null, openid_issuer = null, openid_subject = null
  where id = $1`

const setRole = sql`
  update members
  set role = $2
  where id = $1`

const organisationMembersAmong = sql<{ address: string }>`
  select address
  from members
  where tenant_id is null and address = any($1)`

const listedColumns = sql.part`address, role, tenant_id as "tenantId", password is not null as "hasPassword",
    openid_subject is not null as "hasAccount", totp_confirmed_at is not null as "hasSecondFactor", created_at as "createdAt",
    sign_in_expires_at as "invitedUntil", (select max(seen_at) from sessions where member_id = members.id) as "lastSeenAt"`

const memberById = sql<Omit<ListedMember, 'signsInWith'>>`
  select ${listedColumns}
  from members
  where id = $1`

const maxListed = 1000

/** $1: only this tenant; null: all. $2: part of the address; empty: any. */
const allMembers = sql<Omit<ListedMember, 'signsInWith'>>`
  select ${listedColumns}
  from members
  where ($1::text is null or tenant_id = $1) and strpos(address, $2) > 0
  order by address, tenant_id nulls first
  limit $3`

/** $2: of any tenant or the organisation; otherwise only of $3. */
const membersByName = sql<Member & { id: number }>`
  select id, address, role, tenant_id as "tenantId"
  from members
  where address = $1 and ($2 or tenant_id is not distinct from $3)
  limit 2
  for update`

const deleteMember = sql`
  delete from members
  where id = $1`

const deleteSessionsOf = sql`
  delete from sessions
  where member_id = $1`

const deleteSessionsOfTenant = sql`
  delete from sessions
  where member_id in (select id from members where tenant_id = $1)`

const deleteRecoveryCodesOfTenant = sql`
  delete from recovery_codes
  where member_id in (select id from members where tenant_id = $1)`

const deleteMembersOfTenant = sql`
  delete from members
  where tenant_id = $1`

const noSuchMember = () =>
  new Refusal('not_found', { message: 'no such member', suggestion: 'Check the address. Run postrider member list for all members' })

/** The member with an address: of a tenant, of the organisation (null), or the only one there is (undefined). */
async function getMember(tx: Tx, address: string, tenantId: string | null | undefined): Promise<Member & { id: number }> {
  const [found, another] = await tx.rows(membersByName, [address.toLowerCase(), tenantId === undefined, tenantId ?? null])
  if (!found) throw noSuchMember()
  if (another)
    throw new Refusal('validation_error', {
      field: 'tenantId',
      message: `${found.address} is a member of several tenants: name one`,
      suggestion: 'Use --tenant ID or --tenant organisation. Run postrider member list for all members',
    })
  return found
}

/** Adds a member and creates the sign-in token for the link, which is shown once. Refuses an existing address, and as `tenantForNew`. */
export async function addMember(
  tx: Tx,
  member: { address: string; role: Role; tenantId: string | null },
  facts: { nowMs: number; ids: Ids },
): Promise<{ member: Member; signInToken: string }> {
  if (member.tenantId !== null) await tenantForNew(tx, member.tenantId)
  const { signInToken, hash, until } = newSignIn(facts)
  const parameters = [member.address.toLowerCase(), member.tenantId, member.role, hash, until, new Date(facts.nowMs)]
  const added = await tx.first(insertMember, parameters)
  if (!added) {
    throw new Refusal('validation_error', {
      field: 'address',
      message: `address: ${member.address} is already a member`,
      suggestion: 'Use the existing member',
    })
  }
  return { member: added, signInToken }
}

/** Deletes the password and the binding to an account, ends all sessions and creates a new sign-in token. `tenantId`: as `getMember`. */
export async function resetMember(
  tx: Tx,
  address: string,
  tenantId: string | null | undefined,
  facts: { nowMs: number; ids: Ids },
): Promise<{ member: Member; signInToken: string }> {
  const { signInToken, hash, until } = newSignIn(facts)
  const { id, ...member } = await getMember(tx, address, tenantId)
  await tx.run(renewMember, [id, hash, until])
  await tx.run(deleteSessionsOf, [id])
  return { member, signInToken }
}

/** Sessions go on with the new role. `tenantId`: as `getMember`. */
export async function changeRole(tx: Tx, address: string, tenantId: string | null | undefined, role: Role): Promise<Member> {
  const { id, ...member } = await getMember(tx, address, tenantId)
  await tx.run(setRole, [id, role])
  return { ...member, role }
}

function newSignIn({ nowMs, ids }: { nowMs: number; ids: Ids }) {
  const signInToken = ids.token(signInTokenLength)
  return { signInToken, hash: tokenHashOf(signInToken), until: new Date(nowMs + signInLifeMs) }
}

/** By address; `tenantId` null: of the organisation and every tenant. `search`: a part of the address. `isCut`: there are more. */
export async function listMembers(
  on: Queryable,
  { tenantId, search = '' }: { tenantId: string | null; search?: string | undefined },
  passwordSignIn: boolean,
): Promise<{ members: ListedMember[]; isCut: boolean }> {
  const found = await on.rows(allMembers, [tenantId, search.trim().toLowerCase(), maxListed + 1])
  const members = found.slice(0, maxListed).map((one) => ({ ...one, signsInWith: meansOf(one, passwordSignIn) }))
  return { members, isCut: found.length > maxListed }
}

export async function signInMeansOf(on: Queryable, memberId: number, passwordSignIn: boolean): Promise<SignInMeans> {
  const member = await on.first(memberById, [memberId])
  if (!member) throw noSuchMember()
  return meansOf(member, passwordSignIn)
}

const addressesOfTenant = sql<{ address: string }>`
  select address
  from members
  where tenant_id is not distinct from $1`

/** The addresses of the members of a tenant, or (null) of the organisation. */
export const listMembersOf = async (on: Queryable, tenantId: string | null): Promise<Set<string>> =>
  new Set((await on.rows(addressesOfTenant, [tenantId])).map(({ address }) => address))

/** Removes the second factor and ends all sessions. `tenantId`: as `getMember`. */
export async function resetSecondFactor(tx: Tx, address: string, tenantId: string | null | undefined): Promise<Member> {
  const { id, ...member } = await getMember(tx, address, tenantId)
  await removeSecondFactor(tx, id)
  await tx.run(deleteSessionsOf, [id])
  return member
}

/** Also ends all sessions. `tenantId`: as `getMember`. */
export async function removeMember(tx: Tx, address: string, tenantId: string | null | undefined): Promise<Member> {
  const { id, ...member } = await getMember(tx, address, tenantId)
  await tx.run(deleteMember, [id])
  await tx.run(deleteSessionsOf, [id])
  await removeSecondFactor(tx, id)
  return member
}

/** Removes all members of a tenant that is being deleted. */
export async function removeMembersOfTenant(tx: Tx, tenantId: string): Promise<void> {
  await tx.run(deleteSessionsOfTenant, [tenantId])
  await tx.run(deleteRecoveryCodesOfTenant, [tenantId])
  await tx.run(deleteMembersOfTenant, [tenantId])
}

/** The `addresses` that belong to members of the organisation, in lower case. */
export async function membersAmong(db: Db, addresses: readonly string[]): Promise<Set<string>> {
  const rows = await db.rows(organisationMembersAmong, [addresses.map((address) => address.toLowerCase())])
  return new Set(rows.map((row) => row.address))
}
