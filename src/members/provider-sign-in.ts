/**
 * Sign-in with an account of an identity provider, for members of the organisation. The first sign-in binds the account to the member
 * with its verified address; from then on only the account counts. An account belongs to one member, and a member has one account.
 */
import { type Ids, Refusal } from '#base'
import { sql, type Tx } from '#db'
import { type Member, type Role, tokenHashOf } from './manage-members.ts'

/** A person as the identity provider identified them. */
export interface ProvenAccount {
  issuer: string
  subject: string
  /** The address that the identity provider has verified; undefined: not verified. */
  address: string | undefined
  /** The role that the identity provider gives; undefined: no role, and members keep the role that they have. */
  role: Role | undefined
}

/** The changes of a sign-in, for the audit log. */
export interface AccountChanges {
  isNew: boolean
  isBound: boolean
  formerRole: Role | undefined
}

interface StoredMember extends Member {
  id: number
  issuer: string | null
  subject: string | null
}

const columns = sql.part`id, address, role, tenant_id as "tenantId", openid_issuer as issuer, openid_subject as subject`

/** Two first sign-ins with one account wait for each other. */
const lockAccount = sql`
  select pg_advisory_xact_lock($1::bigint)`

const memberByAccount = sql<StoredMember>`
  select ${columns}
  from members
  where openid_issuer = $1 and openid_subject = $2 and tenant_id is null
  for update`

const memberByAddress = sql<StoredMember>`
  select ${columns}
  from members
  where address = $1 and tenant_id is null
  for update`

const insertMember = sql<StoredMember>`
  insert into members (address, tenant_id, role, created_at)
  values ($1, null, $2, $3)
  on conflict (address, tenant_id) do nothing
  returning ${columns}`

/** A password link that has not been used no longer works. */
const bindAccount = sql`
  update members
  set openid_issuer = $2, openid_subject = $3, sign_in_token_hash = null, sign_in_expires_at = null
  where id = $1`

const saveRole = sql`
  update members
  set role = $2
  where id = $1`

/**
 * The member of the account, whose row stays locked until the end of the transaction: found, bound or added, and with the role that the
 * provider gives. Refuses `permission_denied` without saving anything.
 */
export async function memberOfAccount(
  tx: Tx,
  account: ProvenAccount,
  { nowMs }: { nowMs: number },
): Promise<{ member: Member & { id: number }; changes: AccountChanges }> {
  const { issuer, subject, role } = account
  await tx.run(lockAccount, [tokenHashOf(`${issuer} ${subject}`).readBigInt64BE(0).toString()])
  const bound = await tx.first(memberByAccount, [issuer, subject])
  const { member, isNew } = bound ? { member: bound, isNew: false } : await memberToBind(tx, account, nowMs)
  if (!bound) await tx.run(bindAccount, [member.id, issuer, subject])
  const formerRole = role !== undefined && role !== member.role ? member.role : undefined
  if (formerRole !== undefined) await tx.run(saveRole, [member.id, role])
  const { id, address, tenantId } = member
  return { member: { id, address, tenantId, role: role ?? member.role }, changes: { isNew, isBound: !bound, formerRole } }
}

/** The member with the verified address. If the identity provider gives roles, it decides who is a member. */
async function memberToBind(
  tx: Tx,
  { issuer, address, role }: ProvenAccount,
  nowMs: number,
): Promise<{ member: StoredMember; isNew: boolean }> {
  if (address === undefined)
    throw new Refusal('permission_denied', {
      message: 'the identity provider has not verified an email address of this account',
      suggestion: 'Verify the address at the identity provider, then sign in again',
    })
  const name = address.toLowerCase()
  const added = role === undefined ? undefined : await tx.first(insertMember, [name, role, new Date(nowMs)])
  if (added) return { member: added, isNew: true }
  const member = await tx.first(memberByAddress, [name])
  if (!member)
    throw new Refusal('permission_denied', {
      message: `the address ${name} does not belong to a member of the organisation`,
      suggestion: 'Ask an owner to add this address on the page Members',
    })
  if (member.issuer === issuer)
    throw new Refusal('permission_denied', {
      message: `the member ${name} signs in with another account of the identity provider`,
      suggestion: 'Use that account, or ask an owner to reset this member',
    })
  return { member, isNew: false }
}

const insertSession = sql`
  insert into sessions (token_hash, member_id, started_at, seen_at)
  values ($1, $2, $3, $3)`

const tokenLength = 43

/** Starts a session for a member whose row is locked; returns its token. */
export async function startProviderSession(tx: Tx, memberId: number, { nowMs, ids }: { nowMs: number; ids: Ids }): Promise<string> {
  const token = ids.token(tokenLength)
  await tx.run(insertSession, [tokenHashOf(token), memberId, new Date(nowMs)])
  return token
}
