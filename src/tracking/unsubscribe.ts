/**
 * Unsubscribes a recipient from a tenant's mail by the link in an email.
 */
import type { Db } from '#db'
import { findEmail, isErased } from '#emails'
import { suppress } from '#suppressions'
import type { Tracked } from './link-tokens.ts'

/** Suppresses the email's recipient for its tenant, unless that is already done; false if the recipient is no longer known. */
export async function unsubscribe(db: Db, { tenantId, emailId }: Tracked, nowMs: number): Promise<boolean> {
  const email = await findEmail(db, emailId, tenantId)
  if (!email || isErased(email)) return false
  const { recipient: address } = email
  await db.transaction((tx) => suppress(tx, [{ tenantId, address, reason: 'unsubscribe', at: new Date(nowMs), emailId }]))
  return true
}
