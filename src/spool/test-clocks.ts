/**
 * Test clocks: a tenant's test mail may live ahead of the time. The spool keeps real due times, so moving the clock forward means to
 * bring what is due nearer; what happens then is told at the clock's time. Live mail knows nothing of it.
 */
import { type Queryable, sql, type Tx } from '#db'

/** How far ahead the mail of a spool row lives, in ms; live mail does not look it up. */
export const aheadOfRow = sql.part`
  case when spool.test then coalesce((select ahead_ms from test_clocks where test_clocks.tenant_id = spool.tenant_id), 0) else 0 end`

const aheadOf = sql<{ aheadMs: number }>`
  select ahead_ms as "aheadMs"
  from test_clocks
  where tenant_id = $1`

const moveClock = sql`
  insert into test_clocks (tenant_id, ahead_ms)
  values ($1, $2)
  on conflict (tenant_id) do update
  set ahead_ms = test_clocks.ahead_ms + excluded.ahead_ms`

const hastenTest = sql`
  update spool
  set due_at = due_at - $2 * interval '1 millisecond'
  where tenant_id = $1 and test and state in ('deferred', 'held')`

const readyDue = sql`
  update spool
  set state = 'ready', due_at = null
  where tenant_id = $1 and test and state = 'deferred' and due_at <= $2`

const testQueue = sql<{ busy: number; nextDueAt: Date | null }>`
  select count(*) filter (where state in ('ready', 'sending') or due_at <= $2) as busy, min(due_at) filter (where due_at > $2) as "nextDueAt"
  from spool
  where tenant_id = $1 and test and state <> 'waiting'`

const dropClock = sql`
  delete from test_clocks
  where tenant_id = $1`

/** How far a tenant's test clock is ahead of the time, in ms. */
export const findTestAheadMs = async (on: Queryable, tenantId: string): Promise<number> =>
  (await on.first(aheadOf, [tenantId]))?.aheadMs ?? 0

/** Moves a tenant's test clock, and makes its test mail ready that is due then; the caller brings nearer what else is due. */
export async function moveTestClock(tx: Tx, tenantId: string, forMs: number, nowMs: number): Promise<void> {
  await tx.run(moveClock, [tenantId, forMs])
  await tx.run(hastenTest, [tenantId, forMs])
  await tx.run(readyDue, [tenantId, new Date(nowMs)])
}

/** What of a tenant's test mail is being worked on or due, and when the next is due (real time). Not what waits for send capacity. */
export async function readTestQueue(on: Queryable, tenantId: string, nowMs: number): Promise<{ busy: number; nextDueAt: Date | null }> {
  return (await on.first(testQueue, [tenantId, new Date(nowMs)])) ?? { busy: 0, nextDueAt: null }
}

export const removeTestClockOfTenant = (tx: Tx, tenantId: string): Promise<number> => tx.run(dropClock, [tenantId])
