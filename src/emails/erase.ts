/**
 * Erases a person from the email records and keeps the counted data: ids, times and statuses.
 */
import { isHashedAddress } from '#base'
import { type Queryable, sql, type Tx } from '#db'

export interface ErasedContent {
  tenantId: string
  contentId: string
}

export interface ErasedEmail extends ErasedContent {
  id: string
}

/** Replaces an erased address. */
export const erasedAddress = 'erased@erased.invalid'

/** The recipient was erased or hashed: no text that could name the person may be stored for the email again. */
export const isErased = ({ recipient }: { recipient: string }) => recipient === erasedAddress || isHashedAddress(recipient)

const blankEmails = sql<ErasedEmail>`
  update emails
  set recipient = $4, subject = '', tag = null, metadata = null
  where (tenant_id, id) in (
    select tenant_id, id
    from emails
    where lower(recipient) = $1 and recipient <> $4 and ($2::text is null or tenant_id = $2) and status not in ('pending', 'softfail', 'held')
    limit $3
  )
  returning tenant_id as "tenantId", id, content_id as "contentId"`

const emailsLeft = sql<{ emails: number }>`
  select count(*) as emails
  from emails
  where lower(recipient) = $1 and recipient <> $3 and ($2::text is null or tenant_id = $2)`

/** The person is the author of a copy, and its recipient is another one. */
const blankCopies = sql<ErasedEmail>`
  update emails
  set recipient = $3, sender = $3, from_header = $3, subject = '', tag = null, metadata = null
  from unnest($1::text[], $2::text[]) as copies (tenant_id, id)
  where emails.tenant_id = copies.tenant_id and emails.id = copies.id
  returning emails.tenant_id as "tenantId", emails.id, emails.content_id as "contentId"`

/** Contents that still exist. */
const contentsOfErased = sql<ErasedContent>`
  select distinct tenant_id as "tenantId", content_id as "contentId"
  from emails
  where lower(recipient) = $1 and ($2::text is null or tenant_id = $2) and (tenant_id, content_id) > ($3, $4)
    and exists (select from contents where contents.tenant_id = emails.tenant_id and contents.id = emails.content_id)
  order by "tenantId", "contentId"
  limit $5`

const contentsForDeletion = sql<ErasedContent>`
  select contents.tenant_id as "tenantId", contents.id as "contentId"
  from contents
  join unnest($1::text[], $2::text[]) as unneeded (tenant_id, id) on unneeded.tenant_id = contents.tenant_id and unneeded.id = contents.id
  order by contents.tenant_id, contents.id
  for update of contents`

const dropContents = sql`
  delete from contents
  using unnest($1::text[], $2::text[]) as erased (tenant_id, id)
  where contents.tenant_id = erased.tenant_id and contents.id = erased.id`

/** Recipients of one message share a conversation, so the other recipients' attempts name this one too. */
const blankAttempts = sql`
  update attempts
  set conversation = null,
    details = case when attempts.email_id = any($2) then '' else details end,
    output = case when attempts.email_id = any($2) then '' else output end
  from emails
  where emails.tenant_id = any($1) and emails.content_id = any($3) and attempts.tenant_id = emails.tenant_id
    and attempts.email_id = emails.id`

/** Blanks up to `maximum` final emails to this address (lower case) and returns them; the address no longer finds them. */
export const eraseEmails = (tx: Tx, address: string, tenantId: string | null, maximum: number): Promise<ErasedEmail[]> =>
  tx.rows(blankEmails, [address, tenantId, maximum, erasedAddress])

/** The number of emails to this address (lower case), in any status: one may have become final since `eraseEmails`. */
export const countNotErased = async (on: Queryable, address: string, tenantId: string | null): Promise<number> =>
  (await on.first(emailsLeft, [address, tenantId, erasedAddress]))?.emails ?? 0

/** Blanks forwarded copies of a person's mail, which are final, and returns them. */
export const eraseCopies = (tx: Tx, copies: readonly { tenantId: string; id: string }[]): Promise<ErasedEmail[]> =>
  tx.rows(blankCopies, [copies.map((one) => one.tenantId), copies.map((one) => one.id), erasedAddress])

/** Contents that were sent to any erased recipient, in order after `after`. */
export const listErasedContents = (
  on: Queryable,
  tenantId: string | null,
  after: ErasedContent | undefined,
  maximum: number,
): Promise<ErasedContent[]> => on.rows(contentsOfErased, [erasedAddress, tenantId, after?.tenantId ?? '', after?.contentId ?? '', maximum])

/** Waits for retries that use these contents; later ones find them deleted. Returns those that exist. */
export const lockContents = (tx: Tx, contents: readonly ErasedContent[]): Promise<ErasedContent[]> =>
  tx.rows(contentsForDeletion, [contents.map((one) => one.tenantId), contents.map((one) => one.contentId)])

/** Returns how many there were. */
export const eraseContents = (on: Queryable, contents: readonly ErasedContent[]): Promise<number> =>
  on.run(dropContents, [contents.map((one) => one.tenantId), contents.map((one) => one.contentId)])

export const eraseFromConversations = (on: Queryable, emails: readonly ErasedEmail[]): Promise<number> =>
  on.run(blankAttempts, [[...new Set(emails.map((one) => one.tenantId))], emails.map((one) => one.id), emails.map((one) => one.contentId)])
