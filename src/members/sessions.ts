/** Sign-in by password, one-time link or an identity provider (OpenID Connect), and sessions. A session lives 7 days, and ends earlier after a day without use. */
import { type Clock, cached, type Ids, Refusal, type Secrets } from '#base'
import { type Db, sql, type Tx } from '#db'
import { type Member, takesPassword, tokenHashOf } from './manage-members.ts'
import { checkPassword, hashPassword } from './passwords.ts'
import { type AccountChanges, memberOfAccount, type ProvenAccount, startProviderSession } from './provider-sign-in.ts'
import { openSignInThrottle } from './sign-in-throttle.ts'
import {
  checkCode,
  counted,
  type Device,
  type From,
  type MemberSecrets,
  onlyMember,
  openDevices,
  prove,
  type SignInProof,
  signingColumns,
} from './verify-sign-in.ts'

export interface Session extends Member {
  memberId: number
}

/** A session as its member sees it. */
export interface OwnSession {
  startedAt: Date
  seenAt: Date
  /** The one that asks. */
  isThis: boolean
}

/** Called in the transaction that creates the session. */
type OnSession = (tx: Tx, session: Session) => Promise<void>

export interface SignedIn {
  token: string
  session: Session
  /** Token for this device: with it, failed attempts of others do not count against this member. */
  device: string
}

export interface Sessions {
  /**
   * Refuses `authentication_required` for a wrong address or password, and with the field `code` if the second factor's code is missing or
   * wrong; `rate_limit_exceeded` after too many attempts. Throws SeveralMembers if a `tenantId` is needed.
   */
  signIn(given: { address: string; tenantId?: string | null | undefined } & From & SignInProof, onSession?: OnSession): Promise<SignedIn>
  /**
   * Signs in with an account that the identity provider has proven. Its authentication replaces the password and the second factor. Refuses
   * `permission_denied` if the account belongs to no member of the organisation.
   */
  signInWithAccount(
    account: ProvenAccount,
    onSession: (tx: Tx, session: Session, changes: AccountChanges) => Promise<void>,
  ): Promise<SignedIn>
  /** Checks the credentials of a signed-in member again, with the refusals of `signIn`. */
  proveAgain(given: { address: string; memberId: number } & From & SignInProof): Promise<void>
  /**
   * Changes the password of a signed-in member, who proves the current one, and ends the member's other sessions; `onChange` is part of the
   * transaction. Refuses as `proveAgain`, and a bad or unchanged password.
   */
  changePassword(
    given: { address: string; memberId: number; token: string; newPassword: string } & From & SignInProof,
    onChange?: (tx: Tx) => Promise<void>,
  ): Promise<void>
  /** The device whose token was issued at a sign-in of a member with this address. */
  knownDevice(token: string | undefined, address: string): Device | undefined
  /**
   * The member of a sign-in link; refuses `not_found` if it was used, has expired, or never existed, and `permission_denied` if the member
   * signs in with the identity provider only.
   */
  ownerOfLink(signInToken: string, from: From): Promise<{ address: string; needsCode: boolean }>
  /**
   * Sets the password, uses up the link and ends all other sessions of the member. Refuses as `ownerOfLink`, a bad password, and as
   * `signIn` for the code.
   */
  useLink(given: { signInToken: string } & From & SignInProof, onSession?: OnSession): Promise<SignedIn>
  /** undefined: unknown, ended or expired. */
  find(token: string): Promise<Session | undefined>
  end(token: string): Promise<void>
  /** The member's sessions that have not ended, the newest use first. */
  listOf(session: { memberId: number; token: string }): Promise<OwnSession[]>
  /** Ends the member's other sessions; `onEnd` is part of the transaction. */
  endOthers(session: { memberId: number; token: string }, onEnd?: (tx: Tx) => Promise<void>): Promise<void>
  /** Clears this process's cache after it ended sessions. */
  forget(): void
}

const maxMs = 7 * 86_400_000
const maxUnusedMs = 86_400_000
const notedEveryMs = 60_000
const tokenForm = /^[0-9A-Za-z]{43}$/
const tokenLength = 43

const memberByLink = sql<MemberSecrets>`
  select ${signingColumns}
  from members
  where sign_in_token_hash = $1 and sign_in_expires_at > $2`

const otherPasswordOf = sql<{ password: string }>`
  select password
  from members
  where address = $1 and id <> $2 and password is not null
  order by id
  limit 1`

const useLinkUp = sql`
  update members
  set password = $3, sign_in_token_hash = null, sign_in_expires_at = null
  where sign_in_token_hash = $1 and sign_in_expires_at > $2`

