/** Emails by their sequential numbers, which webhooks send as `message.id` and the API of Postal takes as ids. */
import { type Queryable, sql } from '#db'
import { type Email, emailColumns } from './email-record.ts'

const numbersOfEmails = sql<{ id: string; number: number }>`
  select id, number
  from emails
  where tenant_id = any($1) and id = any($2)`

const emailByNumber = sql<Email & { number: number }>`
  select ${emailColumns}, number
  from emails
  where number = $1 and ($2::text is null or tenant_id = $2)
  limit 1`

const numberedEmailById = sql<Email & { number: number }>`
  select ${emailColumns}, number
  from emails
  where id = $1 and ($2::text is null or tenant_id = $2)`

/** The numbers of these emails of one tenant, by id. */
export async function findNumbers(on: Queryable, tenantId: string, ids: readonly string[]): Promise<Map<string, number>> {
  return new Map((await on.rows(numbersOfEmails, [[tenantId], ids])).map(({ id, number }) => [id, number]))
}

/** By number or id, if it exists and belongs to `tenantId` (null: any tenant). */
export const findNumberedEmail = (
  on: Queryable,
  wanted: { number: number } | { emailId: string },
  tenantId: string | null,
): Promise<(Email & { number: number }) | undefined> =>
  'number' in wanted ? on.first(emailByNumber, [wanted.number, tenantId]) : on.first(numberedEmailById, [wanted.emailId, tenantId])
