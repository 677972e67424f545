/**
 * The hourly send limit (contract section 6.2): an accepted email takes a send-limit slot of the current hour, or waits for one in order
 * of acceptance. One row of counters serves all processes. The counters are committed without waiting for the disk. The accepting commit
 * that follows in the same log flushes them too, so no slot is given twice for an accepted email. If the server was lost between the two,
 * the counters are raised again. A process that crashes between the two loses the slot until the hour ends.
 */
import { type Db, type Queryable, sql, type Tx } from '#db'
import { approachingFrom, notifyLimitReached, type Tell, type Watched } from './limit-notifications.ts'
import { keyIdOf, keyLimitScope, organisationLimitScope, type SendLimits, tenantIdOf, tenantLimitScope } from './limit-overrides.ts'

const hourMs = 3_600_000

/** The figures in the send-limit headers: always the organisation's. */
export interface SendLimitUsage {
  limit: number | null
  used: number
  /** Unix seconds of the top of the next hour. */
  resetSeconds: number
}

export interface Demand {
  tenantId: string
  /** The key; absent or null: mail of Postrider itself. */
  credentialId?: number | null
  test: boolean
  count: number
}

/** A limit that a demand is within. */
interface Ceiling {
  scope: string
  limit: number | null
  /** Of the events about it, null for the organisation's; undefined without one. */
  tenantId: string | null | undefined
}

interface Counter extends Watched {
  scope: string
}

type Standing = Pick<Counter, 'scope' | 'test' | 'used' | 'waiting'>

/** The effect of a take on one counter: slots taken, and emails that wait. */
export interface Spent {
  scope: string
  test: boolean
  count: number
  waiting: number
}

/** The writer and the number of its take; `tried` receives the slots of each demand before they can be committed. */
export interface Taker {
  writer: string
  nth: number
  tried: Spent[][]
}

/**
 * The clocks of several machines differ: near the top of an hour a counter may already be in the next one. It then counts for both hours;
 * restarting it each time would give out the hour's slots repeatedly. A counter further ahead than that came from a wrong clock.
 */
const isRunning = sql.part`hour >= $1::timestamptz and hour <= $1::timestamptz + interval '1 hour'`
const runningHour = sql.part`case when ${isRunning} then hour else $1::timestamptz end`
const usedNow = sql.part`case when ${isRunning} then used else 0 end`
/** Takes of another hour are dropped, and with them writers that have gone. */
const takesNow = sql.part`case when ${isRunning} then takes else '{}' end`

const lockCounters = sql<Counter>`
  with relaxed as (select set_config('synchronous_commit', 'off', true))
  select scope, test, ${usedNow} as used, waiting,
         coalesce(approaching_notified_at >= $1, false) as "approachingNotified", coalesce(exceeded_notified_at >= $1, false) as "exceededNotified"
  from send_limit_usage, relaxed
  where scope = any($2)
  order by scope, test
  for update of send_limit_usage`

const addCounters = sql`
  insert into send_limit_usage (scope, test, hour, used, waiting)
  select scope, test, $1, 0, 0
  from unnest($2::text[]) as scope, (values (false), (true)) as mode (test)
  on conflict (scope, test) do nothing`

const saveCounters = sql`
  update send_limit_usage
  set hour = ${runningHour}, used = counted.used, waiting = counted.waiting, takes = ${takesNow} || $8::jsonb,
      approaching_notified_at = case when counted.approaching then greatest(approaching_notified_at, $1) else approaching_notified_at end,
      exceeded_notified_at = case when counted.exceeded then greatest(exceeded_notified_at, $1) else exceeded_notified_at end
  from unnest($2::text[], $3::boolean[], $4::bigint[], $5::bigint[], $6::boolean[], $7::boolean[])
    as counted (scope, test, used, waiting, approaching, exceeded)
  where send_limit_usage.scope = counted.scope and send_limit_usage.test = counted.test`

