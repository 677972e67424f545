/**
 * Emails that another program sent, with their attempts: records without content, events or spool. Their ids come from the caller, so that
 * an email that is there stays as it is and is counted once. Their counts are separate: lists contain them, usage does not.
 */
import { type Db, sql, type Tx, withPartitions } from '#db'
import { recordTables } from './email-tables.ts'

/** The final statuses. */
export type ImportedStatus = 'sent' | 'hardfail' | 'bounced'

export interface ImportedAttempt {
  status: 'sent' | 'softfail' | 'hardfail' | 'bounced'
  at: Date
  durationMs: number
  details: string
  output: string
  code: number | null
  enhanced: string | null
  secure: boolean
}

export interface ImportedEmail {
  /** Begins with the time of acceptance. */
  id: string
  recipient: string
  sender: string
  subject: string
  tag: string | null
  metadata: Readonly<Record<string, string>>
  messageId: string
  status: ImportedStatus
  acceptedAt: Date
  /** Oldest first. */
  attempts: readonly ImportedAttempt[]
}

const addThese = sql<{ added: number }>`
  with email as (
    insert into emails (tenant_id, id, content_id, recipient, sender, from_header, subject, tag, metadata, message_id, test, credential_id,
                        status, accepted_at)
    select $1, id, id, recipient, sender, sender, subject, tag, metadata, message_id, false, null, status, accepted_at
    from json_to_recordset($2::json) as given (id text, recipient text, sender text, subject text, tag text, metadata jsonb,
                                               message_id text, status text, accepted_at timestamptz)
    order by id
    on conflict (tenant_id, id) do nothing
    returning id, status, accepted_at
  ),
  attempt as (
    insert into attempts (tenant_id, email_id, number, status, at, duration_ms, details, output, code, enhanced, secure, outcome_unknown)
    select $1, email_id, number, given.status, at, duration_ms, details, output, code, enhanced, secure, false
    from json_to_recordset($3::json) as given (email_id text, number integer, status text, at timestamptz, duration_ms integer,
                                               details text, output text, code integer, enhanced text, secure boolean)
    join email on email.id = email_id
    order by email_id, number
  ),
  counted as (
    insert into imported_counts (tenant_id, span, starts_at, accepted, sent, hardfail, bounced)
    select scope, span, to_timestamp(floor(extract(epoch from accepted_at) / seconds) * seconds), count(*),
           count(*) filter (where status = 'sent'), count(*) filter (where status = 'hardfail'), count(*) filter (where status = 'bounced')
    from email, (values ($1), ('')) as of_tenant (scope), (values ('15min', 900), ('day', 86400)) as spans (span, seconds)
    group by 1, 2, 3
    order by 1, 2, 3
    on conflict (tenant_id, span, starts_at) do update
    set accepted = imported_counts.accepted + excluded.accepted, sent = imported_counts.sent + excluded.sent,
      hardfail = imported_counts.hardfail + excluded.hardfail, bounced = imported_counts.bounced + excluded.bounced
  )
  select count(*)::integer as added
  from email`

const deleteOlder = sql`
  delete from imported_counts
  where starts_at < $1`

const dayMs = 86_400_000

/** Deletes the counts of the days that ended at or before `beforeMs`, as retention drops their emails. */
export const deleteImportedCounts = (db: Db, beforeMs: number): Promise<number> =>
  db.run(deleteOlder, [new Date(Math.floor(beforeMs / dayMs) * dayMs)])

const emailRow = ({ id, recipient, sender, subject, tag, metadata, messageId, status, acceptedAt }: ImportedEmail) => ({
  id,
  recipient,
  sender,
  subject,
  tag,
  metadata,
  message_id: messageId,
  status,
  accepted_at: acceptedAt,
})

const attemptRows = ({ id, attempts }: ImportedEmail) =>
  attempts.map(({ durationMs, ...one }, index) => ({ ...one, email_id: id, number: index + 1, duration_ms: durationMs }))

/**
 * Adds the emails that are not there, and runs `also` in the same transaction. Returns how many were added. The partitions of their days
 * are made if they are missing.
 */
export function addImportedEmails(
  db: Db,
  tenantId: string,
  emails: readonly ImportedEmail[],
  also: (tx: Tx) => Promise<unknown>,
): Promise<number> {
  const rows = JSON.stringify(emails.map(emailRow))
  const attempts = JSON.stringify(emails.flatMap(attemptRows))
  const add = () =>
    db.transaction(async (tx) => {
      const added = emails.length === 0 ? 0 : ((await tx.first(addThese, [tenantId, rows, attempts]))?.added ?? 0)
      await also(tx)
      return added
    })
  return withPartitions(db, add, [{ tables: recordTables, timesMs: emails.map(({ acceptedAt }) => acceptedAt.getTime()) }])
}
