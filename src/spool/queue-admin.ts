/**
 * Queue administration: queue contents, pauses, and rows changed by hand. Not on the hot path.
 */
import { type Clock, cached, emailIdTimeMs } from '#base'
import { type Db, type Queryable, sql, type Tx } from '#db'
import { stateByKey } from './row-guards.ts'
import { rowClockOffset } from './test-clocks.ts'

/** Selects a part of the queue; an absent field does not restrict. */
export interface QueueFilter {
  tenantId?: string | undefined
  /** The recipient domain. */
  recipientDomain?: string | undefined
  emailId?: string | undefined
  /** An address in lower case. */
  recipient?: string | undefined
}

const chosen = sql.part`
  ($1::text is null or tenant_id = $1) and ($2::text is null or recipient_domain = $2) and ($3::text is null or email_id = $3)
    and ($4::text is null or lower(recipient) = $4)`

const filterValues = ({ tenantId, recipientDomain, emailId, recipient }: QueueFilter) => [
  tenantId ?? null,
  recipientDomain ?? null,
  emailId ?? null,
  recipient ?? null,
]

export interface RemovedRecipient {
  tenantId: string
  emailId: string
  holdReason: string | null
  manualRetry: boolean
  attempts: number
  clockOffsetMs: number
}

export const removedColumns = sql.part`
  tenant_id as "tenantId", email_id as "emailId", hold_reason as "holdReason", manual_retry as "manualRetry", attempt_count as "attempts",
  ${rowClockOffset} as "clockOffsetMs"`

/**
 * Rows are locked where they are selected, here and below. An email claimed meanwhile is not counted, so a result smaller than $5 is the
 * last batch. The selection stands in `with`, which runs once. A subquery may run for every row, and would select others when the first
 * are gone.
 */
const takeRows = sql<RemovedRecipient>`
  with chosen as (
    select tenant_id, email_id
    from spool
    where ${chosen} and state <> 'sending'
    limit $5
    for update
  )
  delete from spool
  where (tenant_id, email_id) in (select tenant_id, email_id from chosen) and state <> 'sending'
  returning ${removedColumns}`

const makeDueNow = sql`
  with chosen as (
    select tenant_id, email_id
    from spool
    where ${chosen} and state = 'deferred'
    limit $5
    for update
  )
  update spool
  set state = 'ready', due_at = null
  where (tenant_id, email_id) in (select tenant_id, email_id from chosen) and ${stateByKey} = 'deferred'`

const makeWaitingDueNow = sql`
  with chosen as (
    select tenant_id, email_id
    from spool
    where state = 'deferred' and starts_with(delay_reason, $1) and due_at > $2
    limit $3
    for update
  )
  update spool
  set due_at = $2
  where (tenant_id, email_id) in (select tenant_id, email_id from chosen) and ${stateByKey} = 'deferred'`

const releaseRows = sql<{ tenantId: string; emailId: string }>`
  with chosen as (
    select tenant_id, email_id
    from spool
    where ${chosen} and state = 'held'
    order by email_id
    limit $5
    for update
  )
  update spool
  set state = 'ready', due_at = null, hold_reason = 'released'
  where (tenant_id, email_id) in (select tenant_id, email_id from chosen) and ${stateByKey} = 'held'
  returning tenant_id as "tenantId", email_id as "emailId"`

/** Removes emails that are not being sent from the spool, at most `most` at once; the caller makes them hardfail. */
export const removeQueued = (tx: Tx, filter: QueueFilter, most: number): Promise<RemovedRecipient[]> =>
  tx.rows(takeRows, [...filterValues(filter), most])

/** Makes deferred recipients due now, at most `most` at once; returns how many. */
export const makeDeferredDueNow = (on: Queryable, filter: QueueFilter, most: number): Promise<number> =>
  on.run(makeDueNow, [...filterValues(filter), most])

/** Makes recipients due by `due` if their delay reason starts with `delayReason`, at most `most` at once; returns how many. */
export const makeWaitersDueNow = (on: Queryable, delayReason: string, due: Date, most: number): Promise<number> =>
  on.run(makeWaitingDueNow, [delayReason, due, most])

