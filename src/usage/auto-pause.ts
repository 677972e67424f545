/**
 * Automatic pause: complaints about a tenant's mail, or mail to unknown addresses, harm all senders of the machine. Over 24 hours of live
 * mail, a tenant gets a warning at half of the limit and is paused at the limit. It is resumed manually.
 */
import type { Log } from '#base'
import type { Db, Queryable, Tx } from '#db'
import { sql } from '#db'
import { pauseTenant } from '#delivery'
import { appendEvents, type HourlyStats, type LogPosition, nextEventAfter, summariseEvents } from '#events'
import { findTenant, resumedAt } from '#tenants'

export interface AutoPauseLimits {
  /** Percentage of finished emails; Infinity: no limit. */
  autoPauseComplaintPercent: number
  autoPauseHardBouncePercent: number
  /** Below this number of emails in 24 hours, a tenant is not judged. */
  autoPauseMinEmails: number
}

/**
 * Fewer complaints in 24 hours are considered chance. Example: a good sender gets complaints from one recipient in a thousand. About one
 * such sender in forty gets five complaints on a day of 1,600 emails, the largest day on which five exceed the limit. On a day of 1,000
 * emails it is one in 300.
 */
const minComplaints = 5
const eventsAtOnce = 5000
const maxRounds = 20
const hourMs = 3_600_000
const windowMs = 24 * hourMs

const lockPosition = sql<LogPosition>`
  select xact::text as xact, id
  from auto_pause_position
  for update`

const nextEvent = nextEventAfter(sql.part`auto_pause_position`)

const movePosition = sql`
  update auto_pause_position
  set xact = $1::text::xid8, id = $2`

const addHours = sql`
  insert into tenant_hourly_stats (tenant_id, hour, completed, invalid_recipients, complaints)
  select tenant_id, hour, completed, invalid_recipients, complaints
  from unnest($1::text[], $2::timestamptz[], $3::bigint[], $4::bigint[], $5::bigint[]) as more (tenant_id, hour, completed, invalid_recipients, complaints)
  on conflict (tenant_id, hour) do update
  set completed = tenant_hourly_stats.completed + excluded.completed, invalid_recipients = tenant_hourly_stats.invalid_recipients + excluded.invalid_recipients,
    complaints = tenant_hourly_stats.complaints + excluded.complaints`

const lastDay = sql<Day>`
  select tenant_id as "tenantId", sum(completed)::bigint as completed, sum(invalid_recipients)::bigint as "invalidRecipients",
    sum(complaints)::bigint as complaints, bool_or(warned) as warned
  from tenant_hourly_stats
  join unnest($1::text[], $2::timestamptz[]) as wanted (id, since) on wanted.id = tenant_id and hour >= wanted.since
  group by tenant_id`

const markWarned = sql`
  update tenant_hourly_stats
  set warned = true
  where tenant_id = $1 and hour = (select max(hour) from tenant_hourly_stats where tenant_id = $1)`

const deleteHours = sql`
  delete from tenant_hourly_stats
  where hour < $1`

interface Day extends Omit<HourlyStats, 'hour'> {
  warned: boolean
}

/**
 * Reads the event log from the stored position and judges the tenants concerned. Returns the paused tenants, which are also reported in
 * `log`.
 */
export async function applyAutoPause(db: Db, limits: AutoPauseLimits, nowMs: number, log: Pick<Log, 'warn'>): Promise<string[]> {
  const paused: string[] = []
  for (let round = 0; round < maxRounds; round++) {
    const tenants = (await db.first(nextEvent)) && (await db.transaction(readOn))
    if (!tenants) break
    paused.push(...(await judge(db, tenants, limits, nowMs, log)))
  }
  await db.run(deleteHours, [new Date(nowMs - 2 * windowMs)])
  return paused
}

