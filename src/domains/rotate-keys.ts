/**
 * DKIM rotation of sending domains: prepares next keys, waits until every resolver has returned their record for a day, puts them to use, and
 * keeps the record of the previous keys until mail that they signed is past its retries. Each step is one statement or transaction, so that
 * an interrupted rotation continues at its next look.
 */
import { type Clock, type Ids, type Log, Refusal, type Secrets } from '#base'
import type { Db, Queryable } from '#db'
import { rsaBitsOf } from '#dkim'
import type { Resolver } from '#net'
import { aliasRecordsOf, keyRecordsOf, platformKeyRecords, rsaAliases } from './dkim-names.ts'
import type { DnsRecord } from './dns-records.ts'
import {
  claimDueRotations,
  type DomainKey,
  dropEndedKeys,
  findRotated,
  insertNextKeys,
  listAllOtherKeys,
  listOtherKeys,
  listRotated,
  makeKeys,
  type OtherKey,
  type RotatedDomain,
  saveKeySight,
  saveNextLook,
  switchKeys,
} from './rotation-keys.ts'
import {
  nextLookMs,
  nextSelector,
  preparedAtMs,
  type Schedule,
  type Sight,
  settleMs,
  stateAfterCheck,
  usableKeys,
} from './rotation-step.ts'
import { checkAlias, checkKeyRecord, type RecordProblem } from './verify-records.ts'

export interface RotationDeps {
  db: Db
  clock: Clock
  ids: Ids
  secrets: Secrets
  log: Log
  /** Every one of them must return a record before its key signs. */
  resolvers: readonly Pick<Resolver, 'txt' | 'cname' | 'mx'>[]
  hostname: string
  schedule: Schedule
  /** Postrider writes the targets of CNAME records, so domains may have them. */
  writesDns: boolean
  /** How long mail that a key signed may still be verified. */
  keepMs: number
  makeKeys?: typeof makeKeys
}

/** A look that was lost with its process is repeated after this time. */
const claimedForMs = 10 * 60_000
const maxPerRound = 40
const atOnce = 10

/** Looks at the domains whose rotation is due; returns their number. */
export async function rotateDueDomains(deps: RotationDeps, stopping?: AbortSignal): Promise<number> {
  const nowMs = deps.clock.nowMs()
  const due = await claimDueRotations(deps.db, { nowMs, untilMs: nowMs + claimedForMs }, maxPerRound)
  const waiting = [...due]
  const worker = async () => {
    for (let domain = waiting.pop(); domain && !stopping?.aborted; domain = waiting.pop()) {
      const { name } = domain
      await step(domain, deps).catch((error) => deps.log.warn({ err: error, domain: name }, 'DKIM rotation failed; retrying'))
    }
  }
  await Promise.all(Array.from({ length: atOnce }, worker))
  return due.length
}

/** Whether a round may have left due domains. */
export const isFullRound = (count: number) => count >= maxPerRound

async function step(domain: RotatedDomain, deps: RotationDeps): Promise<void> {
  const { db, clock } = deps
  await dropEndedKeys(db, domain, clock.nowMs())
  const delegated = await isDelegated(domain, deps)
  const known = { ...domain, delegated: delegated ?? domain.delegated }
  let keys = await listOtherKeys(db, domain)
  let next = keys.find(({ state }) => state === 'next')
  const dueMs = preparedAtMs(stateOf(known), deps.schedule)
  if (!next && dueMs !== undefined && dueMs <= clock.nowMs()) {
    await prepare(known, keys, 'schedule', deps)
    keys = await listOtherKeys(db, domain)
    next = keys.find(({ state }) => state === 'next')
  }
  const seen = next ? await check(known, next, deps) : undefined
  const nowMs = clock.nowMs()
  const keptUntilMs = keys.flatMap(({ keepUntil }) => (keepUntil ? [keepUntil.getTime()] : []))
  await saveNextLook(
    db,
    domain,
    nextLookMs({ next: seen, keptUntilMs, dueMs: dueMs === undefined ? undefined : Math.max(dueMs, nowMs) }, nowMs),
    delegated,
  )
}

const stateOf = ({ keySince, ...domain }: RotatedDomain) => ({ ...domain, keySinceMs: keySince.getTime() })

/** Undefined if a lookup failed, or Postrider writes no DNS and so does not offer CNAMEs. */
async function isDelegated(domain: RotatedDomain, deps: RotationDeps): Promise<boolean | undefined> {
  if (!deps.writesDns) return false
  const wanted = aliasRecordsOf(domain, deps.hostname).slice(0, rsaAliases)
  if (wanted.length === 0) return false
  const sight = await seenByAll(deps, (resolver) => wanted.map((record) => checkAlias(record, { resolver, clock: deps.clock })))
  return sight.kind === 'unknown' ? undefined : sight.kind === 'yes'
}

/** Returns false if the selector of the next keys is still occupied, or there are next keys already. */
async function prepare(domain: RotatedDomain, keys: readonly OtherKey[], reason: OtherKey['reason'], deps: PrepareDeps): Promise<boolean> {
  const taken = keys.map(({ selector }) => selector)
  const selector = nextSelector(stateOf(domain), taken, () => deps.ids.label(6))
  if (selector === undefined) return false
  const made = await (deps.makeKeys ?? makeKeys)()
  return insertNextKeys(deps.db, domain, { selector, keys: made, reason }, { ...deps, nowMs: deps.clock.nowMs() })
}

type PrepareDeps = Pick<RotationDeps, 'db' | 'clock' | 'ids' | 'secrets' | 'makeKeys'>

