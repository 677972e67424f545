/**
 * Scheduled emails: rows of a state of their own, in an index that neither the claim nor the promotion of deferred mail reads. When they are
 * due, they take send-limit slots as emails over the limit do, and become ready. Until a claim has taken one, it can be cancelled or
 * rescheduled; the row's lock decides between the two.
 */
import { type Db, sql, type Tx } from '#db'
import { addWaiting, type SendLimits } from '#limits'
import { type Claimed, statusBefore } from './claim.ts'
import { releaseWaiting } from './over-limit-emails.ts'
import { allowOnlyKeys, hasKeyOf, stateByKey } from './row-guards.ts'

/** Emails of one transaction, and transactions of one call. */
const maxAtOnce = 2000
const maxTransactions = 25

const firstScheduled = sql<{ at: Date }>`
  select scheduled_at as at
  from spool
  where state = 'scheduled'
  order by scheduled_at
  limit 1`

/** Skips rows that are being cancelled or rescheduled. */
const makeDue = sql<{ test: boolean }>`
  with due as (
    select tenant_id, email_id
    from spool
    where state = 'scheduled' and scheduled_at <= $1 and ($3::text is null or (tenant_id = $3 and test))
    order by scheduled_at
    limit $2
    for update skip locked
  )
  update spool
  set state = 'over_limit'
  from due
  where ${hasKeyOf(sql.part`due`)} and ${stateByKey} = 'scheduled'
  returning spool.test`

/**
 * Moves due scheduled emails behind the send limit, and releases as many as there is capacity for, in order of acceptance. `released`: how many
 * were due, at most 50,000. `nextMs`: the time of the next scheduled email; infinite without one, past if the email is locked now or if more were
 * due. `dueMs`: they are due by then; the hour of the send limit is that of `nowMs`, as in acceptance. `testMailOf`: only test mail of this tenant.
 */
export async function releaseScheduled(
  db: Db,
  limits: SendLimits,
  nowMs: number,
  { dueMs = nowMs, testMailOf }: { dueMs?: number; testMailOf?: string } = {},
): Promise<{ released: number; nextMs: number }> {
  for (let released = 0, nth = 0; ; nth++) {
    const nextMs = (await db.first(firstScheduled))?.at.getTime() ?? Number.POSITIVE_INFINITY
    if (nextMs > dueMs || nth === maxTransactions) return { released, nextMs }
    const moved = await db.transaction((tx) => moveDue(tx, limits, { nowMs, dueMs, testMailOf }))
    if (moved === 0) return { released, nextMs }
    // After the commit: until then the counters are locked, which every acceptance needs.
    await releaseWaiting(db, limits, nowMs)
    released += moved
  }
}

async function moveDue(
  tx: Tx,
  limits: SendLimits,
  { nowMs, dueMs, testMailOf }: { nowMs: number; dueMs: number; testMailOf: string | undefined },
): Promise<number> {
  await allowOnlyKeys(tx)
  const due = await tx.rows(makeDue, [new Date(dueMs), maxAtOnce, testMailOf ?? null])
  if (due.length === 0) return 0
  await addWaiting(tx, { live: due.filter((one) => !one.test).length, test: due.filter((one) => one.test).length }, limits, nowMs)
  return due.length
}

/** An email that waits: not claimed, no attempt made, not retried by hand. */
export interface UnsentEmail {
  emailId: string
  /** By its status: an email that was held stays so until it is released or an attempt is made, although its row may be ready. */
  isHeld: boolean
}

const lockWaiting = sql<Pick<Claimed, 'emailId' | 'holdReason' | 'manualRetry' | 'attempts'>>`
  select email_id as "emailId", hold_reason as "holdReason", manual_retry as "manualRetry", attempt_count as "attempts"
  from spool
  where tenant_id = $1 and email_id = any($2) and ${stateByKey} <> 'sending' and attempt_count = 0 and not manual_retry
  order by email_id
  for update`

/** Locks those of these emails that have not left, until the transaction ends: no claim takes them meanwhile. */
export async function lockUnsent(tx: Tx, tenantId: string, emailIds: readonly string[]): Promise<UnsentEmail[]> {
  const rows = await tx.rows(lockWaiting, [tenantId, emailIds])
  return rows.map((row) => ({ emailId: row.emailId, isHeld: statusBefore(row) === 'held' }))
}

const removeThese = sql`
  delete from spool
  where tenant_id = $1 and email_id = any($2)`

/** Removes locked emails; the caller makes them hardfail. */
export const removeLocked = (tx: Tx, tenantId: string, emailIds: readonly string[]): Promise<number> =>
  tx.run(removeThese, [tenantId, emailIds])

const scheduleThese = sql`
  update spool
  set state = 'scheduled', scheduled_at = $3, due_at = null, delay_reason = null
  where tenant_id = $1 and email_id = any($2)`

/** Gives locked emails another time, which is real. */
export const scheduleLocked = (tx: Tx, tenantId: string, emailIds: readonly string[], at: Date): Promise<number> =>
  tx.run(scheduleThese, [tenantId, emailIds, at])
