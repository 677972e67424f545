/**
 * The fields of an email for webhooks and event streams, as far as its record still exists.
 */
import { type Queryable, sql } from '#db'
import type { Email } from './email-record.ts'

export interface WebhookFields
  extends Pick<
    Email,
    'tenantId' | 'id' | 'contentId' | 'recipient' | 'sender' | 'subject' | 'tag' | 'metadata' | 'messageId' | 'acceptedAt' | 'test'
  > {
  /** A sequential number, in addition to the API's id. */
  number: number
}

/** One lookup for each email, independent of the planner's estimate: each reads one time partition. */
const factsOfEmails = sql<WebhookFields>`
  select email.*
  from unnest($1::text[], $2::text[]) as wanted (tenant_id, id),
    lateral (
      select tenant_id as "tenantId", id, content_id as "contentId", number, recipient, sender, subject, tag, metadata,
        message_id as "messageId", accepted_at as "acceptedAt", test
      from emails
      where emails.tenant_id = wanted.tenant_id and emails.id = wanted.id
      limit 1
    ) as email`

/** By email id; emails beyond their retention or of another tenant are missing. */
export async function findWebhookFields(
  on: Queryable,
  wanted: readonly { tenantId: string; id: string }[],
): Promise<Map<string, WebhookFields>> {
  if (wanted.length === 0) return new Map()
  const rows = await on.rows(factsOfEmails, [wanted.map((one) => one.tenantId), wanted.map((one) => one.id)])
  return new Map(rows.map((row) => [row.id, row]))
}
