/** Emails that wait for slots of a send limit: the number that may go now, and the counters after some have gone. */
import { type Queryable, sql, type Tx } from '#db'
import { type AppendLimitEvents, notifyLimitReached } from './limit-notifications.ts'
import { keyIdOf, keyLimitScope, organisationLimitScope, type SendLimits, tenantIdOf, tenantLimitScope } from './limit-overrides.ts'
import { hourOf, lockCounters, type Standing, saveCounters, usedNow } from './send-limit-counters.ts'

const readWaiting = sql<Standing>`
  select scope, test, ${usedNow} as used, waiting
  from send_limit_usage
  where waiting > 0 or scope = $2`

const readStandings = sql<Standing>`
  select scope, test, ${usedNow} as used, waiting
  from send_limit_usage
  where scope = any($2)`

/** Counts emails that begin to wait for slots without having asked for them: they are released like those that found no slot. */
export async function addWaiting(tx: Tx, waiting: { live: number; test: number }, limits: SendLimits, nowMs: number): Promise<void> {
  const counter = await lockCounters(tx, [organisationLimitScope, ...[...limits.ceilings.keys()].map(tenantLimitScope)], nowMs)
  const counters = [
    { more: waiting.live, of: counter(organisationLimitScope, false) },
    { more: waiting.test, of: counter(organisationLimitScope, true) },
  ]
  for (const { more, of } of counters) of.waiting += more
  await saveCounters(
    tx,
    counters.map((one) => one.of),
    nowMs,
  )
}

interface FullLimits {
  test: boolean
  /** Tenants at their ceiling. */
  tenants: string[]
  /** Keys at their limit. */
  keys: number[]
}

/** The full limits within the organisation's, for each kind of mail, live and test, that the organisation has room for. Takes no lock. */
export async function listFullLimits(on: Queryable, limits: SendLimits, nowMs: number): Promise<FullLimits[]> {
  const tenants = [...limits.ceilings.keys()]
  const keys = [...(limits.keys?.keys() ?? [])]
  const scopes = [organisationLimitScope, ...tenants.map(tenantLimitScope), ...keys.map(keyLimitScope)]
  const standings = await on.rows(readStandings, [hourOf(nowMs), scopes])
  return [false, true].flatMap((test) => {
    const isFull = (one: Standing) => one.test === test && left(one, limitOf(one.scope, limits)) === 0
    const full = new Set(standings.filter(isFull).map((one) => one.scope))
    if (full.has(organisationLimitScope)) return []
    return [
      { test, tenants: tenants.filter((id) => full.has(tenantLimitScope(id))), keys: keys.filter((id) => full.has(keyLimitScope(id))) },
    ]
  })
}

export interface FreeSlots {
  test: boolean
  /** Free slots of the organisation in this hour. */
  organisation: number
  /** Free slots of tenants with a ceiling, and of those whose emails wait for one that was removed. */
  tenants: Map<string, number>
  /** Free slots of the keys whose emails wait, or have waited. */
  keys: Map<number, number>
}

/**
 * The capacity for waiting emails, separately for live and test mail; empty if no email can be released now. Takes no lock. `listWaitingKeys`:
 * the keys whose emails wait; called only if an email can be released.
 */
export async function roomForWaiting(
  on: Queryable,
  limits: SendLimits,
  nowMs: number,
  listWaitingKeys: () => Promise<readonly number[]>,
): Promise<FreeSlots[]> {
  const known = await on.rows(readWaiting, [hourOf(nowMs), organisationLimitScope])
  if (movableKinds(known, limits).length === 0) return []
  const waitingKeys = await listWaitingKeys()
  const waiting = known.filter((one) => one.waiting > 0).map((one) => one.scope)
  const settledKeys = waiting.filter((scope) => scope.startsWith('key:')).map(keyIdOf)
  const keys = [...new Set([...settledKeys, ...(limits.keys?.size ? waitingKeys : [])])]
  const settledTenants = waiting.filter((scope) => scope.startsWith('tenant:')).map(tenantIdOf)
  const tenants = [...new Set([...limits.ceilings.keys(), ...settledTenants])]
  const standings = await on.rows(readStandings, [hourOf(nowMs), scopesOf(tenants, keys)])
  return freeSlots(standings, { tenants, keys }, limits)
}

/**
 * The same for one kind of mail, with the counters of these tenants and keys locked: every flush waits for them from now on. Undefined if no
 * email can be released any more.
 */
