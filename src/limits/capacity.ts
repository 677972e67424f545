/**
 * The hourly send capacity (contract section 6.2): an accepted email takes a slot of the running hour, or waits for one in order of
 * acceptance. One row of counters holds for all processes together.
 * The counters are committed without waiting for the disk: the accepting commit that follows on the same log flushes them too, so a
 * slot is never given twice for an accepted email; a crash between the two only loses the slot until the hour ends.
 */
import { type Db, type Queryable, sql, type Tx } from '#db'
import { organisationSubject, type SendLimits, tenantSubject } from './settings.ts'

const hourMs = 3_600_000

/** What the send-limit headers tell: always the organisation's figures. */
export interface Standing {
  limit: number | null
  used: number
  /** Unix seconds of the top of the next hour. */
  resetSeconds: number
}

export interface Demand {
  tenantId: string
  test: boolean
  count: number
}

interface Counter {
  subject: string
  test: boolean
  used: number
  waiting: number
}

const lockCounters = sql<Counter>`
  with relaxed as (select set_config('synchronous_commit', 'off', true))
  select subject, test, case when hour = $1 then used else 0 end as used, waiting
  from send_capacity, relaxed
  where subject = any($2)
  order by subject, test
  for update of send_capacity`

const addCounters = sql`
  insert into send_capacity (subject, test, hour, used, waiting)
  select subject, test, $1, 0, 0
  from unnest($2::text[]) as subject, (values (false), (true)) as mode (test)
  on conflict (subject, test) do nothing`

const saveCounters = sql`
  update send_capacity
  set hour = $1, used = counted.used, waiting = counted.waiting
  from unnest($2::text[], $3::boolean[], $4::bigint[], $5::bigint[]) as counted (subject, test, used, waiting)
  where send_capacity.subject = counted.subject and send_capacity.test = counted.test`

/** Takes $4 slots of the organisation at once, or none: when others wait, when the limit would be passed, and before its first use. */
const takeAtOnce = sql<{ used: number }>`
  with relaxed as (select set_config('synchronous_commit', 'off', true))
  update send_capacity
  set hour = $1, used = case when hour = $1 then used else 0 end + $4
  from relaxed
  where subject = $2 and test = $3 and ($5::bigint is null or waiting = 0 and case when hour = $1 then used else 0 end + $4 <= $5)
  returning used`

const readCounter = sql<Counter>`
  select subject, test, case when hour = $1 then used else 0 end as used, waiting
  from send_capacity
  where subject = $2 and test = $3`

const countersWithWaiting = sql<Counter & { hour: Date }>`
  select subject, test, hour, used, waiting
  from send_capacity
  where waiting > 0`

const hourOf = (nowMs: number) => new Date(Math.floor(nowMs / hourMs) * hourMs)
const resetSecondsOf = (nowMs: number) => (Math.floor(nowMs / hourMs) + 1) * (hourMs / 1000)

/** The counters of the organisation and of each tenant with a ceiling, locked until the transaction ends. */
async function lock(tx: Tx, subjects: string[], nowMs: number): Promise<(subject: string, test: boolean) => Counter> {
  let rows = await tx.rows(lockCounters, [hourOf(nowMs), subjects])
  if (rows.length < subjects.length * 2) {
    await tx.run(addCounters, [hourOf(nowMs), subjects])
    rows = await tx.rows(lockCounters, [hourOf(nowMs), subjects])
  }
  return (subject, test) => rows.find((row) => row.subject === subject && row.test === test) as Counter
}

async function save(tx: Tx, counters: readonly Counter[], nowMs: number): Promise<void> {
  await tx.run(saveCounters, [
    hourOf(nowMs),
    counters.map((one) => one.subject),
    counters.map((one) => one.test),
    counters.map((one) => one.used),
    counters.map((one) => one.waiting),
  ])
}

/** Slots left; none while others wait, so that nobody overtakes them. */
const roomFor = (counter: Counter | undefined, limit: number | null) =>
  counter === undefined || limit === null ? Number.MAX_SAFE_INTEGER : counter.waiting > 0 ? 0 : Math.max(0, limit - counter.used)

