/** Held emails, among them those that have expired, and the contents that queued emails still need. */
import { emailIdTimeMs } from '#base'
import { type Queryable, sql, type Tx } from '#db'
import { rowClockOffset } from './test-clocks.ts'

interface ExpiredHold {
  tenantId: string
  emailId: string
  recipient: string
  attempts: number
  clockOffsetMs: number
}

const takeExpired = sql<ExpiredHold>`
  with expired as materialized (
    select tenant_id, email_id
    from spool
    where state = 'held' and due_at <= $1 and ($3::text is null or (tenant_id = $3 and test))
    limit $2
  )
  delete from spool
  using expired
  where spool.tenant_id = expired.tenant_id and spool.email_id = expired.email_id and state = 'held'
  returning spool.tenant_id as "tenantId", spool.email_id as "emailId", recipient, attempt_count as "attempts", ${rowClockOffset} as "clockOffsetMs"`

export interface HeldEmail {
  shard: number
  dueAt: Date
  emailId: string
  tenantId: string
  holdReason: string
}

/** In the order of the index of due times, which also finds the due time: no deferred email that is due earlier is read. */
const heldAfter = sql<HeldEmail>`
  select shard, due_at as "dueAt", email_id as "emailId", tenant_id as "tenantId", hold_reason as "holdReason"
  from spool
  where state = 'held' and due_at > $1 and (shard, due_at, email_id) > ($2, $3, $4)
  order by shard, due_at, email_id
  limit $5`

/** Removes expired held emails from the spool; the caller makes them hardfail in the same transaction. `testMailOf`: only test mail of this tenant. */
export function takeExpiredHolds(tx: Tx, nowMs: number, most: number, testMailOf?: string): Promise<ExpiredHold[]> {
  return tx.rows(takeExpired, [new Date(nowMs), most, testMailOf ?? null])
}

/** Held emails that are due after `dueMs`, in order, after this one. */
export const listHeld = (on: Queryable, dueMs: number, after: HeldEmail | undefined, most: number): Promise<HeldEmail[]> =>
  on.rows(heldAfter, [new Date(dueMs), after?.shard ?? 0, after?.dueAt ?? new Date(dueMs), after?.emailId ?? '', most])

const queuedContents = sql<{ contentId: string }>`
  select distinct content_id as "contentId"
  from spool
  where tenant_id = any($1) and content_id = any($2)`

const queuedContentsOfTenant = sql<{ contents: number }>`
  select count(distinct content_id)::integer as contents
  from spool
  where tenant_id = $1`

const oldestQueued = sql<{ oldest: string | null }>`
  select least(min(email_id), min(content_id)) as oldest
  from spool`

/** Returns those of the given contents that a recipient in the spool still needs. */
export async function contentsStillQueued(
  on: Queryable,
  emails: readonly { tenantId: string; contentId: string }[],
): Promise<ReadonlySet<string>> {
  const rows = await on.rows(queuedContents, [[...new Set(emails.map((one) => one.tenantId))], emails.map((one) => one.contentId)])
  return new Set(rows.map((row) => row.contentId))
}

/** The number of contents that recipients in the spool still need. */
export const countQueuedContents = async (on: Queryable, tenantId: string): Promise<number> =>
  (await on.first(queuedContentsOfTenant, [tenantId]))?.contents ?? 0

/** Acceptance time (ms) of the oldest email or content in the spool, if there is any. */
export async function oldestQueuedMs(on: Queryable): Promise<number | undefined> {
  const oldest = (await on.first(oldestQueued))?.oldest
  return oldest == null ? undefined : emailIdTimeMs(oldest)
}

const putRetry = sql`
  insert into spool (tenant_id, email_id, content_id, shard, recipient, recipient_domain, state, manual_retry, test, size_octets)
  values ($1, $2, $3, $4, $5, $6, 'ready', true, $7, $8)
  on conflict (tenant_id, email_id) do update
  set state = 'ready', manual_retry = true, attempt_count = 0, due_at = null, hold_reason = null
  where spool.state in ('deferred', 'held', 'ready')`

/**
 * Returns an email to the queue, ready now, marked as a manual retry; false while it is being sent, is over the send limit or scheduled.
 * `sizeOctets`: of its stored content, so that large contents are not all loaded with a claim.
 */
export async function queueRetry(
  tx: Tx,
  email: { tenantId: string; id: string; contentId: string; recipient: string; test: boolean; sizeOctets: number },
  shard: number,
): Promise<boolean> {
  const { tenantId, id, contentId, recipient, test, sizeOctets } = email
  const recipientDomain = recipient.slice(recipient.lastIndexOf('@') + 1)
  return (await tx.run(putRetry, [tenantId, id, contentId, shard, recipient, recipientDomain, test, sizeOctets])) === 1
}
