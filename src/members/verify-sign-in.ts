/**
 * Verifies a sign-in: the password, and a code if two-factor authentication is on. Guessing is limited per network and per address, but
 * never locks a member out. Attempts from a network without failures, or from a device that has signed in to this address before, are
 * always checked.
 */
import { timingSafeEqual } from 'node:crypto'
import { type Clock, type Ids, Refusal, type Secrets } from '#base'
import { type Db, sql } from '#db'
import { tenantNames } from '#tenants'
import type { Member } from './manage-members.ts'
import { verifyPassword } from './passwords.ts'
import type { FailureLimit, FailureLimits, SignInThrottle } from './sign-in-throttle.ts'
import { codeNeeded, type Factor, factorColumns, isAppCode, useCode } from './two-factor.ts'

export interface SignInProof {
  password: string
  /** An app code or a recovery code. */
  code?: string | undefined
}

/** The origin of an attempt. */
export interface From {
  network: string
  /** The larger network that contains this one, counted too; undefined: unknown. */
  site?: string | undefined
  /** The result of `knownDevice` for the device's token. */
  device?: Device | undefined
}

/** A device on which this member has signed in before. */
export interface Device {
  name: string
  memberId: number
}

export interface MemberSecrets extends Member, Factor {
  password: string | null
}

/** Several members have this address and password, so the tenant must be given. */
export class SeveralMembers extends Error {
  readonly choices: readonly { tenantId: string | null; name: string | null }[]
  constructor(choices: SeveralMembers['choices']) {
    super('several members have this address and password')
    this.choices = choices
  }
}

/** Ten attempts for one address, 50 in all; a site may be a whole company. */
const maxFailures = { pair: 10, network: 50, sitePair: 20, site: 200, device: 10 }
/** While an address is under attack, each network gets only a few attempts, enough for a user who knows the password. */
const guessedAt = { failed: 100, maximum: 2 }
/** For attackers who know the password: three of a million codes are valid at any time. */
const maxWrongCodes = 20

export const signingColumns = sql.part`id, address, role, tenant_id as "tenantId", password, ${factorColumns}`

const membersByAddress = sql<MemberSecrets>`
  select ${signingColumns}
  from members
  where address = $1
  order by id`

const nameLength = 22
const deviceForm = /^([\w-]{22})([\w-]{43})\.(\d{1,15})$/
const wrongPassword = () =>
  new Refusal('authentication_required', {
    message: 'wrong address or password',
    suggestion: 'Try again, or ask an owner for a new sign-in link (postrider member reset ADDRESS)',
  })

const plainAddress = (address: string) => address.trim().toLowerCase()

/**
 * Device tokens: a random name and a tag that only this installation can create, given to a device at sign-in. Bound to the member, not the
 * address, because a tenant's owner can create a member with any address. Tokens of a replaced secret are not valid.
 */
export function openDevices({ ids, secrets }: { ids: Ids; secrets: Secrets }) {
  const tagOf = (name: string, memberId: number | string, address: string) =>
    secrets.mac('device', `${name} ${memberId} ${plainAddress(address)}`).toString('base64url')
  return {
    make({ id, address }: { id: number; address: string }): string {
      const name = ids.token(nameLength)
      return `${name}${tagOf(name, id, address)}.${id}`
    },
    /** undefined if the token was not issued here for a member with this address. */
    known(token: string | undefined, address: string): Device | undefined {
      const [, name = '', tag = '', id = ''] = deviceForm.exec(token ?? '') ?? []
      const isOurs = id !== '' && timingSafeEqual(Buffer.from(tagOf(name, id, address)), Buffer.from(tag))
      return isOurs ? { name, memberId: Number(id) } : undefined
    },
  }
}

/** The keys under which a failed attempt is counted. `address` empty: not for any member. */
export function counted(address: string, { network, site, device }: From): FailureLimits {
  if (device !== undefined) return [{ name: `device ${device.name}`, maximum: maxFailures.device }]
  const counts: FailureLimit[] = [{ name: `network ${network}`, maximum: maxFailures.network }]
  if (site !== undefined) counts.push({ name: `site ${site}`, maximum: maxFailures.site })
  if (address === '') return counts
  const fewer = { when: `address ${address}`, ...guessedAt }
  counts.push({ name: `pair ${network} ${address}`, maximum: maxFailures.pair, fewer })
  if (site !== undefined) counts.push({ name: `pair ${site} ${address}`, maximum: maxFailures.sitePair, fewer })
  counts.push({ name: `address ${address}`, maximum: Number.POSITIVE_INFINITY })
  return counts
}

/** The keys under which a sign-in that is right for one member is counted for others with the same address, as a guess at them. */
function countedBeside(memberId: number, address: string, { network, site }: From): FailureLimits {
  const fewer = { when: `address ${address}`, ...guessedAt }
  return [
    { name: `beside ${network} ${memberId}`, maximum: maxFailures.pair, fewer },
    ...(site === undefined ? [] : [{ name: `beside ${site} ${memberId}`, maximum: maxFailures.sitePair, fewer }]),
    { name: fewer.when, maximum: Number.POSITIVE_INFINITY },
  ]
}

