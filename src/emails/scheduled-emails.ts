/**
 * The records of scheduled emails: their time, their cancellation, and the time in their content. The spool decides whether an email can
 * still change.
 */
import { type Queryable, sql, type Tx } from '#db'
import type { Email } from './email-record.ts'

type EmailsOfMessage = readonly Pick<Email, 'tenantId' | 'contentId' | 'id'>[]

const scheduledAmong = sql<{ id: string }>`
  select email.id
  from unnest($1::text[], $2::text[]) as wanted (tenant_id, id),
    lateral (
      select id, scheduled_at
      from emails
      where emails.tenant_id = wanted.tenant_id and emails.id = wanted.id
      limit 1
    ) as email
  where email.scheduled_at is not null`

const setTime = sql`
  update emails
  set scheduled_at = $3
  where tenant_id = $1 and id = any($2)`

const setContent = sql`
  update contents
  set body = $3
  where tenant_id = $1 and id = $2`

const cancelThese = sql`
  update emails
  set status = 'hardfail', cancelled_at = $3
  where tenant_id = $1 and id = any($2) and status in ('pending', 'held')`

const dropCancellation = sql`
  update emails
  set cancelled_at = null
  where tenant_id = $1 and id = $2`

/** The ids of the given emails that were scheduled. */
export const findScheduled = async (
  on: Queryable,
  emails: readonly { tenantId: string; emailId: string }[],
): Promise<ReadonlySet<string>> => {
  if (emails.length === 0) return new Set()
  const rows = await on.rows(scheduledAmong, [emails.map((one) => one.tenantId), emails.map((one) => one.emailId)])
  return new Set(rows.map((row) => row.id))
}

/** Sets the time of all emails of a message, and replaces their content, which has the time in it. */
export async function setSchedule(tx: Tx, emails: EmailsOfMessage, at: Date, body: Buffer): Promise<void> {
  const [first] = emails
  if (!first) return
  await tx.run(setTime, [first.tenantId, emails.map((one) => one.id), at])
  await tx.run(setContent, [first.tenantId, first.contentId, body])
}

/** Marks all emails of a message as failed because they were cancelled; `at`: by the same clock as their other times. */
export const markCancelled = (tx: Tx, emails: EmailsOfMessage, at: Date): Promise<number> =>
  tx.run(cancelThese, [emails[0]?.tenantId, emails.map((one) => one.id), at])

/** A retry by hand ends the cancellation. */
export const forgetCancellation = (tx: Tx, { tenantId, id }: Pick<Email, 'tenantId' | 'id'>): Promise<number> =>
  tx.run(dropCancellation, [tenantId, id])
