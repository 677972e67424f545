/**
 * Signing in, by password or by a one-time link, and who is signed in. A session lives 7 days, and ends earlier when it was not used for a
 * day. Guessing is slowed per address and network, per network, and per address.
 */
import { LRUCache } from 'lru-cache'
import { type Clock, type Ids, Refusal, remembered } from '#base'
import { type Db, sql } from '#db'
import { checkPassword, isPassword, keepPassword } from './passwords.ts'
import { hashOf, type Member } from './records.ts'

export interface Session extends Member {
  memberId: number
}

export interface Sessions {
  /** Refuses `authentication_required` for a wrong address or password, `rate_limit_exceeded` after too many. */
  signIn(given: { address: string; password: string; network: string }): Promise<{ token: string; session: Session }>
  /** Whose link it is; refuses `not_found` when it was used, is too old, or never was. */
  ownerOfLink(signInToken: string, network: string): Promise<string>
  /** Sets the password and uses the link up; every other session of the member ends. Refuses as `ownerOfLink`, and a bad password. */
  useLink(given: { signInToken: string; password: string; network: string }): Promise<{ token: string; session: Session }>
  /** undefined: unknown, ended, or too old. */
  find(token: string): Promise<Session | undefined>
  end(token: string): Promise<void>
  /** Sessions were ended by this process, which sees it at once. */
  forget(): void
}

const longestMs = 7 * 86_400_000
const longestUnusedMs = 86_400_000
const notedEveryMs = 60_000
const tokenForm = /^[0-9A-Za-z]{43}$/
const tokenLength = 43

const failureWindowMs = 15 * 60_000
/** Many people may share a network, and a stranger who guesses must not lock out the member: so three counts. */
const mostFailures = { pair: 10, network: 50, address: 200 }
const mostCounted = 50_000

interface Signing extends Member {
  id: number
  password: string | null
}

const memberByAddress = sql<Signing>`
  select id, address, role, tenant_id as "tenantId", password
  from members
  where address = $1`

const memberByLink = sql<Signing>`
  select id, address, role, tenant_id as "tenantId", password
  from members
  where sign_in_hash = $1 and sign_in_until > $2`

const useLinkUp = sql`
  update members
  set password = $3, sign_in_hash = null, sign_in_until = null
  where sign_in_hash = $1 and sign_in_until > $2`

const insertSession = sql`
  insert into sessions (token_hash, member_id, started_at, seen_at)
  values ($1, $2, $3, $3)`

const endSession = sql`
  delete from sessions
  where token_hash = $1`

const endAllOf = sql`
  delete from sessions
  where member_id = $1`

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

export function openSessions({ db, clock, ids }: { db: Db; clock: Clock; ids: Ids }): Sessions {
  const known = remembered(clock, (token) => db.first(sessionByToken, [hashOf(token)]))
  const failures = openFailures(clock)

  const start = async (member: Signing) => {
    const nowMs = clock.nowMs()
    const token = ids.token(tokenLength)
    await db.run(dropOld, [new Date(nowMs - longestMs), new Date(nowMs - longestUnusedMs)])
    await db.run(insertSession, [hashOf(token), member.id, new Date(nowMs)])
    const { id, address, role, tenantId } = member
    return { token, session: { memberId: id, address, role, tenantId } }
  }
  const linkOf = async (signInToken: string, network: string) => {
    failures.refuseIfTooMany('', network)
    const found = tokenForm.test(signInToken) ? await db.first(memberByLink, [hashOf(signInToken), new Date(clock.nowMs())]) : undefined
    if (found) return found
    failures.note('', network)
    throw new Refusal('not_found', {
      message: 'this sign-in link was used already, or is older than 24 hours',
      suggestion: 'Sign in with your password, or ask an owner for a new link (postrider member reset ADDRESS)',
    })
  }
  return {
    async signIn({ address, password, network }) {
      const name = address.trim().toLowerCase()
      failures.refuseIfTooMany(name, network)
      const member = name.includes('\0') ? undefined : await db.first(memberByAddress, [name])
      if (!(await isPassword(password, member?.password)) || !member) {
        failures.note(name, network)
        throw new Refusal('authentication_required', {
          message: 'the address or the password is wrong',
          suggestion: 'Try again, or ask an owner for a new sign-in link (postrider member reset ADDRESS)',
        })
      }
      return start(member)
    },
    ownerOfLink: async (signInToken, network) => (await linkOf(signInToken, network)).address,
    async useLink({ signInToken, password, network }) {
      const member = await linkOf(signInToken, network)
      checkPassword(password, member.address)
      const kept = await keepPassword(password, ids)
      await db.transaction(async (tx) => {
        const used = await tx.run(useLinkUp, [hashOf(signInToken), new Date(clock.nowMs()), kept])
        if (used === 0) throw new Refusal('not_found', { message: 'this sign-in link was used already' })
        await tx.run(endAllOf, [member.id])
      })
      known.forget()
      return start(member)
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
    forget: () => known.forget(),
  }
}

/** Failed attempts of the last quarter of an hour, in this process. */
function openFailures(clock: Clock) {
  const counts = new LRUCache<string, { count: number; sinceMs: number }>({ max: mostCounted })
  const current = (name: string) => {
    const found = counts.get(name)
    return found && clock.monotonicMs() - found.sinceMs < failureWindowMs ? found : undefined
  }
  const namesOf = (address: string, network: string) =>
    [
      [`network ${network}`, mostFailures.network],
      ...(address === ''
        ? []
        : ([
            [`pair ${network} ${address}`, mostFailures.pair],
            [`address ${address}`, mostFailures.address],
          ] as const)),
    ] as const
  return {
    refuseIfTooMany(address: string, network: string) {
      for (const [name, most] of namesOf(address, network)) {
        const found = current(name)
        if (!found || found.count < most) continue
        const waitMs = found.sinceMs + failureWindowMs - clock.monotonicMs()
        throw new Refusal('rate_limit_exceeded', {
          message: 'too many failed attempts to sign in',
          retryAfterSeconds: Math.max(1, Math.ceil(waitMs / 1000)),
          shouldRetry: false,
        })
      }
    },
    note(address: string, network: string) {
      for (const [name] of namesOf(address, network)) {
        const found = current(name)
        if (found) found.count++
        else counts.set(name, { count: 1, sinceMs: clock.monotonicMs() })
      }
    },
  }
}
