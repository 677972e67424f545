/**
 * The inbox for test mail: emails sent with a test key that their simulated server accepted, until they are cleared or a week has passed.
 * Sending writes no row for it; an index of test emails finds them.
 */
import { emailIdPrefix, wrongField } from '#base'
import { type Db, searchInSnapshot, sql, type Tx } from '#db'
import { type Email, emailColumns } from './email-record.ts'
import { erasedAddress } from './erase.ts'

/** How long test mail stays in the inbox, from its acceptance. */
export const testInboxMs = 7 * 86_400_000

export interface ReceivedEmail extends Email {
  /** By the tenant's test clock. */
  receivedAt: Date
}

export interface InboxFilter {
  /** null: all tenants. */
  tenantId: string | null
  recipient?: string | undefined
  /** Part of the recipient, the sender or the subject, case-insensitive. */
  search?: string | undefined
  /** Accepted at or after this time; or this email and those accepted after it. */
  since?: Date | string | undefined
}

/** Each with its last delivery that was not cleared. */
const received = sql.part`
  emails
  cross join lateral (
    select attempts.id as attempt, at
    from attempts
    where attempts.tenant_id = emails.tenant_id and attempts.email_id = emails.id and attempts.status = 'sent'
      and attempts.id > coalesce((select last_attempt from test_inbox_clearings where test_inbox_clearings.tenant_id = emails.tenant_id), 0)
    order by attempts.id desc
    limit 1
  ) as delivery
  where test and ($1::text is null or emails.tenant_id = $1) and emails.id >= $2 and ($3::text is null or lower(recipient) = lower($3))
    and recipient <> $4
    and not exists (
      select from test_inbox_deletions
      where test_inbox_deletions.tenant_id = emails.tenant_id and test_inbox_deletions.email_id = emails.id
    )
    and ($5::text is null or strpos(lower(concat_ws(E'\\n', recipient, from_header, subject)), lower($5)) > 0)`

const inboxPage = sql<ReceivedEmail>`
  select ${emailColumns}, delivery.at as "receivedAt"
  from ${received}
  order by delivery.attempt desc
  limit $6 offset $7`

const inboxTotal = sql<{ total: number }>`
  select count(*) as total
  from ${received}`

const clear = sql<{ tenantId: string; cleared: number }>`
  with cleared as (
    select tenant_id, max(delivery.attempt) as last_attempt, count(*) as cleared
    from ${received}
    group by tenant_id
  ),
  marked as (
    insert into test_inbox_clearings (tenant_id, last_attempt)
    select tenant_id, last_attempt
    from cleared
    on conflict (tenant_id) do update
    set last_attempt = greatest(test_inbox_clearings.last_attempt, excluded.last_attempt)
  )
  select tenant_id as "tenantId", cleared
  from cleared`

/** Rows of emails that the inbox no longer keeps leave with the next deletion. */
const deleteOne = sql<{ emailId: string }>`
  with expired as (
    delete from test_inbox_deletions
    where ($1::text is null or tenant_id = $1) and email_id < $2
  )
  insert into test_inbox_deletions (tenant_id, email_id)
  select emails.tenant_id, emails.id
  from ${received} and emails.id = $6
  on conflict do nothing
  returning email_id as "emailId"`

const dropMarks = sql`
  with deletions as (
    delete from test_inbox_deletions
    where tenant_id = $1
  )
  delete from test_inbox_clearings
  where tenant_id = $1`

const newestReceived = sql<{ attempt: number }>`
  select delivery.attempt
  from ${received}
  order by delivery.attempt desc
  limit 1`

const beginning = (since: Date | string) => (typeof since === 'string' ? since : emailIdPrefix(since.getTime()))

/** In the order of ids: the later of the requested start and the start of retention. */
function fromId(since: Date | string | undefined, nowMs: number): string {
  const kept = emailIdPrefix(nowMs - testInboxMs)
  return since !== undefined && beginning(since) > kept ? beginning(since) : kept
}

const filterValues = ({ tenantId, recipient, search, since }: InboxFilter, nowMs: number) => [
  tenantId,
  fromId(since, nowMs),
  recipient ?? null,
  erasedAddress,
  search ?? null,
]

const tooLong = () =>
  wrongField('since', 'is needed: the inbox has too many emails', 'validation_error', 'Set since to a later time, or clear the inbox')

/** A page of the received emails, newest first, and their total number. Refuses a list that takes too long. */
export function listInbox(
  db: Db,
  filter: InboxFilter,
  page: { number: number; size: number },
  nowMs: number,
): Promise<{ emails: ReceivedEmail[]; total: number }> {
  const values = filterValues(filter, nowMs)
  return searchInSnapshot(db, tooLong, async (tx) => {
    const total = (await tx.first(inboxTotal, values))?.total ?? 0
    if (total === 0) return { emails: [], total }
    return { emails: await tx.rows(inboxPage, [...values, page.size, (page.number - 1) * page.size]), total }
  })
}

/** Grows with each received email; 0 before the first. */
export const newestInInbox = async (db: Db, filter: InboxFilter, nowMs: number): Promise<number> =>
  (await db.first(newestReceived, filterValues(filter, nowMs)))?.attempt ?? 0

/** Hides the current emails from the inbox; returns how many. The emails themselves stay. */
export async function clearInbox(db: Db, tenantId: string | null, nowMs: number): Promise<number> {
  const rows = await db.rows(clear, filterValues({ tenantId }, nowMs))
  return rows.reduce((sum, row) => sum + row.cleared, 0)
}

/** Hides one received email from the inbox; false if the inbox does not have it. The email itself stays. */
export const deleteFromInbox = async (db: Db, tenantId: string | null, emailId: string, nowMs: number): Promise<boolean> =>
  (await db.first(deleteOne, [...filterValues({ tenantId }, nowMs), emailId])) !== undefined

export const removeInboxOfTenant = (tx: Tx, tenantId: string): Promise<number> => tx.run(dropMarks, [tenantId])
