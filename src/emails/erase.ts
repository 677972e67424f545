/**
 * Erases a person from the email records and keeps the counted data: ids, times and statuses.
 */
import { emailIdTimeMs, isHashedAddress } from '#base'
import { type Queryable, sql, type Tx } from '#db'
import { dayMs } from './email-counts.ts'

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

const isFinal = sql.part`status not in ('pending', 'softfail', 'held')`

const finalEmailsTo = sql<ErasedEmail>`
  select tenant_id as "tenantId", id, content_id as "contentId"
  from emails
  where lower(recipient) = $1 and recipient <> $4 and ($2::text is null or tenant_id = $2) and ${isFinal}
  limit $3`

/** The first and the last id leave out the other partitions. */
export const these = sql.part`tenant_id = $1 and id between $2 and $3 and id = any($4)`

/** A retry that committed meanwhile keeps its email as it is. */
const blankEmails = sql<ErasedEmail>`
  update emails
  set recipient = $6, subject = '', tag = null, metadata = null
  where ${these} and lower(recipient) = $5 and ${isFinal}
  returning tenant_id as "tenantId", id, content_id as "contentId"`

const emailsLeft = sql<{ emails: number }>`
  select count(*) as emails
  from emails
  where lower(recipient) = $1 and recipient <> $3 and ($2::text is null or tenant_id = $2)`

/** The person is the author of a copy, and its recipient is another one. */
const blankCopies = sql<ErasedEmail>`
  update emails
  set recipient = $5, sender = $5, from_header = $5, subject = '', tag = null, metadata = null
  where ${these}
  returning tenant_id as "tenantId", id, content_id as "contentId"`

/** Contents that still exist. */
const contentsOfErased = sql<ErasedContent>`
  select distinct tenant_id as "tenantId", content_id as "contentId"
  from emails
  where lower(recipient) = $1 and ($2::text is null or tenant_id = $2) and (tenant_id, content_id) > ($3, $4)
    and exists (select from contents where contents.tenant_id = emails.tenant_id and contents.id = emails.content_id)
  order by "tenantId", "contentId"
  limit $5`

const contentsForDeletion = sql<ErasedContent>`
  select tenant_id as "tenantId", id as "contentId"
  from contents
  where ${these}
  order by id
  for update`

const dropContents = sql`
  delete from contents
  where ${these}`

/** The ids of a message's emails begin with the same time as that of its content. The order makes each message a search by id of its own. */
const emailsOfMessages = sql<{ id: string }>`
  select email.id
  from unnest($2::text[]) as content (id),
    lateral (
      select id
      from emails
      where emails.tenant_id = $1 and emails.content_id = content.id and emails.id >= left(content.id, 8)
        and emails.id < left(content.id, 8) || '~'
      order by emails.id
    ) as email`

const blankAttempts = sql`
  update attempts
  set conversation = null,
    details = case when email_id = any($5) then '' else details end,
    output = case when email_id = any($5) then '' else output end
  where tenant_id = $1 and email_id between $2 and $3 and email_id = any($4)`

/** Up to `maximum` final emails to this address (lower case); `eraseEmails` removes them from this list. */
export const listEmailsTo = (on: Queryable, address: string, tenantId: string | null, maximum: number): Promise<ErasedEmail[]> =>
  on.rows(finalEmailsTo, [address, tenantId, maximum, erasedAddress])

/**
 * Groups emails by tenant and day. A statement changes one group: for many partitions at once, the database might read them whole, and a
 * transaction that has written stops the readers of the event log.
 */
const groupsOf = <Email extends { tenantId: string; id: string }>(emails: readonly Email[]): Email[][] => [
  ...Map.groupBy(emails, ({ tenantId, id }) => `${tenantId} ${Math.floor((emailIdTimeMs(id) ?? 0) / dayMs)}`).values(),
]

/** Of one group: tenant, first id, last id, and ids. */
function keysOf(group: readonly { tenantId: string; id: string }[]): unknown[] {
  const ids = group.map(({ id }) => id).sort()
  return [group[0]?.tenantId, ids[0], ids.at(-1), ids]
}

/** The parameters of one statement for each tenant and day: tenant, first id, last id, and ids. */
export const keysByDay = (emails: readonly { tenantId: string; id: string }[]): unknown[][] => groupsOf(emails).map(keysOf)

/** Blanks those of these emails that are still final and to this address (lower case), and returns them; the address no longer finds them. */
export async function eraseEmails(tx: Tx, address: string, emails: readonly ErasedEmail[]): Promise<ErasedEmail[]> {
  const erased: ErasedEmail[] = []
  for (const keys of keysByDay(emails)) erased.push(...(await tx.rows(blankEmails, [...keys, address, erasedAddress])))
  return erased
}

/** The number of emails to this address (lower case), in any status: one may have become final since `eraseEmails`. */
export const countNotErased = async (on: Queryable, address: string, tenantId: string | null): Promise<number> =>
  (await on.first(emailsLeft, [address, tenantId, erasedAddress]))?.emails ?? 0

/** Blanks forwarded copies of a person's mail, which are final, and returns them. */
export async function eraseCopies(tx: Tx, copies: readonly { tenantId: string; id: string }[]): Promise<ErasedEmail[]> {
  const erased: ErasedEmail[] = []
  for (const keys of keysByDay(copies)) erased.push(...(await tx.rows(blankCopies, [...keys, erasedAddress])))
  return erased
}

/** Contents that were sent to any erased recipient, in order after `after`. */
export const listErasedContents = (
  on: Queryable,
  tenantId: string | null,
  after: ErasedContent | undefined,
  maximum: number,
): Promise<ErasedContent[]> => on.rows(contentsOfErased, [erasedAddress, tenantId, after?.tenantId ?? '', after?.contentId ?? '', maximum])

/** In one order for all transactions that lock contents. */
function keysOfContents(contents: readonly ErasedContent[]): unknown[][] {
  const place = (one: ErasedContent) => `${one.tenantId} ${one.contentId}`
  const inOrder = contents.toSorted((one, other) => (place(one) < place(other) ? -1 : 1))
  return keysByDay(inOrder.map(({ tenantId, contentId }) => ({ tenantId, id: contentId })))
}

/** Waits for retries that use these contents; later ones find them deleted. Returns those that exist. */
export async function lockContents(tx: Tx, contents: readonly ErasedContent[]): Promise<ErasedContent[]> {
  const locked: ErasedContent[] = []
  for (const keys of keysOfContents(contents)) locked.push(...(await tx.rows(contentsForDeletion, keys)))
  return locked
}

/** Returns how many there were. */
export async function eraseContents(on: Queryable, contents: readonly ErasedContent[]): Promise<number> {
  let erased = 0
  for (const keys of keysOfContents(contents)) erased += await on.run(dropContents, keys)
  return erased
}

/** Recipients of one message share a conversation, so that the other recipients' attempts name this one too. */
export async function eraseFromConversations(on: Queryable, emails: readonly ErasedEmail[]): Promise<void> {
  for (const group of groupsOf(emails)) {
    const own = group.map(({ id }) => id)
    const tenantId = group[0]?.tenantId ?? ''
    const found = await on.rows(emailsOfMessages, [tenantId, [...new Set(group.map(({ contentId }) => contentId))]])
    const ids = [...new Set([...own, ...found.map(({ id }) => id)])]
    await on.run(blankAttempts, [...keysOf(ids.map((id) => ({ tenantId, id }))), own])
  }
}