/** Checks the records of the next keys, and puts the keys to use when they may sign. Returns their state, undefined once they sign. */
async function check(domain: RotatedDomain, next: OtherKey, deps: RotationDeps) {
  const { db, clock, log } = deps
  const records = keyRecordsOf(domain.name, next)
  const look = (record: DnsRecord, algorithm: 'rsa' | 'ed25519', publicKey: string) =>
    seenByAll(deps, (resolver) => [checkKeyRecord(record, { algorithm, publicKey }, { resolver, clock })])
  const [rsa, ed25519] = await Promise.all([look(records.rsa, 'rsa', next.rsaPublic), look(records.ed25519, 'ed25519', next.ed25519Public)])
  const nowMs = clock.nowMs()
  const seen = { rsa: rsa.kind, ed25519: ed25519.kind }
  const before = { seenSinceMs: msOf(next.seenSince), ed25519SeenSinceMs: msOf(next.ed25519SeenSince) }
  const after = stateAfterCheck(before, seen, nowMs)
  await saveKeySight(db, domain, { selector: next.selector, nowMs, ...after, problem: rsa.problem })
  const usable = usableKeys(after, seen, nowMs)
  if (!usable.rsa) return after
  const { selector, reason } = next
  const switched = await db.transaction((tx) =>
    switchKeys(tx, domain, { selector, reason, withEd25519: usable.ed25519 }, { ...deps, nowMs: clock.nowMs() }),
  )
  if (switched) log.info({ domain: domain.name, tenant: domain.tenantId, selector, before: domain.selector }, 'DKIM keys rotated')
  return undefined
}

const msOf = (date: Date | null) => date?.getTime() ?? null

/** `yes`: every resolver returned every record; `no`: one returned something else. */
async function seenByAll(
  { resolvers }: Pick<RotationDeps, 'resolvers'>,
  ask: (resolver: RotationDeps['resolvers'][number]) => Promise<RecordProblem>[],
): Promise<{ kind: Sight; problem: string | null }> {
  const results = (await Promise.all(resolvers.map((resolver) => Promise.all(ask(resolver))))).flat()
  const wrong = results.find(({ status }) => status === 'Missing' || status === 'Invalid')
  if (wrong) return { kind: 'no', problem: wrong.problem }
  const failed = results.find(({ status }) => status !== 'OK')
  if (failed || results.length === 0) return { kind: 'unknown', problem: failed?.problem ?? null }
  return { kind: 'yes', problem: null }
}

/** The keys of one domain for display. */
export interface ShownKeys extends RotatedDomain {
  /** Of the signing RSA key. */
  bits: number
  others: OtherKey[]
  /** The time at which the next keys sign, if their record stays; null while it is not seen. */
  usedFrom: Date | null
  /** The TXT records of the next keys at the domain's name; empty without next keys. */
  nextRecords: DnsRecord[]
}

const shownKeys = (domain: RotatedDomain, others: OtherKey[]): ShownKeys => {
  const next = others.find(({ state }) => state === 'next')
  const nextRecords = next ? Object.values(keyRecordsOf(domain.name, next)) : []
  const usedFrom = next?.seenSince ? new Date(next.seenSince.getTime() + settleMs) : null
  return { ...domain, bits: rsaBitsOf(domain.rsaPublic), others, usedFrom, nextRecords }
}

/** Undefined if the domain does not exist. */
export async function findDomainKeys(on: Queryable, domain: DomainKey): Promise<ShownKeys | undefined> {
  const found = await findRotated(on, domain)
  return found && shownKeys(found, await listOtherKeys(on, domain))
}

/** The keys of every sending domain, by name; of one tenant, or of the organisation (null). */
export async function listDomainKeys(on: Queryable, scope: string | null): Promise<ShownKeys[]> {
  const domains = await listRotated(on, scope)
  const others = Map.groupBy(await listAllOtherKeys(on, scope), ({ domainId }) => domainId)
  return domains.map((domain) => shownKeys(domain, others.get(domain.id) ?? []))
}

/**
 * Prepares the next keys of a domain on request, and returns them with their records. Repeated, it returns the same keys. Refuses `not_found`,
 * and `validation_error` while both selectors of a domain with CNAMEs are in use.
 */
export async function requestRotation(domain: DomainKey, deps: PrepareDeps): Promise<ShownKeys> {
  const { db, clock } = deps
  const found = await findDomainKeys(db, domain)
  if (!found || found.testOnly) throw new Refusal('not_found', { message: 'no such domain' })
  if (!found.others.some(({ state }) => state === 'next') && !(await prepare(found, found.others, 'command', deps))) {
    const again = await findDomainKeys(db, domain)
    if (!again?.others.some(({ state }) => state === 'next')) throw stillKept(found)
  }
  await saveNextLook(db, domain, clock.nowMs())
  return (await findDomainKeys(db, domain)) ?? found
}

function stillKept({ name, others }: ShownKeys): Refusal {
  const until = others.find(({ keepUntil }) => keepUntil !== null)?.keepUntil?.toISOString()
  return new Refusal('validation_error', {
    field: 'domain',
    message: `${name}: the keys before the present ones are still needed to verify mail that they signed`,
    suggestion: `Run postrider dkim rotate ${name} again after ${until}`,
  })
}

/** The TXT records below the platform's name, which CNAME records of sending domains point to: of all their keys. */
export async function listDkimTargets(on: Queryable, hostname: string): Promise<{ name: string; value: string }[]> {
  const domains = await listRotated(on, null)
  const others = Map.groupBy(await listAllOtherKeys(on, null), ({ domainId }) => domainId)
  // A key that the operator brought along has its record elsewhere.
  return domains.flatMap((domain) =>
    [...(domain.ownKey ? [] : [domain]), ...(others.get(domain.id) ?? [])].flatMap((key) => platformKeyRecords(domain.id, key, hostname)),
  )
}
