/** Takes a person out of the records of emails, and leaves what is counted: ids, times and states. */
import { type Db, type Queryable, sql } from '#db'

export interface ErasedEmail {
  tenantId: string
  id: string
  contentId: string
}

/** What stands where an erased address stood. */
export const nobody = 'erased@erased.invalid'

/** Its recipient was erased: no text that could name them may be kept for it again. */
export const isErased = ({ recipient }: { recipient: string }) => recipient === nobody

const blankEmails = sql<ErasedEmail>`
  update emails
  set recipient = $4, subject = '', tag = null, metadata = null
  where (tenant_id, id) in (
    select tenant_id, id
    from emails
    where lower(recipient) = $1 and ($2::text is null or tenant_id = $2) and status not in ('pending', 'softfail', 'held')
    limit $3
  )
  returning tenant_id as "tenantId", id, content_id as "contentId"`

const dropContents = sql`
  delete from contents
  using unnest($1::text[], $2::text[]) as erased (tenant_id, id)
  where contents.tenant_id = erased.tenant_id and contents.id = erased.id`

/** Recipients of one message share a conversation, so that of the others names this one too. */
const blankAttempts = sql`
  update attempts
  set conversation = null,
    details = case when attempts.email_id = any($2) then '' else details end,
    output = case when attempts.email_id = any($2) then '' else output end
  from emails
  where emails.tenant_id = any($1) and emails.content_id = any($3) and attempts.tenant_id = emails.tenant_id
    and attempts.email_id = emails.id`

/** Blanks up to `most` emails to this address (lower case) that are final, and returns them. */
export const eraseEmails = (db: Db, address: string, tenantId: string | null, most: number): Promise<ErasedEmail[]> =>
  db.rows(blankEmails, [address, tenantId, most, nobody])

/** Returns how many contents there were. */
export const eraseContents = (on: Queryable, emails: readonly ErasedEmail[]): Promise<number> =>
  on.run(dropContents, [emails.map((one) => one.tenantId), emails.map((one) => one.contentId)])

export const eraseFromConversations = (on: Queryable, emails: readonly ErasedEmail[]): Promise<number> =>
  on.run(blankAttempts, [[...new Set(emails.map((one) => one.tenantId))], emails.map((one) => one.id), emails.map((one) => one.contentId)])