/** The tenants of the next events; undefined without further events. */
async function readOn(tx: Tx): Promise<string[] | undefined> {
  const position = await tx.first(lockPosition)
  const read = position && (await summariseEvents(tx, position, eventsAtOnce))
  if (!read) return undefined
  const hours = read.hours.filter((one) => one.completed + one.invalidRecipients + one.complaints > 0)
  await tx.run(addHours, [
    hours.map((one) => one.tenantId),
    hours.map((one) => one.hour),
    hours.map((one) => one.completed),
    hours.map((one) => one.invalidRecipients),
    hours.map((one) => one.complaints),
  ])
  await tx.run(movePosition, [read.last.xact, read.last.id])
  return [...new Set(hours.map((one) => one.tenantId))]
}

/** The counted hours of the last day: those after the tenant was resumed. */
async function readDays(on: Queryable, tenantIds: readonly string[], nowMs: number): Promise<Day[]> {
  const resumed = await resumedAt(on, tenantIds)
  const since = tenantIds.map((id) => new Date(Math.max(nowMs - windowMs, resumed.get(id)?.getTime() ?? 0)))
  return on.rows(lastDay, [tenantIds, since])
}

async function judge(
  db: Db,
  tenantIds: readonly string[],
  limits: AutoPauseLimits,
  nowMs: number,
  log: Pick<Log, 'warn'>,
): Promise<string[]> {
  const paused: string[] = []
  for (const day of await readDays(db, tenantIds, nowMs)) {
    const verdict = verdictOn(day, limits)
    if (!verdict) continue
    const tenant = await findTenant(db, day.tenantId)
    if (!tenant || tenant.pauseReason !== null) continue
    if (verdict.over) {
      await pauseTenant(db, day.tenantId, { reason: verdict.cause, by: 'automatic pause' }, nowMs)
      paused.push(day.tenantId)
      log.warn(
        { tenant: day.tenantId, cause: verdict.cause },
        `tenant paused automatically; after fixing the cause, run postrider tenant resume ${day.tenantId}`,
      )
    } else if (!day.warned) {
      await db.transaction((tx) => warn(tx, day.tenantId, verdict.cause, nowMs))
      log.warn({ tenant: day.tenantId, cause: verdict.cause }, 'tenant is approaching the automatic pause')
    }
  }
  return paused
}

async function warn(tx: Tx, tenantId: string, cause: string, nowMs: number): Promise<void> {
  await tx.run(markWarned, [tenantId])
  await appendEvents(tx, [{ tenantId, kind: 'AutoPauseWarning', emailId: null, at: new Date(nowMs), data: { cause } }])
}

/** The problem at half of a limit or more; `over`: at the limit. @public */
export function verdictOn(
  { completed, invalidRecipients, complaints }: Pick<Day, 'completed' | 'invalidRecipients' | 'complaints'>,
  { autoPauseComplaintPercent, autoPauseHardBouncePercent, autoPauseMinEmails }: AutoPauseLimits,
): { over: boolean; cause: string } | undefined {
  if (completed < autoPauseMinEmails) return undefined
  const judged = [
    {
      count: complaints,
      minCount: minComplaints,
      percent: (complaints / completed) * 100,
      maxPercent: autoPauseComplaintPercent,
      what: 'caused complaints',
    },
    {
      count: invalidRecipients,
      minCount: 0,
      percent: (invalidRecipients / completed) * 100,
      maxPercent: autoPauseHardBouncePercent,
      what: 'went to addresses that do not exist',
    },
  ]
  const isOver = (one: (typeof judged)[number]) => one.percent > one.maxPercent && one.count >= one.minCount
  const worst = judged
    .filter((one) => one.percent > one.maxPercent / 2 && one.count >= one.minCount / 2)
    .sort((a, b) => Number(isOver(b)) - Number(isOver(a)) || b.percent / b.maxPercent - a.percent / a.maxPercent)[0]
  if (!worst) return undefined
  const cause = `${worst.count} of ${completed} emails of the last 24 hours ${worst.what} (${worst.percent.toFixed(2)}%, of ${worst.maxPercent}% allowed)`
  return { over: isOver(worst), cause }
}
