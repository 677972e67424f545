/**
 * Signing in, by password or by a one-time link, and who is signed in. A session lives 7 days, and ends earlier when it was not used for a
 * day. Guessing is slowed per address and network, per network, and per address.
 */
import { type Clock, type Ids, Refusal, remembered, type Secrets } from '#base'
import { type Db, sql, type Tx } from '#db'
import { type Counts, openFailures } from './failures.ts'
import { checkPassword, isPassword, keepPassword } from './passwords.ts'
import { hashOf, type Member } from './records.ts'
import { codeNeeded, type Factor, factorColumns, useCode } from './second-factor.ts'

export interface Session extends Member {
  memberId: number
}

/** Told of a session in the transaction that begins it. */
type Noted = (tx: Tx, session: Session) => Promise<void>

export interface Sessions {
  /**
   * Refuses `authentication_required` for a wrong address or password, and with the field `code` when the member has a second factor and the
   * code is missing or wrong; `rate_limit_exceeded` after too many.
   */
  signIn(given: { address: string; network: string } & Proof, noted?: Noted): Promise<{ token: string; session: Session }>
  /** Who is signed in proves it again, as `signIn` asks for it. */
  proveAgain(given: { address: string; network: string } & Proof): Promise<void>
  /** Whose link it is; refuses `not_found` when it was used, is too old, or never was. */
  ownerOfLink(signInToken: string, network: string): Promise<{ address: string; needsCode: boolean }>
  /**
   * Sets the password and uses the link up; every other session of the member ends. Refuses as `ownerOfLink`, a bad password, and as `signIn`
   * for the code.
   */
  useLink(given: { signInToken: string; network: string } & Proof, noted?: Noted): Promise<{ token: string; session: Session }>
  /** undefined: unknown, ended, or too old. */
  find(token: string): Promise<Session | undefined>
  end(token: string): Promise<void>
  /** All others of the same member. */
  endOthers(session: { memberId: number; token: string }): Promise<void>
  /** Sessions were ended by this process, which sees it at once. */
  forget(): void
}

export interface Proof {
  password: string
  /** Of the second factor, or a recovery code. */
  code?: string | undefined
}

const longestMs = 7 * 86_400_000
const longestUnusedMs = 86_400_000
const notedEveryMs = 60_000
const tokenForm = /^[0-9A-Za-z]{43}$/
const tokenLength = 43

/** Many people may share a network, and a stranger who guesses must not lock out the member: so three counts. */
const mostFailures = { pair: 10, network: 50, address: 200 }
/** Of those who know the password: three of a million codes are good at any time. */
const mostWrongCodes = 20

interface Signing extends Member, Factor {
  password: string | null
}

const signingColumns = sql.part`id, address, role, tenant_id as "tenantId", password, ${factorColumns}`

const memberByAddress = sql<Signing>`
  select ${signingColumns}
  from members
  where address = $1`

const memberByLink = sql<Signing>`
  select ${signingColumns}
  from members
  where sign_in_hash = $1 and sign_in_until > $2`

const useLinkUp = sql`
  update members
  set password = $3, sign_in_hash = null, sign_in_until = null
  where sign_in_hash = $1 and sign_in_until > $2`

/** Not when the password or the second factor has become another since it was proven. */
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

const dropOld = sql`
  delete from sessions
  where started_at < $1 or seen_at < $2`

const sessionByToken = sql<Session & { startedAt: Date; seenAt: Date }>`
  select member_id as "memberId", address, role, tenant_id as "tenantId", started_at as "startedAt", seen_at as "seenAt"
  from sessions
  join members on members.id = sessions.member_id
  where token_hash = $1`

const noteSeen = sql`
  update sessions
  set seen_at = $2
  where token_hash = $1 and seen_at < $2`

