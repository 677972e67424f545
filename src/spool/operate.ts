/**
 * Queue administration: queue contents, pauses, and rows changed by hand. Not on the hot path.
 */
import { type Clock, emailIdTimeMs, remembered } from '#base'
import { type Db, type Queryable, sql, type Tx } from '#db'
import { aheadOfRow } from './test-clocks.ts'

/** Selects a part of the queue; an absent field does not restrict. */
export interface QueueFilter {
  tenantId?: string | undefined
  /** The recipient domain. */
  destination?: string | undefined
  emailId?: string | undefined
  /** An address in lower case. */
  recipient?: string | undefined
}

const chosen = sql.part`
  ($1::text is null or tenant_id = $1) and ($2::text is null or destination = $2) and ($3::text is null or email_id = $3)
    and ($4::text is null or lower(recipient) = $4)`

const filterValues = ({ tenantId, destination, emailId, recipient }: QueueFilter) => [
  tenantId ?? null,
  destination ?? null,
  emailId ?? null,
  recipient ?? null,
]

export interface Taken {
  tenantId: string
  emailId: string
  heldBecause: string | null
  manual: boolean
  failures: number
}

/**
 * Rows are locked where they are selected, here and below. An email claimed meanwhile is not counted, so a result smaller than $5 is the
 * last batch. The selection stands in `with`, which runs once. A subquery may run for every row, and would select others when the first
 * are gone.
 */
const takeRows = sql<Taken>`
  with chosen as (
    select tenant_id, email_id
    from spool
    where ${chosen} and state <> 'sending'
    limit $5
    for update
  )
  delete from spool
  where (tenant_id, email_id) in (select tenant_id, email_id from chosen) and state <> 'sending'
  returning tenant_id as "tenantId", email_id as "emailId", held_because as "heldBecause", manual, failures`

const hasten = sql`
  with chosen as (
    select tenant_id, email_id
    from spool
    where ${chosen} and state = 'deferred'
    limit $5
    for update
  )
  update spool
  set state = 'ready', due_at = null
  where (tenant_id, email_id) in (select tenant_id, email_id from chosen) and state || '' = 'deferred'`