/**
 * Takes $4 slots of the organisation at once, or no slot. It takes no slot when other emails wait, when the limit would be passed, before
 * the first use, and when an event is due: $6 or more slots used in an hour without that event.
 */
const takeAtOnce = sql<{ used: number }>`
  with relaxed as (select set_config('synchronous_commit', 'off', true))
  update send_limit_usage
  set hour = ${runningHour}, used = ${usedNow} + $4, takes = ${takesNow} || jsonb_build_object($7::text, $8::bigint)
  from relaxed
  where scope = $2 and test = $3 and coalesce((takes ->> $7)::bigint, 0) < $8
    and ($5::bigint is null
      or waiting = 0 and ${usedNow} + $4 <= $5
        and (approaching_notified_at >= $1 or ${usedNow} + $4 < $6))
  returning used`

/**
 * Repeats a take of hour $1 by writer $2 with number $3, unless the counters have it, or have begun a later hour. The server may have
 * been replaced by one that never got the take.
 */
export const takeAgain = sql`
  update send_limit_usage
  set hour = ${runningHour}, used = ${usedNow} + lost.count, waiting = send_limit_usage.waiting + lost.waiting,
      takes = ${takesNow} || jsonb_build_object($2::text, $3::bigint)
  from unnest($4::text[], $5::boolean[], $6::bigint[], $7::bigint[]) as lost (scope, test, count, waiting)
  where send_limit_usage.scope = lost.scope and send_limit_usage.test = lost.test
    and hour <= $1 and coalesce((${takesNow} ->> $2)::bigint, 0) < $3`

const readCounter = sql<{ used: number }>`
  select ${usedNow} as used
  from send_limit_usage
  where scope = $2 and test = $3`

const readWaiting = sql<Standing>`
  select scope, test, ${usedNow} as used, waiting
  from send_limit_usage
  where waiting > 0 or scope = $2`

export const hourOf = (nowMs: number) => new Date(Math.floor(nowMs / hourMs) * hourMs)
const resetSecondsOf = (nowMs: number) => (Math.floor(nowMs / hourMs) + 1) * (hourMs / 1000)

/** The counters of the organisation and of each tenant with a ceiling, locked until the transaction ends. */
async function lock(tx: Tx, scopes: string[], nowMs: number): Promise<(scope: string, test: boolean) => Counter> {
  let rows = await tx.rows(lockCounters, [hourOf(nowMs), scopes])
  if (rows.length < scopes.length * 2) {
    await tx.run(addCounters, [hourOf(nowMs), scopes])
    rows = await tx.rows(lockCounters, [hourOf(nowMs), scopes])
  }
  return (scope, test) => rows.find((row) => row.scope === scope && row.test === test) as Counter
}

async function save(tx: Tx, counters: readonly Counter[], nowMs: number, taker?: Taker): Promise<void> {
  await tx.run(saveCounters, [
    hourOf(nowMs),
    counters.map((one) => one.scope),
    counters.map((one) => one.test),
    counters.map((one) => one.used),
    counters.map((one) => one.waiting),
    counters.map((one) => one.approachingNotified),
    counters.map((one) => one.exceededNotified),
    JSON.stringify(taker ? { [taker.writer]: taker.nth } : {}),
  ])
}

/** Free slots; zero while other emails wait, so that no email overtakes them. */
const roomFor = (counter: Counter, limit: number | null) =>
  limit === null ? Number.MAX_SAFE_INTEGER : counter.waiting > 0 ? 0 : Math.max(0, limit - counter.used)

/** The limits of a demand within the organisation's, the narrowest first. */
function ceilingsOf({ tenantId, credentialId }: Demand, { ceilings, keys }: SendLimits): Ceiling[] {
  const ofKey = credentialId == null ? undefined : keys?.get(credentialId)
  const ofTenant = ceilings.get(tenantId)
  return [
    ...(ofKey === undefined ? [] : [{ scope: keyLimitScope(credentialId as number), limit: ofKey, tenantId: undefined }]),
    ...(ofTenant === undefined ? [] : [{ scope: tenantLimitScope(tenantId), limit: ofTenant, tenantId }]),
  ]
}