/** Changes no row if the password or the second factor changed since it was verified. A sign-in link no longer works. */
const savePassword = sql`
  update members
  set password = $2, sign_in_token_hash = null, sign_in_expires_at = null
  where id = $1 and password = $3 and totp_confirmed_at is not distinct from $4`

/** Inserts no row if the password or the second factor changed since it was verified. */
const insertSession = sql`
  insert into sessions (token_hash, member_id, started_at, seen_at)
  select $1, id, $3, $3
  from members
  where id = $2 and password = $4 and totp_confirmed_at is not distinct from $5`

const endSession = sql`
  delete from sessions
  where token_hash = $1`

const endAllOf = sql`
  delete from sessions
  where member_id = $1`

const endOthersOf = sql`
  delete from sessions
  where member_id = $1 and token_hash <> $2`

const maxListed = 100

const ownSessions = sql<OwnSession>`
  select started_at as "startedAt", seen_at as "seenAt", token_hash = $2 as "isThis"
  from sessions
  where member_id = $1 and started_at > $3 and seen_at > $4
  order by seen_at desc, started_at desc
  limit $5`

const dropOld = sql`
  delete from sessions
  where started_at < $1 or seen_at < $2`

const sessionByToken = sql<Session & { startedAt: Date; seenAt: Date }>`
  select member_id as "memberId", address, role, tenant_id as "tenantId", started_at as "startedAt", seen_at as "seenAt"
  from sessions
  join members on members.id = sessions.member_id
  where token_hash = $1`

const recordSeen = sql`
  update sessions
  set seen_at = $2
  where token_hash = $1 and seen_at < $2`

export interface SessionsDeps {
  db: Db
  clock: Clock
  ids: Ids
  secrets: Secrets
  /** false: members of the organisation sign in with the identity provider only. */
  passwordSignIn?: boolean | undefined
}

/** Long because each way to begin, check and end a session is one method. */
export function openSessions({ db, clock, ids, secrets, passwordSignIn = true }: SessionsDeps): Sessions {
  const hasPassword = (member: Pick<Member, 'tenantId'>) => takesPassword(member, passwordSignIn)
  const known = cached(clock, (token) => db.first(sessionByToken, [tokenHashOf(token)]))
  const failures = openSignInThrottle(db, clock)
  const devices = openDevices({ ids, secrets })
  const deps: SignInDeps = { db, clock, ids, secrets, failures, devices, hasPassword }

  return {
    async signIn({ tenantId, ...given }, onSession) {
      const member = await prove(deps, given, (one) => hasPassword(one) && (tenantId === undefined || one.tenantId === tenantId))
      return db.transaction((tx) => startSession(deps, tx, member, onSession))
    },
    async signInWithAccount(account, onSession) {
      const signedIn = await db.transaction(async (tx) => {
        const nowMs = clock.nowMs()
        await tx.run(dropOld, [new Date(nowMs - maxMs), new Date(nowMs - maxUnusedMs)])
        const { member, changes } = await memberOfAccount(tx, account, { nowMs })
        const { id, ...rest } = member
        const session = { memberId: id, ...rest }
        const token = await startProviderSession(tx, id, { nowMs, ids })
        await onSession(tx, session, changes)
        return { token, session, device: devices.make(member) }
      })
      // The role of the member's other sessions may have changed.
      known.clear()
      return signedIn
    },
    proveAgain: async ({ memberId, ...given }) => void (await prove(deps, given, onlyMember(memberId, hasPassword))),
    async changePassword(given, onChange) {
      await changePassword(deps, given, onChange)
      known.clear()
    },
    knownDevice: (token, address) => devices.known(token, address),
    async ownerOfLink(signInToken, from) {
      const { address, confirmedAt } = await ownerOf(deps, signInToken, from)
      return { address, needsCode: confirmedAt !== null }
    },
    async useLink({ signInToken, password, code, ...from }, onSession) {
      const member = await ownerOf(deps, signInToken, from)
      checkPassword(password, member.address)
      const alike = await db.first(otherPasswordOf, [member.address, member.id])
      const kept = await hashPassword(password, ids, alike?.password)
      await checkCode(deps, member, code, { counts: counted('', { ...from, device: undefined }), device: undefined })
      const started = await db.transaction(async (tx) => {
        const used = await tx.run(useLinkUp, [tokenHashOf(signInToken), new Date(clock.nowMs()), kept])
        if (used === 0) throw new Refusal('not_found', { message: 'this sign-in link was already used' })
        await tx.run(endAllOf, [member.id])
        return startSession(deps, tx, { ...member, password: kept }, onSession)
      })
      known.clear()
      return started
    },
    async find(token) {
      if (!tokenForm.test(token)) return undefined
      const found = await known.get(token)
      if (!found) return undefined
      const { startedAt, seenAt, ...session } = found
      const nowMs = clock.nowMs()
      if (nowMs - startedAt.getTime() >= maxMs || nowMs - seenAt.getTime() >= maxUnusedMs) return undefined
      if (nowMs - seenAt.getTime() >= notedEveryMs) {
        await db.run(recordSeen, [tokenHashOf(token), new Date(nowMs)])
        known.clear()
      }
      return session
    },
    async end(token) {
      await db.run(endSession, [tokenHashOf(token)])
      known.clear()
    },
    async listOf({ memberId, token }) {
      const nowMs = clock.nowMs()
      return db.rows(ownSessions, [memberId, tokenHashOf(token), new Date(nowMs - maxMs), new Date(nowMs - maxUnusedMs), maxListed])
    },
    async endOthers({ memberId, token }, onEnd) {
      await db.transaction(async (tx) => {
        await tx.run(endOthersOf, [memberId, tokenHashOf(token)])
        await onEnd?.(tx)
      })
      known.clear()
    },
    forget: () => known.clear(),
  }
}

