/** The queued live mail of all recipient domains as numbers. Reads the whole queue. */
import { type Queryable, sql } from '#db'

export interface QueueTotals {
  recipientDomains: number
  ready: number
  sending: number
  deferred: number
  overLimit: number
  held: number
  /** The email that has waited longest; null: the queue is empty. */
  oldestEmailId: string | null
  /** When the next deferred recipient is due. */
  nextDueAt: Date | null
}

/** Grouped first, because `count(distinct)` would sort the whole queue. */
const totals = sql<QueueTotals>`
  select count(*) as "recipientDomains", coalesce(sum(ready), 0)::bigint as ready, coalesce(sum(sending), 0)::bigint as sending,
    coalesce(sum(deferred), 0)::bigint as deferred, coalesce(sum(over_limit), 0)::bigint as "overLimit",
    coalesce(sum(held), 0)::bigint as held, min(oldest) as "oldestEmailId", min(next_due) as "nextDueAt"
  from (
    select count(*) filter (where state = 'ready') as ready, count(*) filter (where state = 'sending') as sending,
      count(*) filter (where state = 'deferred') as deferred, count(*) filter (where state = 'over_limit') as over_limit,
      count(*) filter (where state = 'held') as held, min(email_id) as oldest, min(due_at) filter (where state = 'deferred') as next_due
    from spool
    where ($1::text is null or tenant_id = $1) and not test and state <> 'scheduled'
    group by recipient_domain
  ) as queues`

/** The sums of `queueByRecipientDomain` without its limit. */
export async function readQueueTotals(on: Queryable, tenantId: string | null): Promise<QueueTotals> {
  const none = { recipientDomains: 0, ready: 0, sending: 0, deferred: 0, overLimit: 0, held: 0, oldestEmailId: null, nextDueAt: null }
  return (await on.first(totals, [tenantId])) ?? none
}