const isWithinOrganisationOnly = ({ tenantId, credentialId }: Demand, { ceilings, keys }: SendLimits) =>
  !ceilings.has(tenantId) && (credentialId == null || !keys?.has(credentialId))

/** Takes as many slots as are free for each demand, in order; the rest of a demand waits. `tell` receives the limits that were reached. */
export async function takeSlots(
  db: Db,
  demands: readonly Demand[],
  limits: SendLimits,
  nowMs: number,
  tell: Tell,
  taker: Taker,
): Promise<{ granted: number[]; sendLimitUsage: (test: boolean) => SendLimitUsage }> {
  const [first] = demands
  if (first && demands.every((one) => one.test === first.test && isWithinOrganisationOnly(one, limits))) {
    const wanted = demands.reduce((sum, one) => sum + one.count, 0)
    const limit = limits.organisation
    const quietBelow = limit === null ? null : approachingFrom(limit)
    taker.tried.push(...demands.map(({ test, count }) => [{ scope: organisationLimitScope, test, count, waiting: 0 }]))
    const { writer, nth } = taker
    const taken = await db.first(takeAtOnce, [hourOf(nowMs), organisationLimitScope, first.test, wanted, limit, quietBelow, writer, nth])
    if (taken) {
      const sendLimitUsage = { limit, used: taken.used, resetSeconds: resetSecondsOf(nowMs) }
      return { granted: demands.map((one) => one.count), sendLimitUsage: () => sendLimitUsage }
    }
  }
  const organisation: Ceiling = { scope: organisationLimitScope, limit: limits.organisation, tenantId: null }
  const chains = demands.map((demand) => [...ceilingsOf(demand, limits), organisation])
  const scopes = [...new Set([organisation, ...chains.flat()].map((one) => one.scope))]
  return db.transaction(async (tx) => {
    taker.tried.length = 0
    const counter = await lock(tx, scopes, nowMs)
    const touched = new Map<Counter, Ceiling>()
    const granted = demands.map(({ test, count }, index) => {
      // Emails beyond a ceiling wait for it only; those within it go on to the wider one.
      let slots = count
      const passed = (chains[index] as Ceiling[]).map((ceiling) => {
        const one = counter(ceiling.scope, test)
        touched.set(one, ceiling)
        const waiting = slots - Math.min(slots, roomFor(one, ceiling.limit))
        slots -= waiting
        return { one, waiting }
      })
      for (const { one, waiting } of passed) {
        one.used += slots
        one.waiting += waiting
      }
      taker.tried.push(passed.map(({ one, waiting }) => ({ scope: one.scope, test, count: slots, waiting })))
      return slots
    })
    const watched = [...touched].flatMap(([one, { limit, tenantId }]) =>
      tenantId === undefined ? [] : [{ counter: one, limit, tenantId }],
    )
    await notifyLimitReached(tx, watched, nowMs, tell)
    await save(tx, [...touched.keys()], nowMs, taker)
    const standings = [false, true].map((test) => ({
      limit: limits.organisation,
      used: counter(organisationLimitScope, test).used,
      resetSeconds: resetSecondsOf(nowMs),
    })) as [SendLimitUsage, SendLimitUsage]
    return { granted, sendLimitUsage: (test) => standings[test ? 1 : 0] }
  })
}

/** The organisation's figures, without taking a slot. */
export async function readSendLimitUsage(on: Queryable, test: boolean, limits: SendLimits, nowMs: number): Promise<SendLimitUsage> {
  const row = await on.first(readCounter, [hourOf(nowMs), organisationLimitScope, test])
  return { limit: limits.organisation, used: row?.used ?? 0, resetSeconds: resetSecondsOf(nowMs) }
}

