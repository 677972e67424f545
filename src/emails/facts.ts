/** What is told of an email to those outside who hear of its events: as much as its record still holds. */
import { type Queryable, sql } from '#db'
import type { Email } from './record.ts'

export interface EmailFacts
  extends Pick<Email, 'tenantId' | 'id' | 'recipient' | 'sender' | 'subject' | 'tag' | 'metadata' | 'messageId' | 'acceptedAt'> {
  /** A number of its own, besides the id of the API. */
  number: number
}

/** One look-up for each email, whatever the planner knows of the table: each touches one time partition. */
const factsOfEmails = sql<EmailFacts>`
  select email.*
  from unnest($1::text[], $2::text[]) as wanted (tenant_id, id),
    lateral (
      select tenant_id as "tenantId", id, number, recipient, sender, subject, tag, metadata, message_id as "messageId", accepted_at as "acceptedAt"
      from emails
      where emails.tenant_id = wanted.tenant_id and emails.id = wanted.id
      limit 1
    ) as email`

/** By email id; what has passed its retention, or belongs to another tenant, is not there. */
export async function findEmailFacts(on: Queryable, wanted: readonly { tenantId: string; id: string }[]): Promise<Map<string, EmailFacts>> {
  if (wanted.length === 0) return new Map()
  const rows = await on.rows(factsOfEmails, [wanted.map((one) => one.tenantId), wanted.map((one) => one.id)])
  return new Map(rows.map((row) => [row.id, row]))
}