interface SignInDeps {
  db: Db
  clock: Clock
  ids: Ids
  secrets: Secrets
  failures: ReturnType<typeof openSignInThrottle>
  devices: ReturnType<typeof openDevices>
  /** Whether a password of this member signs in. */
  hasPassword: (member: Pick<Member, 'tenantId'>) => boolean
}

const credentialsChanged = () =>
  new Refusal('authentication_required', { message: 'the password or two-factor authentication has changed' })

async function changePassword(
  deps: SignInDeps,
  { memberId, token, newPassword, ...given }: Parameters<Sessions['changePassword']>[0],
  onChange: ((tx: Tx) => Promise<void>) | undefined,
): Promise<void> {
  const { db, ids, hasPassword } = deps
  checkPassword(newPassword, given.address)
  const member = await prove(deps, given, onlyMember(memberId, hasPassword))
  if (newPassword.normalize('NFKC') === given.password.normalize('NFKC'))
    throw new Refusal('validation_error', {
      field: 'password',
      message: 'the password is the current one',
      suggestion: 'Choose another password, for example from a password manager',
      details: [{ field: 'password', message: 'is the current one' }],
    })
  const alike = await db.first(otherPasswordOf, [member.address, member.id])
  const kept = await hashPassword(newPassword, ids, alike?.password)
  await db.transaction(async (tx) => {
    if ((await tx.run(savePassword, [member.id, kept, member.password, member.confirmedAt])) === 0) throw credentialsChanged()
    await tx.run(endOthersOf, [member.id, tokenHashOf(token)])
    await onChange?.(tx)
  })
}

/** Refuses `authentication_required` if the credentials changed since they were verified. */
async function startSession(
  { clock, ids, devices }: SignInDeps,
  tx: Tx,
  member: MemberSecrets,
  onSession: OnSession | undefined,
): Promise<SignedIn> {
  const nowMs = clock.nowMs()
  const token = ids.token(tokenLength)
  await tx.run(dropOld, [new Date(nowMs - maxMs), new Date(nowMs - maxUnusedMs)])
  const { password, confirmedAt } = member
  if ((await tx.run(insertSession, [tokenHashOf(token), member.id, new Date(nowMs), password, confirmedAt])) === 0)
    throw credentialsChanged()
  const { id, address, role, tenantId } = member
  const session = { memberId: id, address, role, tenantId }
  await onSession?.(tx, session)
  return { token, session, device: devices.make(member) }
}

/** The owner of a sign-in link. Unknown links count as failed attempts of the sender. */
async function ownerOf({ db, clock, failures, hasPassword }: SignInDeps, signInToken: string, from: From): Promise<MemberSecrets> {
  const counts = counted('', { ...from, device: undefined })
  await failures.refuseIfTooMany(counts)
  const found = tokenForm.test(signInToken) ? await db.first(memberByLink, [tokenHashOf(signInToken), new Date(clock.nowMs())]) : undefined
  if (found && !hasPassword(found))
    throw new Refusal('permission_denied', {
      message: 'members of the organisation sign in with the identity provider, not with a password',
      suggestion: 'Open the sign-in page and use the button below the form',
    })
  if (found) return found
  await failures.note(counts)
  throw new Refusal('not_found', {
    message: 'this sign-in link was already used or is older than 24 hours',
    suggestion: 'Sign in with your password, or ask an owner for a new link (postrider member reset ADDRESS)',
  })
}