/** Counts emails that begin to wait for slots without having asked for them: they are released like those that found no slot. */
export async function addWaiting(tx: Tx, waiting: { live: number; test: number }, limits: SendLimits, nowMs: number): Promise<void> {
  const counter = await lock(tx, [organisationLimitScope, ...[...limits.ceilings.keys()].map(tenantLimitScope)], nowMs)
  const counters = [
    { more: waiting.live, of: counter(organisationLimitScope, false) },
    { more: waiting.test, of: counter(organisationLimitScope, true) },
  ]
  for (const { more, of } of counters) of.waiting += more
  await save(
    tx,
    counters.map((one) => one.of),
    nowMs,
  )
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
 * The capacity for waiting emails, separately for live and test mail; empty if no email can be released now. `listWaitingKeys`: the keys with
 * a limit of their own whose emails wait.
 */
export async function roomForWaiting(
  tx: Tx,
  limits: SendLimits,
  nowMs: number,
  listWaitingKeys: (tx: Tx) => Promise<readonly number[]>,
): Promise<FreeSlots[]> {
  // Without a lock: every flush waits for the counters, and a backlog at its limit would keep them for as long as it takes to read it.
  const standings = await tx.rows(readWaiting, [hourOf(nowMs), organisationLimitScope])
  if (movableKinds(standings, limits).length === 0) return []
  const waiting = standings.filter((one) => one.waiting > 0).map((one) => one.scope)
  const settledKeys = waiting.filter((scope) => scope.startsWith('key:')).map(keyIdOf)
  const keys = [...new Set([...settledKeys, ...(limits.keys?.size ? await listWaitingKeys(tx) : [])])]
  const settledTenants = waiting.filter((scope) => scope.startsWith('tenant:')).map(tenantIdOf)
  const tenantIds = [...new Set([...limits.ceilings.keys(), ...settledTenants])]
  const scopes = [organisationLimitScope, ...tenantIds.map(tenantLimitScope), ...keys.map(keyLimitScope)]
  const counter = await lock(tx, scopes, nowMs)
  // Another process may have released meanwhile.
  const locked = scopes.flatMap((scope) => [counter(scope, false), counter(scope, true)])
  const leftOf = (scope: string, test: boolean) => left(counter(scope, test), limitOf(scope, limits))
  return movableKinds(locked, limits).map((test) => ({
    test,
    organisation: leftOf(organisationLimitScope, test),
    tenants: new Map(tenantIds.map((id) => [id, leftOf(tenantLimitScope(id), test)])),
    keys: new Map(keys.map((id) => [id, leftOf(keyLimitScope(id), test)])),
  }))
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

const left = ({ used }: Standing, limit: number | null) => (limit === null ? Number.MAX_SAFE_INTEGER : Math.max(0, limit - used))

interface Released {
  taken: Map<string, number>
  /** `tenants`: each tenant in `FreeSlots.tenants`. */
  stillWaiting: { organisation: number; tenants: Map<string, number> }
  /** Of each key in `FreeSlots.keys`. */
  keys: Map<number, { taken: number; stillWaiting: number }>
}

/** Stores the effect of `roomForWaiting`: slots taken now, and emails still waiting, for each subject. */
export async function settleWaiting(
  tx: Tx,
  test: boolean,
  outcome: Released,
  limits: SendLimits,
  nowMs: number,
  tell: Tell,
): Promise<void> {
  const tenantIds = [...outcome.stillWaiting.tenants.keys()]
  const scopes = [organisationLimitScope, ...tenantIds.map(tenantLimitScope), ...[...outcome.keys.keys()].map(keyLimitScope)]
  const counter = await lock(tx, scopes, nowMs)
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
  await notifyLimitReached(tx, counters, nowMs, tell)
  const ofKeys = [...outcome.keys].map(([id, { taken, stillWaiting }]) => {
    const key = counter(keyLimitScope(id), test)
    key.used += taken
    key.waiting = stillWaiting
    return key
  })
  await save(tx, [...counters.map((one) => one.counter), ...ofKeys], nowMs)
}
