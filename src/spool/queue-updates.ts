/**
 * Queue updates after a tenant is suspended, resumed or deleted, or a sending domain is resumed or deleted. The change is recorded in the
 * transaction that makes it, and its queued emails follow in batches. Emails to be decided again become ready; delivery then holds or
 * fails them by the tenant's new state.
 */
import { type Queryable, sql, type Tx } from '#db'
import { stateByKey } from './row-guards.ts'

/** `paused`: suspended or archived. */
export type TenantChange = 'paused' | 'resumed' | 'deleted'

/** The states of queued recipients that are neither ready nor being sent. */
export const waitingStates = ['deferred', 'held', 'over_limit', 'scheduled'] as const
export type WaitingState = (typeof waitingStates)[number]

export interface QueueUpdate {
  tenantId: string
  id: number
  change: TenantChange | 'domain deleted' | 'domain resumed'
  domain: string | null
  at: Date
}

const recordUpdate = sql`
  insert into queue_updates (tenant_id, change, domain, at)
  values ($1, $2, $3, $4)`

const oldestChange = sql<QueueUpdate>`
  select tenant_id as "tenantId", id, change, domain, at
  from queue_updates
  where at <= $1
  order by id
  limit 1`

const changeAfterTenant = sql<QueueUpdate>`
  select tenant_id as "tenantId", id, change, domain, at
  from queue_updates
  where at <= $1 and tenant_id > $2
    and not exists (select from queue_updates as earlier where earlier.tenant_id = queue_updates.tenant_id and earlier.id < queue_updates.id)
  order by tenant_id
  limit 1`

const deleteUpdate = sql`
  delete from queue_updates
  where tenant_id = $1 and id = $2`

const updateOfTenant = sql<{ id: number }>`
  select id
  from queue_updates
  where tenant_id = $1
  limit 1`

const wakeThese = sql`
  update spool
  set state = 'ready', due_at = null
  where tenant_id = $1 and email_id = any($2) and ${stateByKey} = any($3)`

const idsAfter = sql<{ emailId: string }>`
  select email_id as "emailId"
  from spool
  where tenant_id = $1 and email_id > $2 and ${stateByKey} = any($3)
  order by email_id
  limit $4`

const releaseThese = sql<{ emailId: string }>`
  update spool
  set state = 'ready', due_at = null, hold_reason = 'released'
  where tenant_id = $1 and email_id = any($2) and ${stateByKey} = 'held' and hold_reason = $3
  returning email_id as "emailId"`

/** Must be called in the transaction that changes the tenant. */
export function recordTenantChange(tx: Tx, tenantId: string, change: TenantChange, nowMs: number): Promise<number> {
  return tx.run(recordUpdate, [tenantId, change, null, new Date(nowMs)])
}

/** Must be called in the transaction that resumes the domain. */
export function recordDomainResumed(tx: Tx, tenantId: string, domain: string, nowMs: number): Promise<number> {
  return tx.run(recordUpdate, [tenantId, 'domain resumed', domain, new Date(nowMs)])
}

/** Must be called in the transaction that deletes the domain. */
export function recordDomainDeleted(tx: Tx, tenantId: string, domain: string, nowMs: number): Promise<number> {
  return tx.run(recordUpdate, [tenantId, 'domain deleted', domain, new Date(nowMs)])
}

/** The oldest change that was made at or before `beforeMs`. */
export const oldestQueueUpdate = (on: Queryable, beforeMs: number): Promise<QueueUpdate | undefined> =>
  on.first(oldestChange, [new Date(beforeMs)])

/** The next tenant's first change, in the order of their ids after `tenantId`, if it was made at or before `beforeMs`. */
export const nextQueueUpdate = (on: Queryable, beforeMs: number, tenantId: string): Promise<QueueUpdate | undefined> =>
  on.first(changeAfterTenant, [new Date(beforeMs), tenantId])

export const deleteQueueUpdate = (on: Queryable, { tenantId, id }: QueueUpdate): Promise<number> => on.run(deleteUpdate, [tenantId, id])

/** Whether the tenant's queue does not follow a change yet. */
export const hasQueueUpdate = async (on: Queryable, tenantId: string): Promise<boolean> =>
  (await on.first(updateOfTenant, [tenantId])) !== undefined

/** Makes those of `emailIds` ready that are in one of these states; returns how many. */
export const wakeEmails = (
  on: Queryable,
  tenantId: string,
  emailIds: readonly string[],
  states: readonly WaitingState[] = waitingStates,
): Promise<number> => on.run(wakeThese, [tenantId, emailIds, states])

/** Ids of a tenant's recipients in these states, in order, after `afterId`. */
export async function listWaitingIn(
  on: Queryable,
  tenantId: string,
  states: readonly WaitingState[],
  afterId: string,
  most: number,
): Promise<string[]> {
  return (await on.rows(idsAfter, [tenantId, afterId, states, most])).map((row) => row.emailId)
}

/** Releases those of `emailIds` that are held for their tenant or their sending domain; the caller makes their emails pending. */
export async function releaseHeldFor(
  tx: Tx,
  tenantId: string,
  reason: 'tenant' | 'domain',
  emailIds: readonly string[],
): Promise<string[]> {
  if (emailIds.length === 0) return []
  return (await tx.rows(releaseThese, [tenantId, emailIds, reason])).map((row) => row.emailId)
}
