/**
 * Messages as other vendors count them: all emails of one submission, under the id of its first recipient's email, which is the id of the
 * content. All ids of a submission begin with the same time, so that one range of ids has them all.
 */
import { emailIdPrefix, emailIdTimeMs } from '#base'
import { type Queryable, type Sql, sql } from '#db'
import { type Email, emailColumns } from './email-record.ts'

const emailsOfMessage = sql<Email & { number: number }>`
  select ${emailColumns}, number
  from emails
  where tenant_id = $1 and content_id = $2 and id >= $3 and id < $4
  order by number`

const emailOfMessage = sql<{ tenantId: string; contentId: string }>`
  select tenant_id as "tenantId", content_id as "contentId"
  from emails
  where id = $1 and ($2::text is null or tenant_id = $2)`

const isQueued = sql.part`status in ('pending', 'softfail')`

/**
 * The condition that an email stands for its message: it is the one of the first recipient, unless the emails are those of one recipient, whom a
 * message has once. `state` is null (every email stands for itself), 'any', 'queued' (no recipient has a result yet) or 'sent' (all others).
 */
export const standsForMessage = (state: Sql<unknown>, recipient: Sql<unknown>) => {
  const hasResult = sql.part`exists (
    select
    from emails as other
    where other.tenant_id = emails.tenant_id and other.content_id = emails.content_id and other.id >= left(emails.content_id, 8)
      and other.id < left(emails.content_id, 8) || '~' and other.status not in ('pending', 'softfail'))`
  return sql.part`(
    ${state}::text is null
    or (${recipient}::text is not null or id = content_id)
      and case ${state}
        when 'queued' then ${isQueued} and not ${hasResult}
        when 'sent' then not ${isQueued} or ${hasResult}
        else true
      end)`
}

/** A tenant's page is read from its primary key, which a filter by an optional tenant would not use. */
const pagesOf = (scope: Sql<unknown>) => ({
  newestFirst: sql<Email>`
    select ${emailColumns}
    from emails
    where ${scope} and id = content_id and id > $2 and id < $3
    order by id desc
    limit $4`,
  oldestFirst: sql<Email>`
    select ${emailColumns}
    from emails
    where ${scope} and id = content_id and id > $2 and id < $3
    order by id
    limit $4`,
})
const pagesOfTenant = pagesOf(sql.part`tenant_id = $1`)
const pagesOfAll = pagesOf(sql.part`$1::text is null`)

const recipientsOfMessages = sql<{ contentId: string; recipient: string; status: Email['status'] }>`
  select email.*
  from unnest($1::text[], $2::text[], $3::text[]) as message (tenant_id, id, until),
    lateral (
      select content_id as "contentId", recipient, status
      from emails
      where emails.tenant_id = message.tenant_id and emails.content_id = message.id and emails.id >= left(message.id, 8)
        and emails.id < message.until
      order by number
    ) as email`

const messageIds = sql<{ id: string; contentId: string }>`
  select id, content_id as "contentId"
  from emails
  where tenant_id = any($1) and id = any($2)`

/** After every id. */
const lastId = '~'

const endOf = (id: string) => emailIdPrefix((emailIdTimeMs(id) ?? 0) + 1)

/** All emails of the message to which the email `id` belongs, in the order of the recipients; empty if `tenantId` does not have it. */
export async function listEmailsOfMessage(
  on: Queryable,
  id: string,
  tenantId: string | null,
): Promise<readonly (Email & { number: number })[]> {
  if (emailIdTimeMs(id) === undefined) return []
  const message = await on.first(emailOfMessage, [id, tenantId])
  if (!message) return []
  const { contentId } = message
  return on.rows(emailsOfMessage, [message.tenantId, contentId, contentId.slice(0, 8), endOf(contentId)])
}

/**
 * Up to `most` messages, newest first, by their first recipient's emails: those older than the id `after`, or the nearest ones that are
 * newer than `before`.
 */
export async function listMessages(
  on: Queryable,
  { tenantId, after, before, most }: { tenantId: string | null; after?: string | undefined; before?: string | undefined; most: number },
): Promise<Email[]> {
  const { newestFirst, oldestFirst } = tenantId === null ? pagesOfAll : pagesOfTenant
  if (before !== undefined) return (await on.rows(oldestFirst, [tenantId, before, lastId, most])).reverse()
  return on.rows(newestFirst, [tenantId, '', after ?? lastId, most])
}

/** The recipients and statuses of these messages, by message id. */
export async function findMessageRecipients(
  on: Queryable,
  messages: readonly Pick<Email, 'tenantId' | 'contentId'>[],
): Promise<Map<string, { recipient: string; status: Email['status'] }[]>> {
  const rows = await on.rows(recipientsOfMessages, [
    messages.map((one) => one.tenantId),
    messages.map((one) => one.contentId),
    messages.map((one) => endOf(one.contentId)),
  ])
  return Map.groupBy(rows, ({ contentId }) => contentId)
}

/** The ids of these emails' messages, by email id. */
export async function findMessageIds(on: Queryable, emails: readonly { tenantId: string; id: string }[]): Promise<Map<string, string>> {
  if (emails.length === 0) return new Map()
  const rows = await on.rows(messageIds, [[...new Set(emails.map((one) => one.tenantId))], emails.map((one) => one.id)])
  return new Map(rows.map(({ id, contentId }) => [id, contentId]))
}