interface ProofDeps {
  db: Db
  clock: Clock
  secrets: Secrets
  failures: SignInThrottle
}

/** Refuses a missing or wrong code. Recovery codes cannot be guessed, so they stay usable after many wrong app codes. */
export async function checkCode(
  { db, clock, secrets, failures }: ProofDeps,
  member: MemberSecrets,
  code: string | undefined,
  { counts, device }: { counts: FailureLimits; device: Device | undefined },
): Promise<void> {
  if (member.confirmedAt === null) return
  if (!code) throw codeNeeded()
  const isGuessable = device === undefined && isAppCode(code)
  const all = isGuessable ? [...counts, { name: `code ${member.id}`, maximum: maxWrongCodes }] : counts
  await failures.refuseIfTooMany(all)
  try {
    await useCode(db, member, code, { nowMs: clock.nowMs(), secrets })
  } catch (error) {
    if (error instanceof Refusal) await failures.note(all)
    throw error
  }
  await failures.refuseIfTooMany(all)
}

/** For `prove`: only this member, who is refused without a password that works. No password could be right, so this counts as no guess. */
export const onlyMember = (memberId: number, hasPassword: (member: MemberSecrets) => boolean) => (member: MemberSecrets) => {
  if (member.id !== memberId) return false
  if (member.password !== null && hasPassword(member)) return true
  throw new Refusal('permission_denied', {
    message: 'you sign in with the identity provider, which replaces the password and the second factor',
    suggestion: 'Change your password and your second factor at the identity provider',
  })
}

/** The member with this address and password, among those that pass `isMeant`; throws SeveralMembers if there are several. */
export async function prove(
  deps: ProofDeps,
  { address, password, code, ...from }: { address: string } & From & SignInProof,
  isMeant: (member: MemberSecrets) => boolean,
): Promise<MemberSecrets> {
  const { db, failures } = deps
  const name = plainAddress(address)
  const members = (await db.rows(membersByAddress, [name])).filter(isMeant)
  const own = members.find(({ id }) => id === from.device?.memberId)
  const asStranger = counted(name, { ...from, device: undefined })
  const counts = own ? counted(name, from) : asStranger
  await failures.refuseIfTooMany(counts)
  const others = openOthers(failures, { name, from, members, own, asStranger })
  const looked = await others.allowed(members)
  const found = await verifyPassword(password, looked, own ? 'known' : 'strangers')
  await others.note(
    looked.filter((one) => !found.includes(one)),
    found.length > 0,
  )
  if (found.length === 0) {
    await failures.note(counts)
    throw wrongPassword()
  }
  // Checked again: other attempts may have failed while this one was queued.
  await failures.refuseIfTooMany(counts)
  const right = await others.allowed(found)
  const [member] = right
  if (!member) throw wrongPassword()
  if (right.length > 1) throw await severalOf(db, right)
  const isOwn = member === own
  await checkCode(deps, member, code, { counts: isOwn ? counts : asStranger, device: isOwn ? from.device : undefined })
  return member
}

async function severalOf(db: Db, members: readonly MemberSecrets[]): Promise<SeveralMembers> {
  const names = await tenantNames(
    db,
    members.flatMap(({ tenantId }) => tenantId ?? []),
  )
  return new SeveralMembers(members.map(({ tenantId }) => ({ tenantId, name: (tenantId && names.get(tenantId)) ?? null })))
}

interface Attempt {
  name: string
  from: From
  members: readonly MemberSecrets[]
  /** The member that the device belongs to. */
  own: MemberSecrets | undefined
  asStranger: FailureLimits
}

/**
 * A guess at an address is a guess at all its members, and a tenant's owner may know the password of one created there. So it counts for
 * each of them. A member with too many failures is skipped, which the response does not reveal.
 */
function openOthers(failures: SignInThrottle, { name, from, members, own, asStranger }: Attempt) {
  const countsOf = ({ id }: { id: number }) => [...(own ? asStranger : []), ...countedBeside(id, name, from)]
  return {
    async allowed(some: readonly MemberSecrets[]): Promise<MemberSecrets[]> {
      if (members.length < 2) return [...some]
      const isAllowed = await Promise.all(some.map(async (one) => one === own || failures.allow(countsOf(one))))
      return some.filter((_, at) => isAllowed[at])
    },
    /** Takes the same time without other members. */
    async note(wrong: readonly MemberSecrets[], isRight: boolean): Promise<void> {
      if (!own && !isRight) return
      const guessedAt = wrong.filter((one) => one !== own)
      const names = (guessedAt.length > 0 ? guessedAt.map(({ id }) => countedBeside(id, name, from)) : [countedBeside(0, name, from)])
        .flat()
        .map((count) => count.name)
        .filter((one) => guessedAt.length > 0 || one.startsWith('beside'))
      await failures.count([...new Set(names)])
    },
  }
}