export async function lockRoom(tx: Tx, expected: FreeSlots, limits: SendLimits, nowMs: number): Promise<FreeSlots | undefined> {
  const subjects = { tenants: [...expected.tenants.keys()], keys: [...expected.keys.keys()] }
  const scopes = scopesOf(subjects.tenants, subjects.keys)
  const counter = await lockCounters(tx, scopes, nowMs)
  const [room] = freeSlots(
    scopes.map((scope) => counter(scope, expected.test)),
    subjects,
    limits,
  )
  return room
}

const scopesOf = (tenants: readonly string[], keys: readonly number[]) => [
  organisationLimitScope,
  ...tenants.map(tenantLimitScope),
  ...keys.map(keyLimitScope),
]

function freeSlots(
  standings: readonly Standing[],
  { tenants, keys }: { tenants: readonly string[]; keys: readonly number[] },
  limits: SendLimits,
): FreeSlots[] {
  return movableKinds(standings, limits).map((test) => {
    const known = new Map(standings.filter((one) => one.test === test).map((one) => [one.scope, one]))
    const leftOf = (scope: string) => left(known.get(scope) ?? { used: 0 }, limitOf(scope, limits))
    return {
      test,
      organisation: leftOf(organisationLimitScope),
      tenants: new Map(tenants.map((id) => [id, leftOf(tenantLimitScope(id))])),
      keys: new Map(keys.map((id) => [id, leftOf(keyLimitScope(id))])),
    }
  })
}

/**
 * The kinds of mail, live (false) and test (true), that can move: the organisation has room, and so has a limit that emails wait for. Those
 * emails then go, or wait for another of their limits.
 */
function movableKinds(standings: readonly Standing[], limits: SendLimits): boolean[] {
  const hasRoom = (one: Standing) => left(one, limitOf(one.scope, limits)) > 0
  return [false, true].filter((test) => {
    const ofKind = standings.filter((one) => one.test === test)
    return (
      ofKind.some((one) => one.waiting > 0 && hasRoom(one)) && ofKind.every((one) => one.scope !== organisationLimitScope || hasRoom(one))
    )
  })
}

/** null: unlimited, or the limit was removed. */
function limitOf(scope: string, { organisation, ceilings, keys }: SendLimits): number | null {
  if (scope === organisationLimitScope) return organisation
  return (scope.startsWith('key:') ? keys?.get(keyIdOf(scope)) : ceilings.get(tenantIdOf(scope))) ?? null
}

const left = ({ used }: Pick<Standing, 'used'>, limit: number | null) =>
  limit === null ? Number.MAX_SAFE_INTEGER : Math.max(0, limit - used)

interface Released {
  taken: Map<string, number>
  /** `tenants`: each tenant in `FreeSlots.tenants`. */
  stillWaiting: { organisation: number; tenants: Map<string, number> }
  /** Of each key in `FreeSlots.keys`. */
  keys: Map<number, { taken: number; stillWaiting: number }>
}

/** Stores the effect of a release within `lockRoom`: slots taken now, and emails still waiting, for each subject. */
export async function settleWaiting(
  tx: Tx,
  test: boolean,
  outcome: Released,
  limits: SendLimits,
  nowMs: number,
  append: AppendLimitEvents,
): Promise<void> {
  const tenantIds = [...outcome.stillWaiting.tenants.keys()]
  const counter = await lockCounters(tx, scopesOf(tenantIds, [...outcome.keys.keys()]), nowMs)
  const organisation = counter(organisationLimitScope, test)
  for (const taken of outcome.taken.values()) organisation.used += taken
  organisation.waiting = outcome.stillWaiting.organisation
  const tenants = tenantIds.map((id) => {
    const tenant = counter(tenantLimitScope(id), test)
    tenant.used += outcome.taken.get(id) ?? 0
    tenant.waiting = outcome.stillWaiting.tenants.get(id) ?? 0
    return { counter: tenant, tenantId: id, limit: limits.ceilings.get(id) ?? null }
  })
  const counters = [{ counter: organisation, tenantId: null, limit: limits.organisation }, ...tenants]
  await notifyLimitReached(tx, counters, nowMs, append)
  const ofKeys = [...outcome.keys].map(([id, { taken, stillWaiting }]) => {
    const key = counter(keyLimitScope(id), test)
    key.used += taken
    key.waiting = stillWaiting
    return key
  })
  await saveCounters(tx, [...counters.map((one) => one.counter), ...ofKeys], nowMs)
}
