/** Emails that have waited in the queue for too long: found without a lock, at a cost that the length of the queue does not change, and then taken. */
import { emailIdPrefix } from '#base'
import { type Queryable, sql, type Tx } from '#db'
import { type RemovedRecipient, removedColumns } from './queue-admin.ts'
import { allowOnlyKeys, hasKeyOf, stateByKey } from './row-guards.ts'

/** By id and schedule, not by due time: a pause or a send limit may put off an email again and again. A manual retry may be of an old email. */
const waitsTooLong = sql.part`
  spool.email_id < $1 and (scheduled_at is null or scheduled_at < $2) and ${stateByKey} in ('ready', 'deferred', 'over_limit')
  and not manual_retry and hold_reason is distinct from 'released'
  and not (state = 'deferred' and attempt_count > 0 and delay_reason is null)`

export interface QueuedKey {
  tenantId: string
  emailId: string
}

/**
 * A loose index scan over the tenants, and of each the oldest part of its queue: ids begin with the time of acceptance, so that the primary
 * key finds the emails, and the cost does not depend on the length of the queue.
 */
const findWaitedTooLong = sql<QueuedKey>`
  with recursive tenant (id) as (
    select min(tenant_id)
    from spool
    where tenant_id >= $3
    union all
    select (
      select min(tenant_id)
      from spool
      where tenant_id > tenant.id
    )
    from tenant
    where id is not null
  )
  select tenant.id as "tenantId", old.email_id as "emailId"
  from tenant
  cross join lateral (
    select email_id
    from spool
    where spool.tenant_id = tenant.id and spool.email_id > case tenant.id when $3 then $4 else '' end and ${waitsTooLong}
    order by email_id
    limit $5
  ) as old
  limit $5`

const takeWaitedTooLong = sql<RemovedRecipient & { recipient: string }>`
  with waiting as (
    select spool.tenant_id, spool.email_id
    from unnest($3::text[], $4::text[]) as found (tenant_id, email_id)
    join spool on ${hasKeyOf(sql.part`found`)}
    where ${waitsTooLong}
    for update of spool skip locked
  ),
  taken as (
    delete from spool
    using waiting
    where ${hasKeyOf(sql.part`waiting`)} and ${stateByKey} in ('ready', 'deferred', 'over_limit')
    returning spool.*
  )
  select ${removedColumns}, recipient
  from taken as spool`

/** Emails that wait and were accepted, or scheduled for a time, before `beforeMs`, after this one in the order of tenants and ids. */
export const listWaitingSince = (on: Queryable, beforeMs: number, after: QueuedKey | undefined, most: number): Promise<QueuedKey[]> =>
  on.rows(findWaitedTooLong, [emailIdPrefix(beforeMs), new Date(beforeMs), after?.tenantId ?? '', after?.emailId ?? '', most])

/** Removes those of these emails that still wait since before `beforeMs` from the spool; the caller makes them hardfail. */
export async function takeWaitingSince(
  tx: Tx,
  beforeMs: number,
  found: readonly QueuedKey[],
): Promise<(RemovedRecipient & { recipient: string })[]> {
  const keys = [found.map(({ tenantId }) => tenantId), found.map(({ emailId }) => emailId)]
  await allowOnlyKeys(tx)
  return tx.rows(takeWaitedTooLong, [emailIdPrefix(beforeMs), new Date(beforeMs), ...keys])
}
