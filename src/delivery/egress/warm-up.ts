/**
 * Warm-up: limits the messages that a new address may send to a provider each day, over all processes together, by the schedule in
 * warm-up.json. A process takes allowances from the day's row before it connects; an unused allowance is lost for that day, and the limit
 * is never exceeded.
 */
import { readFileSync } from 'node:fs'
import type { Clock, Log } from '#base'
import { type Db, type Queryable, sql } from '#db'
import { appendEvents } from '#events'

const dayMs = 86_400_000
/** Maximum taken at once: a process that crashes loses at most this many. */
const maxAtOnce = 50

const { messages: schedule } = JSON.parse(readFileSync(new URL('./warm-up.json', import.meta.url), 'utf8')) as { messages: number[] }

/** Days since the warm-up began, counted from 0. */
export const warmUpDay = (fromMs: number, nowMs: number): number => Math.max(0, Math.floor((nowMs - fromMs) / dayMs))

/** Messages to one provider on that day; undefined: unlimited. */
export const warmUpCeiling = (day: number): number | undefined => schedule[day]

const takeAllowance = sql<{ granted: number }>`
  insert into warm_up_days (source, provider, day, taken, granted)
  values ($1, $2, $3, least($4::integer, $5::integer), least($4, $5))
  on conflict (source, provider) do update
  set day = excluded.day,
    granted = greatest(0, least($4, $5 - case when warm_up_days.day = excluded.day then warm_up_days.taken else 0 end)),
    taken = case when warm_up_days.day = excluded.day then greatest(warm_up_days.taken, least($5, warm_up_days.taken + $4))
      else least($4, $5) end
  where warm_up_days.day <= excluded.day
  returning granted`

const listTaken = sql<{ source: string; provider: string; day: number; taken: number; warmUpFrom: Date }>`
  select source, provider, day, taken, warm_up_from as "warmUpFrom"
  from warm_up_days
  join egress_sources on egress_sources.address = warm_up_days.source
  where warm_up_from is not null
  order by source, provider`

const deleteTaken = sql`
  delete from warm_up_days
  where source = $1`

const warmingUp = sql<{ address: string; warmUpFrom: Date; notifiedDay: number }>`
  select address, warm_up_from as "warmUpFrom", warm_up_notified_day as "notifiedDay"
  from egress_sources
  where warm_up_from is not null
  order by address
  for update`

const recordNotified = sql`
  update egress_sources
  set warm_up_notified_day = $2
  where address = $1`

/** Records each scheduled change of a ceiling in the event log, once; the last entry says that the ceiling has ended. */
export function notifyWarmUps(db: Db, nowMs: number): Promise<number> {
  return db.transaction(async (tx) => {
    const stepped = (await tx.rows(warmingUp))
      .map((one) => ({ ...one, day: Math.min(schedule.length, warmUpDay(one.warmUpFrom.getTime(), nowMs)) }))
      .filter(({ day, notifiedDay }) => day > notifiedDay)
    for (const { address, day } of stepped) await tx.run(recordNotified, [address, day])
    const shown = (day: number) => ({ messagesADay: warmUpCeiling(day) ?? null })
    const causeOf = (day: number) => (day === schedule.length ? 'warm-up completed' : `warm-up day ${day + 1}`)
    await appendEvents(
      tx,
      stepped.map(({ address, notifiedDay, day }) => {
        const data = { provider: 'each', source: address, from: shown(notifiedDay), to: shown(day), cause: causeOf(day) }
        return { tenantId: '', kind: 'TrafficLimitChanged' as const, emailId: null, at: new Date(nowMs), data }
      }),
    )
    return stepped.length
  })
}

export interface WarmUpLine {
  source: string
  /** `others`: all providers that providers.json does not name. */
  provider: string
  /** Counted from 1. */
  day: number
  taken: number
  ceiling: number
}

/** The messages that each address in its warm-up has sent today, as allowances taken by processes. */
export async function listWarmUps(on: Queryable, nowMs: number): Promise<WarmUpLine[]> {
  return (await on.rows(listTaken)).flatMap(({ source, provider, day, taken, warmUpFrom }) => {
    const today = warmUpDay(warmUpFrom.getTime(), nowMs)
    const ceiling = warmUpCeiling(today)
    return ceiling === undefined ? [] : [{ source, provider, day: today + 1, taken: day === today ? taken : 0, ceiling }]
  })
}

/** Resets the count of an address. */
export const deleteWarmUp = (on: Queryable, source: string): Promise<number> => on.run(deleteTaken, [source])

/** The warm-up of one address toward one provider. */
export interface WarmUp {
  /** Ms until the next day begins, once today's ceiling is reached; 0: more may be sent. */
  readonly backoffMs: number
  /** The reason for the backoff, for people. */
  readonly reason: string
  /** Makes sure that there is an allowance for at least one message; false if today's is used up. */
  ready(wanted: number): Promise<boolean>
  /** Returns how many of `wanted` messages may be sent; `after`: how many more wait behind them. */
  take(wanted: number, after?: number): Promise<number>
}

interface WarmUpDeps {
  db: Db
  clock: Clock
  log: Log
}

export function openWarmUp(
  { db, clock, log }: WarmUpDeps,
  { source, provider, fromMs }: { source: string; provider: string; fromMs: number },
): WarmUp {
  let day = -1
  let left = 0
  let isReached = false
  let asking: Promise<void> | undefined

  const today = () => {
    const now = warmUpDay(fromMs, clock.nowMs())
    if (now !== day) {
      day = now
      left = 0
      isReached = false
    }
    return warmUpCeiling(day)
  }
  const ask = async (ceiling: number, wanted: number) => {
    const share = Math.min(maxAtOnce, ceiling, Math.max(1, wanted))
    const row = await db.first(takeAllowance, [source, provider, day, share, ceiling])
    left += row?.granted ?? 0
    isReached = left === 0
  }
  const ready = async (wanted: number): Promise<boolean> => {
    for (;;) {
      const ceiling = today()
      if (ceiling === undefined || left > 0) return true
      if (isReached) return false
      asking ??= ask(ceiling, wanted).finally(() => {
        asking = undefined
      })
      try {
        await asking
      } catch (error) {
        // Without the database no outcome could be recorded either.
        log.warn({ err: error, source }, 'failed to get a warm-up allowance')
        return false
      }
    }
  }
  return {
    get backoffMs() {
      return today() !== undefined && isReached && left === 0 ? fromMs + (day + 1) * dayMs - clock.nowMs() : 0
    },
    get reason() {
      return `the warm-up of ${source} allows ${warmUpCeiling(day) ?? 'any number of'} messages to ${provider} on day ${day + 1}`
    },
    ready,
    async take(wanted, after = 0) {
      if (!(await ready(wanted + after))) return 0
      if (today() === undefined) return wanted
      const taken = Math.min(left, wanted)
      left -= taken
      return taken
    },
  }
}
