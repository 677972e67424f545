/** Contents of one tenant that its own retention no longer allows, and the counts of the rows that are left of its emails. */
import { emailIdPrefix, emailIdTimeMs } from '#base'
import { type Queryable, sql } from '#db'
import { erasedAddress } from './erase.ts'
import { testInboxMs } from './test-inbox.ts'

/** Contents of live mail, and of test mail that the inbox no longer shows. The id of a content is that of its first email. */
const oldContents = sql<{ contentId: string }>`
  select contents.id as "contentId"
  from contents
  where tenant_id = $1 and id > $2 and id < $3
    and not exists (
      select from emails
      where emails.tenant_id = contents.tenant_id and emails.id = contents.id and emails.test and emails.id >= $4)
  order by id
  limit $5`

/** Ids after `after` of contents that were accepted before `beforeMs`, in order; a queued email may still need them. */
export async function listOldContents(
  on: Queryable,
  tenantId: string,
  { after, beforeMs, nowMs }: { after: string; beforeMs: number; nowMs: number },
  most: number,
): Promise<string[]> {
  const rows = await on.rows(oldContents, [tenantId, after, emailIdPrefix(beforeMs), emailIdPrefix(nowMs - testInboxMs), most])
  return rows.map(({ contentId }) => contentId)
}

interface Left {
  rows: number
  oldest: Date | null
}

const contentsLeft = sql<{ rows: number; first: string | null; ofTestMail: number }>`
  select count(*)::integer as rows, min(contents.id) as first, count(*) filter (where emails.test)::integer as "ofTestMail"
  from contents
  left join emails on emails.tenant_id = contents.tenant_id and emails.id = contents.id
  where contents.tenant_id = $1`

const emailsLeft = sql<Left & { erased: number }>`
  select count(*)::integer as rows, min(accepted_at) as oldest, count(*) filter (where recipient = $2)::integer as erased
  from emails
  where tenant_id = $1`

const attemptsLeft = sql<Left>`
  select count(*)::integer as rows, min(at) as oldest
  from attempts
  where tenant_id = $1`

const none: Left = { rows: 0, oldest: null }

/** The rows that are left of a tenant's emails. */
export async function countEmailsLeft(on: Queryable, tenantId: string) {
  const { first = null, rows = 0, ofTestMail = 0 } = (await on.first(contentsLeft, [tenantId])) ?? {}
  const oldestMs = first === null ? undefined : emailIdTimeMs(first)
  return {
    contents: { rows, oldest: oldestMs === undefined ? null : new Date(oldestMs), ofTestMail },
    emails: (await on.first(emailsLeft, [tenantId, erasedAddress])) ?? { ...none, erased: 0 },
    attempts: (await on.first(attemptsLeft, [tenantId])) ?? none,
  }
}
