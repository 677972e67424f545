/** The live emails that wait for some recipient domains, a page at a time, and how many there are. */
import { type Queryable, sql } from '#db'
import type { Queued } from './queue-admin.ts'

export interface WaitingEmail extends Pick<Queued, 'state' | 'attempts' | 'dueAt' | 'holdReason' | 'delayReason'> {
  tenantId: string
  emailId: string
  recipient: string
}

const waiting = sql.part`
  from spool
  where recipient_domain = any($1) and not test and ($2::text is null or tenant_id = $2)`

const pageOfWaiting = sql<WaitingEmail>`
  select tenant_id as "tenantId", email_id as "emailId", recipient, state, attempt_count as attempts, due_at as "dueAt",
    hold_reason as "holdReason", delay_reason as "delayReason"
  ${waiting}
  order by email_id
  limit $3 offset $4`

const countWaiting = sql<{ total: number }>`
  select count(*) as total
  ${waiting}`

/** The longest waiting first. Reads the whole queue. */
export async function listWaiting(
  on: Queryable,
  { recipientDomains, tenantId }: { recipientDomains: readonly string[]; tenantId: string | null },
  page: { number: number; size: number },
): Promise<{ emails: WaitingEmail[]; total: number }> {
  const place = [recipientDomains, tenantId]
  const [counted, emails] = await Promise.all([
    on.first(countWaiting, place),
    on.rows(pageOfWaiting, [...place, page.size, (page.number - 1) * page.size]),
  ])
  return { emails, total: counted?.total ?? 0 }
}
