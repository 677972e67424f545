/**
 * The counters of send limits: slots used in the current hour and emails that wait, of the organisation, and of each tenant and key with a
 * limit of its own; live and test mail apart.
 */
import { sql, type Tx } from '#db'
import type { Watched } from './limit-notifications.ts'

const hourMs = 3_600_000
export const hourOf = (nowMs: number) => new Date(Math.floor(nowMs / hourMs) * hourMs)
/** Unix seconds of the top of the next hour. */
export const resetSecondsOf = (nowMs: number) => (Math.floor(nowMs / hourMs) + 1) * (hourMs / 1000)

export interface Counter extends Watched {
  scope: string
}

export type Standing = Pick<Counter, 'scope' | 'test' | 'used' | 'waiting'>

/**
 * The clocks of several machines differ: near the top of an hour a counter may already be in the next one. It then counts for both hours;
 * restarting it each time would give out the hour's slots repeatedly. A counter further ahead than that came from a wrong clock.
 */
const isRunning = sql.part`hour >= $1::timestamptz and hour <= $1::timestamptz + interval '1 hour'`
export const runningHour = sql.part`case when ${isRunning} then hour else $1::timestamptz end`
export const usedNow = sql.part`case when ${isRunning} then used else 0 end`
/** Takes of another hour are dropped, and with them writers that have gone. */
export const takesNow = sql.part`case when ${isRunning} then takes else '{}' end`

const lockRows = sql<Counter>`
  with relaxed as (select set_config('synchronous_commit', 'off', true))
  select scope, test, ${usedNow} as used, waiting,
         coalesce(approaching_notified_at >= $1, false) as "approachingNotified", coalesce(exceeded_notified_at >= $1, false) as "exceededNotified"
  from send_limit_usage, relaxed
  where scope = any($2)
  order by scope, test
  for update of send_limit_usage`

const addRows = sql`
  insert into send_limit_usage (scope, test, hour, used, waiting)
  select scope, test, $1, 0, 0
  from unnest($2::text[]) as scope, (values (false), (true)) as mode (test)
  on conflict (scope, test) do nothing`

const saveRows = sql`
  update send_limit_usage
  set hour = ${runningHour}, used = counted.used, waiting = counted.waiting, takes = ${takesNow} || $8::jsonb,
      approaching_notified_at = case when counted.approaching then greatest(approaching_notified_at, $1) else approaching_notified_at end,
      exceeded_notified_at = case when counted.exceeded then greatest(exceeded_notified_at, $1) else exceeded_notified_at end
  from unnest($2::text[], $3::boolean[], $4::bigint[], $5::bigint[], $6::boolean[], $7::boolean[])
    as counted (scope, test, used, waiting, approaching, exceeded)
  where send_limit_usage.scope = counted.scope and send_limit_usage.test = counted.test`

/** The writer of a take, and its number. */
export interface Take {
  writer: string
  nth: number
}

/** The counters of these scopes, for live and test mail, locked until the transaction ends. Missing ones are added. */
export async function lockCounters(tx: Tx, scopes: string[], nowMs: number): Promise<(scope: string, test: boolean) => Counter> {
  let rows = await tx.rows(lockRows, [hourOf(nowMs), scopes])
  if (rows.length < scopes.length * 2) {
    await tx.run(addRows, [hourOf(nowMs), scopes])
    rows = await tx.rows(lockRows, [hourOf(nowMs), scopes])
  }
  return (scope, test) => rows.find((row) => row.scope === scope && row.test === test) as Counter
}

export async function saveCounters(tx: Tx, counters: readonly Counter[], nowMs: number, take?: Take): Promise<void> {
  await tx.run(saveRows, [
    hourOf(nowMs),
    counters.map((one) => one.scope),
    counters.map((one) => one.test),
    counters.map((one) => one.used),
    counters.map((one) => one.waiting),
    counters.map((one) => one.approachingNotified),
    counters.map((one) => one.exceededNotified),
    JSON.stringify(take ? { [take.writer]: take.nth } : {}),
  ])
}
