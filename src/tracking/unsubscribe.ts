/**
 * Unsubscribes a recipient from a tenant's mail by the link in an email.
 */
import type { Db } from '#db'
import { findEmail, isErased } from '#emails'
import { appendEvents } from '#events'
import { suppress } from '#suppressions'
import type { Tracked } from './link-tokens.ts'

/**
 * Suppresses the email's recipient for its tenant, and records it, unless that is already done: the link may be opened any number of times.
 * Returns false if the recipient is no longer known.
 */
export async function unsubscribe(db: Db, { tenantId, emailId }: Tracked, nowMs: number): Promise<boolean> {
  const email = await findEmail(db, emailId, tenantId)
  if (!email || isErased(email)) return false
  const { recipient: address } = email
  const at = new Date(nowMs)
  await db.transaction(async (tx) => {
    const added = await suppress(tx, [{ tenantId, address, reason: 'unsubscribe', at, emailId }])
    if (added.length > 0)
      await appendEvents(tx, [{ tenantId, kind: 'RecipientUnsubscribed', emailId, at, data: { simulated: email.test } }])
  })
  return true
}
