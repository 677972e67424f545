/** A manual retry (contract section 7.10): the email goes back to pending, ready now, and skips the suppression check. */
import { Refusal } from '#base'
import type { Db } from '#db'
import { changeStatus, findEmail, forgetCancellation, keepContent, retryableStatuses } from '#emails'
import { appendEvents } from '#events'
import { queueRetry, shardOf } from '#spool'
import type { Tenants } from '#tenants'
import { refuseOtherSenders, refuseUnlessActive, storedSenderOf } from './authorize-sender.ts'
import type { MailScope } from './submission.ts'

export interface RetriedEmail {
  id: string
  tenantId: string
}

export async function retry(
  emailId: string,
  { tenantId, allowedFrom }: MailScope,
  { db, tenants, nowMs }: { db: Db; tenants: Tenants; nowMs: number },
): Promise<RetriedEmail> {
  const email = await findEmail(db, emailId, tenantId)
  if (!email) throw new Refusal('not_found', { message: `no such email: ${emailId.slice(0, 40)}` })
  refuseOtherSenders(storedSenderOf(email), { allowedFrom }, 'from')
  const tenant = await tenants.find(email.tenantId)
  if (tenant) refuseUnlessActive(tenant)
  const refuse = (status: string) =>
    new Refusal('email_not_retryable', { message: `the email is ${status}: only ${retryableStatuses.join(', ')} can be retried` })
  const isBeingSent = () => new Refusal('email_not_retryable', { message: 'the email is being sent: wait for the end of this attempt' })
  if (!retryableStatuses.includes(email.status)) throw refuse(email.status)
  await db.transaction(async (tx) => {
    const sizeOctets = await keepContent(tx, email)
    if (sizeOctets === undefined) throw new Refusal('email_content_expired')
    if (!(await queueRetry(tx, { ...email, sizeOctets }, shardOf(email.contentId)))) throw isBeingSent()
    if (!(await changeStatus(tx, email, [email.status], 'pending'))) throw refuse('no longer in that status')
    if (email.cancelledAt) await forgetCancellation(tx, email)
    const event = { tenantId: email.tenantId, emailId: email.id, at: new Date(nowMs), data: { was: email.status } }
    await appendEvents(tx, [{ ...event, kind: 'EmailRetried' }])
  })
  return { id: email.id, tenantId: email.tenantId }
}