/** Releases held recipients, oldest first, at most `most` at once; the caller makes their emails pending. */
export const releaseHeld = (tx: Tx, filter: QueueFilter, most: number): Promise<{ tenantId: string; emailId: string }[]> =>
  tx.rows(releaseRows, [...filterValues(filter), most])

export interface QueuedAt {
  recipientDomain: string
  ready: number
  sending: number
  deferred: number
  overLimit: number
  held: number
  /** The email that has waited longest. */
  oldestEmailId: string
  /** When the next deferred recipient is due. */
  nextDueAt: Date | null
  /** The newest deferred email; its attempts show the reason. */
  deferredEmailId: string | null
  deferredTenantId: string | null
  /** The delay reason of that email, unless it is a failed attempt. */
  delayReason: string | null
}

const byRecipientDomain = sql<QueuedAt>`
  select recipient_domain as "recipientDomain",
    count(*) filter (where state = 'ready') as ready, count(*) filter (where state = 'sending') as sending,
    count(*) filter (where state = 'deferred') as deferred, count(*) filter (where state = 'over_limit') as "overLimit",
    count(*) filter (where state = 'held') as held, min(email_id) as "oldestEmailId",
    min(due_at) filter (where state = 'deferred') as "nextDueAt", max(email_id) filter (where state = 'deferred') as "deferredEmailId",
    (array_agg(tenant_id order by email_id desc) filter (where state = 'deferred'))[1] as "deferredTenantId",
    (array_agg(delay_reason order by email_id desc) filter (where state = 'deferred'))[1] as "delayReason"
  from spool
  where ($1::text is null or tenant_id = $1) and not test and state <> 'scheduled'
  group by recipient_domain
  order by count(*) desc, recipient_domain
  limit $2`

/** Queued live mail by recipient domain, without scheduled mail, the longest queues first. Reads the whole queue. */
export const queueByRecipientDomain = (on: Queryable, tenantId: string | null, most: number): Promise<QueuedAt[]> =>
  on.rows(byRecipientDomain, [tenantId, most])

const measured = sql<{
  state: Queued['state']
  recipients: number
  dueAt: Date | null
  scheduledAt: Date | null
  firstEmailId: string | null
}>`
  select state, count(*) as recipients, min(due_at) as "dueAt", min(scheduled_at) filter (where attempt_count = 0) as "scheduledAt",
    min(email_id) filter (where attempt_count = 0 and scheduled_at is null) as "firstEmailId"
  from spool
  group by state`

const unowned = sql<{ shards: number }>`
  select count(*) as shards
  from shard_leases
  where owner is null or owner not in (select id from delivery_processes)`

/**
 * Queue measurements for the metrics: recipients by state, how long the most overdue one is past its due time, and shards without an
 * owner.
 */
export async function measureQueue(
  on: Queryable,
  nowMs: number,
): Promise<{ states: Map<Queued['state'], number>; overdueMs: number; unowned: number }> {
  const rows = await on.rows(measured)
  const states = new Map(rows.map(({ state, recipients }) => [state, recipients]))
  const dueMs = rows.flatMap(({ state, dueAt, scheduledAt, firstEmailId }) => {
    if (state === 'deferred' && dueAt) return [dueAt.getTime()]
    if (state !== 'ready' && state !== 'scheduled') return []
    return [...(firstEmailId ? [emailIdTimeMs(firstEmailId) ?? nowMs] : []), ...(scheduledAt ? [scheduledAt.getTime()] : [])]
  })
  return { states, overdueMs: Math.max(0, nowMs - Math.min(...dueMs, nowMs)), unowned: (await on.first(unowned))?.shards ?? 0 }
}

export interface QueuePause {
  /** '' for a recipient domain or a provider, which are paused for all tenants. */
  tenantId: string
  kind: 'destination' | 'provider' | 'domain'
  name: string
  reason: string
  at: Date
}