/** Takes as many slots as there are for each demand, in order; the rest of a demand waits. */
export async function takeSlots(
  db: Db,
  demands: readonly Demand[],
  limits: SendLimits,
  nowMs: number,
): Promise<{ granted: number[]; standing: (test: boolean) => Standing }> {
  const [first] = demands
  if (first && demands.every(({ tenantId, test }) => test === first.test && !limits.ceilings.has(tenantId))) {
    const wanted = demands.reduce((sum, one) => sum + one.count, 0)
    const taken = await db.first(takeAtOnce, [hourOf(nowMs), organisationSubject, first.test, wanted, limits.organisation])
    if (taken) {
      const standing = { limit: limits.organisation, used: taken.used, resetSeconds: resetSecondsOf(nowMs) }
      return { granted: demands.map((one) => one.count), standing: () => standing }
    }
  }
  const withCeiling = [...new Set(demands.map((one) => one.tenantId).filter((id) => limits.ceilings.has(id)))]
  const subjects = [organisationSubject, ...withCeiling.map(tenantSubject)]
  return db.transaction(async (tx) => {
    const counter = await lock(tx, subjects, nowMs)
    const touched = new Set<Counter>()
    const granted = demands.map(({ tenantId, test, count }) => {
      const organisation = counter(organisationSubject, test)
      touched.add(organisation)
      const ceiling = limits.ceilings.get(tenantId)
      const tenant = ceiling === undefined ? undefined : counter(tenantSubject(tenantId), test)
      const withinTenant = Math.min(count, roomFor(tenant, ceiling ?? null))
      const slots = Math.min(withinTenant, roomFor(organisation, limits.organisation))
      organisation.used += slots
      organisation.waiting += withinTenant - slots
      if (tenant) {
        tenant.used += slots
        tenant.waiting += count - withinTenant
        touched.add(tenant)
      }
      return slots
    })
    await save(tx, [...touched], nowMs)
    const standings = [false, true].map((test) => ({
      limit: limits.organisation,
      used: counter(organisationSubject, test).used,
      resetSeconds: resetSecondsOf(nowMs),
    })) as [Standing, Standing]
    return { granted, standing: (test) => standings[test ? 1 : 0] }
  })
}

/** The organisation's figures without taking anything. */
export async function readStanding(on: Queryable, test: boolean, limits: SendLimits, nowMs: number): Promise<Standing> {
  const row = await on.first(readCounter, [hourOf(nowMs), organisationSubject, test])
  return { limit: limits.organisation, used: row?.used ?? 0, resetSeconds: resetSecondsOf(nowMs) }
}

export interface Room {
  test: boolean
  /** Slots left in this hour for the organisation. */
  organisation: number
  /** Slots left for tenants with a ceiling. */
  tenants: Map<string, number>
}

/** For live and test mail apart: the room there is for emails that wait, or undefined when none can go now. */
export async function roomForWaiting(tx: Tx, limits: SendLimits, nowMs: number): Promise<Room[]> {
  const waiting = await tx.rows(countersWithWaiting)
  if (waiting.length === 0) return []
  const subjects = [organisationSubject, ...[...limits.ceilings.keys()].map(tenantSubject)]
  const counter = await lock(tx, subjects, nowMs)
  return [false, true]
    .filter((test) => waiting.some((one) => one.test === test))
    .map((test) => ({
      test,
      organisation: left(counter(organisationSubject, test), limits.organisation),
      tenants: new Map([...limits.ceilings].map(([id, ceiling]) => [id, left(counter(tenantSubject(id), test), ceiling)])),
    }))
    .filter((room) => room.organisation > 0)
}

const left = (counter: Counter, limit: number | null) => (limit === null ? Number.MAX_SAFE_INTEGER : Math.max(0, limit - counter.used))

/** Writes down what `roomForWaiting` led to: slots taken now, and emails still waiting, for each subject. */
export async function settleWaiting(
  tx: Tx,
  test: boolean,
  outcome: { taken: Map<string, number>; stillWaiting: { organisation: number; tenants: Map<string, number> } },
  limits: SendLimits,
  nowMs: number,
): Promise<void> {
  const tenantIds = [...limits.ceilings.keys()]
  const counter = await lock(tx, [organisationSubject, ...tenantIds.map(tenantSubject)], nowMs)
  const organisation = counter(organisationSubject, test)
  for (const taken of outcome.taken.values()) organisation.used += taken
  organisation.waiting = outcome.stillWaiting.organisation
  const tenants = tenantIds.map((id) => {
    const tenant = counter(tenantSubject(id), test)
    tenant.used += outcome.taken.get(id) ?? 0
    tenant.waiting = outcome.stillWaiting.tenants.get(id) ?? 0
    return tenant
  })
  await save(tx, [organisation, ...tenants], nowMs)
}
