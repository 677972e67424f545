/**
 * Records that a backup was restored. Mail queued in it may have been delivered since, so it stays held until the operator resumes. The
 * record is written with the restored rows, so that no process can see one without the other.
 */
import { type Queryable, sql, type Tx } from '#db'
import type { RemovedRecipient } from './queue-admin.ts'
import { stateByKey } from './row-guards.ts'
import { rowClockOffset } from './test-clocks.ts'

export interface Restore {
  id: number
  backupMadeAt: Date
  at: Date
  /** When the whole queue was held; null: not yet, and no mail may be sent. */
  heldAt: Date | null
}

const addRestore = sql`
  insert into restores (backup_made_at, at)
  values ($1, $2)`

const notResumed = sql<Restore>`
  select id, backup_made_at as "backupMadeAt", at, held_at as "heldAt"
  from restores
  where resumed_at is null
  order by id desc
  limit 1`

const markHeld = sql`
  update restores
  set held_at = $1
  where held_at is null`

const markResumed = sql`
  update restores
  set resumed_at = $1
  where resumed_at is null`

const holdSome = sql<RemovedRecipient>`
  with chosen as (
    select tenant_id, email_id, hold_reason, manual_retry, attempt_count
    from spool
    where (state <> 'held' or hold_reason is distinct from 'restored') and (state <> 'scheduled' or scheduled_at <= $2)
    limit $1
    for update
  )
  update spool
  set state = 'held', due_at = null, hold_reason = 'restored'
  from chosen
  where spool.tenant_id = chosen.tenant_id and spool.email_id = chosen.email_id
  returning spool.tenant_id as "tenantId", spool.email_id as "emailId", chosen.hold_reason as "holdReason", chosen.manual_retry as "manualRetry", chosen.attempt_count as "attempts",
    ${rowClockOffset} as "clockOffsetMs"`

const releaseSome = sql<{ tenantId: string; emailId: string }>`
  with chosen as (
    select tenant_id, email_id
    from spool
    where state = 'held' and hold_reason = 'restored'
    order by email_id
    limit $1
    for update
  )
  update spool
  set state = 'ready', hold_reason = 'released'
  where (tenant_id, email_id) in (select tenant_id, email_id from chosen) and ${stateByKey} = 'held'
  returning tenant_id as "tenantId", email_id as "emailId"`

const countRestored = sql<{ emails: number }>`
  select count(*) as emails
  from spool
  where state = 'held' and hold_reason = 'restored'`

/** Must be called in the transaction that restores the rows. */
export const recordRestore = (on: Queryable, backupMadeAt: Date, nowMs: number): Promise<number> =>
  on.run(addRestore, [backupMadeAt, new Date(nowMs)])

/** The restore that was not resumed yet, if any. Until then no webhook is sent. */
export const findRestore = (on: Queryable): Promise<Restore | undefined> => on.first(notResumed)

/**
 * Holds `most` queued recipients in any state, including those held for another reason, which is decided again at their release. Scheduled
 * emails that were not due until now cannot have been delivered, and stay scheduled.
 */
export const holdRestored = (tx: Tx, most: number, nowMs: number): Promise<RemovedRecipient[]> => tx.rows(holdSome, [most, new Date(nowMs)])

/** Releases `most` recipients in the order of acceptance; the caller makes their emails pending. */
export const releaseRestored = (tx: Tx, most: number): Promise<{ tenantId: string; emailId: string }[]> => tx.rows(releaseSome, [most])

/** Number of emails held by a restore. */
export const countHeldByRestore = async (on: Queryable): Promise<number> => (await on.first(countRestored))?.emails ?? 0

export const recordHeld = (tx: Tx, nowMs: number): Promise<number> => tx.run(markHeld, [new Date(nowMs)])

export const recordResumed = (tx: Tx, nowMs: number): Promise<number> => tx.run(markResumed, [new Date(nowMs)])