const allQueuePauses = sql<QueuePause>`
  select tenant_id as "tenantId", kind, name, reason, at
  from queue_pauses
  order by kind, tenant_id, name`

const insertPause = sql`
  insert into queue_pauses (tenant_id, kind, name, reason, at)
  values ($1, $2, $3, $4, $5)
  on conflict (tenant_id, kind, name) do update
  set reason = excluded.reason`

const deletePause = sql`
  delete from queue_pauses
  where tenant_id = $1 and kind = $2 and name = $3`

const deletePausesOf = sql`
  delete from queue_pauses
  where tenant_id = $1`

export const listQueuePauses = (on: Queryable): Promise<QueuePause[]> => on.rows(allQueuePauses)

export const addQueuePause = (tx: Tx, { tenantId, kind, name, reason, at }: QueuePause): Promise<number> =>
  tx.run(insertPause, [tenantId, kind, name, reason, at])

/** Returns whether it was paused. */
export const resumeQueue = async (tx: Tx, { tenantId, kind, name }: Pick<QueuePause, 'tenantId' | 'kind' | 'name'>): Promise<boolean> =>
  (await tx.run(deletePause, [tenantId, kind, name])) === 1

/** A deleted tenant cannot be named any more to resume its pauses. */
export const removeQueuePausesOfTenant = (tx: Tx, tenantId: string): Promise<number> => tx.run(deletePausesOf, [tenantId])

/** The active pauses, cached for at most a second. */
export function openQueuePauses({ db, clock }: { db: Db; clock: Clock }): { current(): Promise<readonly QueuePause[]> } {
  const known = cached(clock, () => listQueuePauses(db))
  return { current: () => known.get('') }
}

export interface Queued {
  state: 'ready' | 'sending' | 'deferred' | 'over_limit' | 'held' | 'scheduled'
  recipientDomain: string
  /** Failed attempts so far. */
  attempts: number
  manualRetry: boolean
  /** Also when a scheduled email is due. For test mail, by the tenant's test clock. */
  dueAt: Date | null
  holdReason: string | null
  /** The delay reason of a deferred recipient, unless it is a failed attempt. */
  delayReason: string | null
}

const queuedEmail = sql<Queued>`
  select state, recipient_domain as "recipientDomain", attempt_count as "attempts", manual_retry as "manualRetry",
    case state when 'scheduled' then scheduled_at else due_at end + ${rowClockOffset} * interval '1 millisecond' as "dueAt",
    hold_reason as "holdReason", delay_reason as "delayReason"
  from spool
  where tenant_id = $1 and email_id = $2`

/** The spool row of an email that is not final. */
export function findQueued(on: Queryable, email: { tenantId: string; emailId: string }): Promise<Queued | undefined> {
  return on.first(queuedEmail, [email.tenantId, email.emailId])
}

const readyBefore = sql<{ ahead: number }>`
  select count(*) as ahead
  from (
    select
    from spool
    where tenant_id = $1 and email_id < $2 and recipient_domain = $3 and state = 'ready'
    limit $4
  ) as before`

const waitingBefore = sql<{ ahead: number }>`
  select count(*) as ahead
  from (
    select
    from spool
    where state = 'over_limit' and test = $1 and email_id < $2
    limit $3
  ) as before`

/** Counting stops here. */
export const maxAhead = 10_000

/**
 * Counts the recipients ahead of this one: those of its tenant for its recipient domain, or, while it is over the send limit, all that
 * are.
 */
export async function countAhead(
  on: Queryable,
  email: { tenantId: string; emailId: string; test: boolean },
  { state, recipientDomain }: Pick<Queued, 'state' | 'recipientDomain'>,
): Promise<number | null> {
  if (state === 'ready') return (await on.first(readyBefore, [email.tenantId, email.emailId, recipientDomain, maxAhead]))?.ahead ?? 0
  if (state === 'over_limit') return (await on.first(waitingBefore, [email.test, email.emailId, maxAhead]))?.ahead ?? 0
  return null
}
