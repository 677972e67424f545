/**
 * Recognises the copy that a route forwarded.
 */
import { type Queryable, sql } from '#db'
import type { Email } from './email-record.ts'

const withoutCredential = sql<{ id: string }>`
  select id
  from emails
  where tenant_id = $1 and id = $2 and credential_id is null`

/**
 * Only copies have the sender postmaster@ and no credential, except for rare mail from the queue of another program. Received messages name
 * their copies, but are deleted earlier than emails.
 */
export const isForwardedCopy = async (on: Queryable, { tenantId, id, sender }: Email): Promise<boolean> =>
  sender.startsWith('postmaster@') && (await on.first(withoutCredential, [tenantId, id])) !== undefined
