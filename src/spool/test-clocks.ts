/**
 * Test clocks: a tenant's test mail may run ahead of real time by a clock offset. The spool keeps real due times, so advancing the clock
 * brings due times nearer. Events then carry the clock's time. Live mail is not affected.
 */
import { type Queryable, sql, type Tx } from '#db'

/** The clock offset of a spool row in ms; live mail does not look it up. */
export const rowClockOffset = sql.part`
  case when spool.test then coalesce((select offset_ms from test_clocks where test_clocks.tenant_id = spool.tenant_id), 0) else 0 end`

const aheadOf = sql<{ clockOffsetMs: number }>`
  select offset_ms as "clockOffsetMs"
  from test_clocks
  where tenant_id = $1`

const moveClock = sql`
  insert into test_clocks (tenant_id, offset_ms)
  values ($1, $2)
  on conflict (tenant_id) do update
  set offset_ms = test_clocks.offset_ms + excluded.offset_ms`

const makeTestDueSooner = sql`
  update spool
  set due_at = due_at - $2 * interval '1 millisecond', scheduled_at = scheduled_at - $2 * interval '1 millisecond'
  where tenant_id = $1 and test and state in ('deferred', 'held', 'scheduled')`

const readyDue = sql`
  update spool
  set state = 'ready', due_at = null
  where tenant_id = $1 and test and state = 'deferred' and due_at <= $2`

const testQueue = sql<{ busy: number; nextDueAt: Date | null }>`
  select count(*) filter (where state in ('ready', 'sending') or due_at <= $2) as busy, min(due_at) filter (where due_at > $2) as "nextDueAt"
  from (
    select state, case state when 'scheduled' then scheduled_at else due_at end as due_at
    from spool
    where tenant_id = $1 and test and state <> 'over_limit'
  ) as queued`

const dropClock = sql`
  delete from test_clocks
  where tenant_id = $1`

/** The clock offset of a tenant's test clock in ms. */
export const getTestClockOffsetMs = async (on: Queryable, tenantId: string): Promise<number> =>
  (await on.first(aheadOf, [tenantId]))?.clockOffsetMs ?? 0

/** Advances a tenant's test clock, and makes the test mail due by then ready; the caller advances other due work. */
export async function moveTestClock(tx: Tx, tenantId: string, forMs: number, nowMs: number): Promise<void> {
  await tx.run(moveClock, [tenantId, forMs])
  await tx.run(makeTestDueSooner, [tenantId, forMs])
  await tx.run(readyDue, [tenantId, new Date(nowMs)])
}

/**
 * Counts a tenant's test mail that is being sent or is due, and returns when the next is due (real time). Mail over the send limit is not
 * counted.
 */
export async function readTestQueue(on: Queryable, tenantId: string, nowMs: number): Promise<{ busy: number; nextDueAt: Date | null }> {
  return (await on.first(testQueue, [tenantId, new Date(nowMs)])) ?? { busy: 0, nextDueAt: null }
}

export const removeTestClockOfTenant = (tx: Tx, tenantId: string): Promise<number> => tx.run(dropClock, [tenantId])