export function openSessions({ db, clock, ids, secrets }: { db: Db; clock: Clock; ids: Ids; secrets: Secrets }): Sessions {
  const known = remembered(clock, (token) => db.first(sessionByToken, [hashOf(token)]))
  const failures = openFailures(db, clock)

  const start = async (tx: Tx, member: Signing, noted: Noted | undefined) => {
    const nowMs = clock.nowMs()
    const token = ids.token(tokenLength)
    await tx.run(dropOld, [new Date(nowMs - longestMs), new Date(nowMs - longestUnusedMs)])
    const { password, confirmedAt } = member
    if ((await tx.run(insertSession, [hashOf(token), member.id, new Date(nowMs), password, confirmedAt])) === 0)
      throw new Refusal('authentication_required', { message: 'the password or the second factor was changed meanwhile' })
    const { id, address, role, tenantId } = member
    const session = { memberId: id, address, role, tenantId }
    await noted?.(tx, session)
    return { token, session }
  }
  const checkCode = async (member: Signing, code: string | undefined, counts: Counts) => {
    if (member.confirmedAt === null) return
    if (!code) throw codeNeeded()
    await failures.refuseIfTooMany(counts)
    try {
      await useCode(db, member, code, { nowMs: clock.nowMs(), secrets })
    } catch (error) {
      if (error instanceof Refusal) await failures.note(counts)
      throw error
    }
    await failures.refuseIfTooMany(counts)
  }
  const prove = async ({ address, password, code, network }: { address: string; network: string } & Proof): Promise<Signing> => {
    const name = address.trim().toLowerCase()
    const counts = counted(name, network)
    await failures.refuseIfTooMany(counts)
    const member = await db.first(memberByAddress, [name])
    if (!(await isPassword(password, member?.password)) || !member) {
      await failures.note(counts)
      throw new Refusal('authentication_required', {
        message: 'the address or the password is wrong',
        suggestion: 'Try again, or ask an owner for a new sign-in link (postrider member reset ADDRESS)',
      })
    }
    // Again: others may have failed while this one was waiting for its turn.
    await failures.refuseIfTooMany(counts)
    await checkCode(member, code, [...counts, codeCount(member)])
    return member
  }
  const linkOf = async (signInToken: string, network: string) => {
    await failures.refuseIfTooMany(counted('', network))
    const found = tokenForm.test(signInToken) ? await db.first(memberByLink, [hashOf(signInToken), new Date(clock.nowMs())]) : undefined
    if (found) return found
    await failures.note(counted('', network))
    throw new Refusal('not_found', {
      message: 'this sign-in link was used already, or is older than 24 hours',
      suggestion: 'Sign in with your password, or ask an owner for a new link (postrider member reset ADDRESS)',
    })
  }
  return {
    async signIn(given, noted) {
      const member = await prove(given)
      return db.transaction((tx) => start(tx, member, noted))
    },
    proveAgain: async (given) => void (await prove(given)),
    async ownerOfLink(signInToken, network) {
      const { address, confirmedAt } = await linkOf(signInToken, network)
      return { address, needsCode: confirmedAt !== null }
    },
    async useLink({ signInToken, password, code, network }, noted) {
      const member = await linkOf(signInToken, network)
      checkPassword(password, member.address)
      const kept = await keepPassword(password, ids)
      // Not the counts of the address, which strangers can raise without a password or a link.
      await checkCode(member, code, [...counted('', network), codeCount(member)])
      const started = await db.transaction(async (tx) => {
        const used = await tx.run(useLinkUp, [hashOf(signInToken), new Date(clock.nowMs()), kept])
        if (used === 0) throw new Refusal('not_found', { message: 'this sign-in link was used already' })
        await tx.run(endAllOf, [member.id])
        return start(tx, { ...member, password: kept }, noted)
      })
      known.forget()
      return started
    },
    async find(token) {
      if (!tokenForm.test(token)) return undefined
      const found = await known.get(token)
      if (!found) return undefined
      const { startedAt, seenAt, ...session } = found
      const nowMs = clock.nowMs()
      if (nowMs - startedAt.getTime() >= longestMs || nowMs - seenAt.getTime() >= longestUnusedMs) return undefined
      if (nowMs - seenAt.getTime() >= notedEveryMs) {
        await db.run(noteSeen, [hashOf(token), new Date(nowMs)])
        known.forget()
      }
      return session
    },
    async end(token) {
      await db.run(endSession, [hashOf(token)])
      known.forget()
    },
    async endOthers({ memberId, token }) {
      await db.run(endOthersOf, [memberId, hashOf(token)])
      known.forget()
    },
    forget: () => known.forget(),
  }
}

/** What a failed attempt counts for. `address` empty: for no member. */
const counted = (address: string, network: string): Counts => [
  [`network ${network}`, mostFailures.network] as const,
  ...(address === ''
    ? []
    : ([
        [`pair ${network} ${address}`, mostFailures.pair],
        [`address ${address}`, mostFailures.address],
      ] as const)),
]

const codeCount = ({ address }: Member): Counts[number] => [`code ${address}`, mostWrongCodes]