const hastenWaiting = sql`
  with chosen as (
    select tenant_id, email_id
    from spool
    where state = 'deferred' and starts_with(waits_for, $1) and due_at > $2
    limit $3
    for update
  )
  update spool
  set due_at = $2
  where (tenant_id, email_id) in (select tenant_id, email_id from chosen) and state || '' = 'deferred'`

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
  set state = 'ready', due_at = null, held_because = 'released'
  where (tenant_id, email_id) in (select tenant_id, email_id from chosen) and state || '' = 'held'
  returning tenant_id as "tenantId", email_id as "emailId"`

/** Removes emails that are not being sent from the spool, at most `most` at once; the caller makes them hardfail. */
export const takeQueued = (tx: Tx, filter: QueueFilter, most: number): Promise<Taken[]> =>
  tx.rows(takeRows, [...filterValues(filter), most])

/** Makes deferred recipients due now, at most `most` at once; returns how many. */
export const flushDeferred = (on: Queryable, filter: QueueFilter, most: number): Promise<number> =>
  on.run(hasten, [...filterValues(filter), most])

/** Makes recipients due by `due` if their delay reason starts with `waitsFor`, at most `most` at once; returns how many. */
export const hastenWaiters = (on: Queryable, waitsFor: string, due: Date, most: number): Promise<number> =>
  on.run(hastenWaiting, [waitsFor, due, most])

/** Releases held recipients, oldest first, at most `most` at once; the caller makes their emails pending. */
export const releaseHeld = (tx: Tx, filter: QueueFilter, most: number): Promise<{ tenantId: string; emailId: string }[]> =>
  tx.rows(releaseRows, [...filterValues(filter), most])

export interface QueuedAt {
  destination: string
  ready: number
  sending: number
  deferred: number
  waiting: number
  held: number
  /** The email that has waited longest. */
  oldestEmailId: string
  /** When the next deferred recipient is due. */
  nextDueAt: Date | null
  /** The newest deferred email; its attempts show the reason. */
  deferredEmailId: string | null
  deferredTenantId: string | null
  /** The delay reason of that email, unless it is a failed attempt. */
  waitsFor: string | null
}

const byDestination = sql<QueuedAt>`
  select destination,
    count(*) filter (where state = 'ready') as ready, count(*) filter (where state = 'sending') as sending,
    count(*) filter (where state = 'deferred') as deferred, count(*) filter (where state = 'waiting') as waiting,
    count(*) filter (where state = 'held') as held, min(email_id) as "oldestEmailId",
    min(due_at) filter (where state = 'deferred') as "nextDueAt", max(email_id) filter (where state = 'deferred') as "deferredEmailId",
    (array_agg(tenant_id order by email_id desc) filter (where state = 'deferred'))[1] as "deferredTenantId",
    (array_agg(waits_for order by email_id desc) filter (where state = 'deferred'))[1] as "waitsFor"
  from spool
  where ($1::text is null or tenant_id = $1) and not test
  group by destination
  order by count(*) desc, destination
  limit $2`

/** Queued live mail by recipient domain, the longest queues first. Reads the whole queue. */
export const queueByDestination = (on: Queryable, tenantId: string | null, most: number): Promise<QueuedAt[]> =>
  on.rows(byDestination, [tenantId, most])

const measured = sql<{ state: Queued['state']; recipients: number; dueAt: Date | null; firstEmailId: string | null }>`
  select state, count(*) as recipients, min(due_at) as "dueAt", min(email_id) filter (where failures = 0) as "firstEmailId"
  from spool
  group by state`

const unowned = sql<{ shards: number }>`
  select count(*) as shards
  from shard_leases
  where owner is null`

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
  const dueMs = rows.flatMap(({ state, dueAt, firstEmailId }) => {
    if (state === 'deferred' && dueAt) return [dueAt.getTime()]
    return state === 'ready' && firstEmailId ? [emailIdTimeMs(firstEmailId) ?? nowMs] : []
  })
  return { states, overdueMs: Math.max(0, nowMs - Math.min(...dueMs, nowMs)), unowned: (await on.first(unowned))?.shards ?? 0 }
}

export interface QueueStop {
  /** '' for a recipient domain or a provider, which are paused for all tenants. */
  tenantId: string
  kind: 'destination' | 'provider' | 'domain'
  name: string
  because: string
  at: Date
}

const allStops = sql<QueueStop>`
  select tenant_id as "tenantId", kind, name, because, at
  from queue_stops
  order by kind, tenant_id, name`

const addStop = sql`
  insert into queue_stops (tenant_id, kind, name, because, at)
  values ($1, $2, $3, $4, $5)
  on conflict (tenant_id, kind, name) do update
  set because = excluded.because`

const dropStop = sql`
  delete from queue_stops
  where tenant_id = $1 and kind = $2 and name = $3`

const dropStopsOf = sql`
  delete from queue_stops
  where tenant_id = $1`

export const listStops = (on: Queryable): Promise<QueueStop[]> => on.rows(allStops)

export const stopQueue = (tx: Tx, { tenantId, kind, name, because, at }: QueueStop): Promise<number> =>
  tx.run(addStop, [tenantId, kind, name, because, at])

/** Returns whether it was paused. */
export const resumeQueue = async (tx: Tx, { tenantId, kind, name }: Pick<QueueStop, 'tenantId' | 'kind' | 'name'>): Promise<boolean> =>
  (await tx.run(dropStop, [tenantId, kind, name])) === 1

/** A deleted tenant cannot be named any more to resume its pauses. */
export const removeStopsOfTenant = (tx: Tx, tenantId: string): Promise<number> => tx.run(dropStopsOf, [tenantId])

/** The active pauses, cached for at most a second. */
export function openStops({ db, clock }: { db: Db; clock: Clock }): { current(): Promise<readonly QueueStop[]> } {
  const known = remembered(clock, () => listStops(db))
  return { current: () => known.get('') }
}

export interface Queued {
  state: 'ready' | 'sending' | 'deferred' | 'waiting' | 'held'
  destination: string
  /** Failed attempts so far. */
  failures: number
  manual: boolean
  /** For test mail, by the tenant's test clock. */
  dueAt: Date | null
  heldBecause: string | null
  /** The delay reason of a deferred recipient, unless it is a failed attempt. */
  waitsFor: string | null
}

const queuedEmail = sql<Queued>`
  select state, destination, failures, manual, due_at + ${aheadOfRow} * interval '1 millisecond' as "dueAt",
    held_because as "heldBecause", waits_for as "waitsFor"
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
    where tenant_id = $1 and email_id < $2 and destination = $3 and state = 'ready'
    limit $4
  ) as before`

const waitingBefore = sql<{ ahead: number }>`
  select count(*) as ahead
  from (
    select
    from spool
    where state = 'waiting' and test = $1 and email_id < $2
    limit $3
  ) as before`

/** Counting stops here. */
export const mostAhead = 10_000

/**
 * Counts the recipients ahead of this one: those of its tenant for its recipient domain, or, while it is over the send limit, all that
 * are.
 */
export async function countAhead(
  on: Queryable,
  email: { tenantId: string; emailId: string; test: boolean },
  { state, destination }: Pick<Queued, 'state' | 'destination'>,
): Promise<number | null> {
  if (state === 'ready') return (await on.first(readyBefore, [email.tenantId, email.emailId, destination, mostAhead]))?.ahead ?? 0
  if (state === 'waiting') return (await on.first(waitingBefore, [email.test, email.emailId, mostAhead]))?.ahead ?? 0
  return null
}

const releaseOfDomain = sql<{ emailId: string }>`
  update spool
  set state = 'ready', due_at = null, held_because = 'released'
  where tenant_id = $1 and email_id = any($2) and state || '' = 'held' and held_because = 'domain'
  returning email_id as "emailId"`

/** Releases those of `emailIds` that were held for their sending domain; the caller makes their emails pending. */
export async function releaseHeldForDomain(tx: Tx, tenantId: string, emailIds: readonly string[]): Promise<string[]> {
  return (await tx.rows(releaseOfDomain, [tenantId, emailIds])).map((row) => row.emailId)
}
