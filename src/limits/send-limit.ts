/**
 * The hourly send limit (contract section 6.2): an accepted email takes a send-limit slot of the current hour, or waits for one in order
 * of acceptance. One row of counters serves all processes. The counters are committed without waiting for the disk. The accepting commit
 * that follows in the same log flushes them too, so no slot is given twice for an accepted email. If the server was lost between the two,
 * the counters are raised again. A process that crashes between the two loses the slot until the hour ends.
 */
import { type Db, type Queryable, sql } from '#db'
import { type AppendLimitEvents, approachingFrom, notifyLimitReached } from './limit-notifications.ts'
import { keyLimitScope, organisationLimitScope, type SendLimits, tenantLimitScope } from './limit-overrides.ts'
import {
  type Counter,
  hourOf,
  lockCounters,
  resetSecondsOf,
  runningHour,
  saveCounters,
  type Take,
  takesNow,
  usedNow,
} from './send-limit-counters.ts'

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

/** The effect of a take on one counter: slots taken, and emails that wait. */
export interface Spent {
  scope: string
  test: boolean
  count: number
  waiting: number
}

export interface Taker extends Take {
  /** Receives the slots of each demand before they can be committed. */
  tried: Spent[][]
}

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

/** Takes as many slots as are free for each demand, in order; the rest of a demand waits. `append` records the limits that were reached. */
export async function takeSlots(
  db: Db,
  demands: readonly Demand[],
  limits: SendLimits,
  nowMs: number,
  append: AppendLimitEvents,
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
    const counter = await lockCounters(tx, scopes, nowMs)
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
    await notifyLimitReached(tx, watched, nowMs, append)
    await saveCounters(tx, [...touched.keys()], nowMs, taker)
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
