/**
 * Automatic pause: complaints about a tenant's mail, or mail to unknown addresses, harm all senders of the machine. Over 24 hours of live
 * mail, a tenant gets a warning at half of the limit and is paused at the limit. It is resumed manually.
 */
import type { Log } from '#base'
import type { Db, Queryable, Tx } from '#db'
import { sql } from '#db'
import { pauseTenant } from '#delivery'
import { appendEvents, type JudgedHour, judgeEvents, type LogPosition } from '#events'
import { findTenant, resumedAt } from '#tenants'

export interface BrakeLimits {
  /** Percentage of finished emails; Infinity: no limit. */
  brakeComplaintPercent: number
  brakeFailurePercent: number
  /** Below this number of emails in 24 hours, a tenant is not judged. */
  brakeFromEmails: number
}

/**
 * Fewer complaints in 24 hours are considered chance. Example: a good sender gets complaints from one recipient in a thousand. About one
 * such sender in forty gets five complaints on a day of 1,600 emails, the largest day on which five exceed the limit. On a day of 1,000
 * emails it is one in 300.
 */
const leastComplaints = 5
const eventsAtOnce = 5000
const mostRounds = 20
const hourMs = 3_600_000
const windowMs = 24 * hourMs

const lockPosition = sql<LogPosition>`
  select xact::text as xact, id
  from brake_position
  for update`

const movePosition = sql`
  update brake_position
  set xact = $1::text::xid8, id = $2`

const addHours = sql`
  insert into tenant_hours (tenant_id, hour, ended, recipient_faults, complaints)
  select tenant_id, hour, ended, recipient_faults, complaints
  from unnest($1::text[], $2::timestamptz[], $3::bigint[], $4::bigint[], $5::bigint[]) as more (tenant_id, hour, ended, recipient_faults, complaints)
  on conflict (tenant_id, hour) do update
  set ended = tenant_hours.ended + excluded.ended, recipient_faults = tenant_hours.recipient_faults + excluded.recipient_faults,
    complaints = tenant_hours.complaints + excluded.complaints`

const lastDay = sql<Day>`
  select tenant_id as "tenantId", sum(ended)::bigint as ended, sum(recipient_faults)::bigint as "recipientFaults",
    sum(complaints)::bigint as complaints, bool_or(warned) as warned
  from tenant_hours
  join unnest($1::text[], $2::timestamptz[]) as asked (id, since) on asked.id = tenant_id and hour >= asked.since
  group by tenant_id`

const markWarned = sql`
  update tenant_hours
  set warned = true
  where tenant_id = $1 and hour = (select max(hour) from tenant_hours where tenant_id = $1)`

const forgetHours = sql`
  delete from tenant_hours
  where hour < $1`

interface Day extends Omit<JudgedHour, 'hour'> {
  warned: boolean
}

/**
 * Reads the event log from the stored position and judges the tenants concerned. Returns the paused tenants, which are also reported in
 * `log`.
 */
export async function applyBrake(db: Db, limits: BrakeLimits, nowMs: number, log: Pick<Log, 'warn'>): Promise<string[]> {
  const paused: string[] = []
  for (let round = 0; round < mostRounds; round++) {
    const told = await db.transaction(readOn)
    if (!told) break
    paused.push(...(await judge(db, told, limits, nowMs, log)))
  }
  await db.run(forgetHours, [new Date(nowMs - 2 * windowMs)])
  return paused
}

/** The tenants of the next events; undefined without further events. */
async function readOn(tx: Tx): Promise<string[] | undefined> {
  const position = await tx.first(lockPosition)
  const read = position && (await judgeEvents(tx, position, eventsAtOnce))
  if (!read) return undefined
  const hours = read.hours.filter((one) => one.ended + one.recipientFaults + one.complaints > 0)
  await tx.run(addHours, [
    hours.map((one) => one.tenantId),
    hours.map((one) => one.hour),
    hours.map((one) => one.ended),
    hours.map((one) => one.recipientFaults),
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

async function judge(db: Db, tenantIds: readonly string[], limits: BrakeLimits, nowMs: number, log: Pick<Log, 'warn'>): Promise<string[]> {
  const paused: string[] = []
  for (const day of await readDays(db, tenantIds, nowMs)) {
    const verdict = verdictOn(day, limits)
    if (!verdict) continue
    const tenant = await findTenant(db, day.tenantId)
    if (!tenant || tenant.pausedBecause !== null) continue
    if (verdict.over) {
      await pauseTenant(db, day.tenantId, { because: verdict.cause, by: 'abuse brake' }, nowMs)
      paused.push(day.tenantId)
      log.warn(
        { tenant: day.tenantId, cause: verdict.cause },
        `a tenant was paused; when it is mended: postrider tenant resume ${day.tenantId}`,
      )
    } else if (!day.warned) {
      await db.transaction((tx) => warn(tx, day.tenantId, verdict.cause, nowMs))
      log.warn({ tenant: day.tenantId, cause: verdict.cause }, 'a tenant is on its way to be paused')
    }
  }
  return paused
}

async function warn(tx: Tx, tenantId: string, cause: string, nowMs: number): Promise<void> {
  await tx.run(markWarned, [tenantId])
  await appendEvents(tx, [{ tenantId, kind: 'TenantWarned', emailId: null, at: new Date(nowMs), data: { cause } }])
}

/** The problem at half of a limit or more; `over`: at the limit. @public */
export function verdictOn(
  { ended, recipientFaults, complaints }: Pick<Day, 'ended' | 'recipientFaults' | 'complaints'>,
  { brakeComplaintPercent, brakeFailurePercent, brakeFromEmails }: BrakeLimits,
): { over: boolean; cause: string } | undefined {
  if (ended < brakeFromEmails) return undefined
  const judged = [
    {
      count: complaints,
      least: leastComplaints,
      percent: (complaints / ended) * 100,
      most: brakeComplaintPercent,
      what: 'drew complaints',
    },
    {
      count: recipientFaults,
      least: 0,
      percent: (recipientFaults / ended) * 100,
      most: brakeFailurePercent,
      what: 'went to addresses that do not exist',
    },
  ]
  const isOver = (one: (typeof judged)[number]) => one.percent > one.most && one.count >= one.least
  const worst = judged
    .filter((one) => one.percent > one.most / 2 && one.count >= one.least / 2)
    .sort((a, b) => Number(isOver(b)) - Number(isOver(a)) || b.percent / b.most - a.percent / a.most)[0]
  if (!worst) return undefined
  const cause = `${worst.count} of ${ended} emails of the last 24 hours ${worst.what} (${worst.percent.toFixed(2)} %, of ${worst.most} % allowed)`
  return { over: isOver(worst), cause }
}
