/**
 * Erases a person: what is queued for them fails, and of what was sent only the numbers stay. Their suppression stays too, so that they
 * are not written to again. Runs in small transactions and may be run again.
 */
import { forgetAnswersWith } from '#accept'
import type { Secrets } from '#base'
import type { Db } from '#db'
import { changeStatus, type ErasedEmail, eraseContents, eraseEmails, eraseFromConversations } from '#emails'
import { appendEvents, eraseFromEvents } from '#events'
import { eraseFromLogs } from '#request-logs'
import { contentsStillQueued, statusBefore, takeRecipient } from '#spool'
import { eraseFromHits } from '#tracking'
import { eraseFromDeliveries } from '#webhooks'

export interface Erased {
  /** Emails to the address of which only the numbers stay. */
  emails: number
  /** Messages removed. */
  contents: number
  /** Messages that other recipients still wait for; erase again when they have been delivered. */
  kept: number
}

const mostAtOnce = 500

/** `tenantId` null: in all tenants. `told` hears how many emails are done. */
export async function eraseAddress(
  { db, secrets }: { db: Db; secrets: Secrets },
  address: string,
  tenantId: string | null,
  nowMs: number,
  told: (emails: number) => void,
): Promise<Erased> {
  const person = address.toLowerCase()
  while ((await cancel(db, person, tenantId, nowMs)) === mostAtOnce);
  const total: Erased = { emails: 0, contents: 0, kept: 0 }
  for (;;) {
    const found = await eraseEmails(db, person, tenantId, mostAtOnce)
    if (found.length === 0) break
    await eraseTraces(db, found, total)
    told(total.emails)
  }
  await eraseFromDeliveries(db, person, tenantId)
  await eraseFromLogs({ db, secrets }, person, tenantId)
  await forgetAnswersWith(db, person)
  return total
}

function cancel(db: Db, person: string, tenantId: string | null, nowMs: number): Promise<number> {
  return db.transaction(async (tx) => {
    const taken = await takeRecipient(tx, person, tenantId, mostAtOnce)
    for (const one of taken)
      await changeStatus(tx, { tenantId: one.tenantId, id: one.emailId }, ['pending', 'softfail', 'held'], 'hardfail')
    const data = { details: 'the recipient was erased', output: '', secure: false, seconds: 0, classification: null }
    const at = new Date(nowMs)
    await appendEvents(
      tx,
      taken.map((one) => ({
        tenantId: one.tenantId,
        kind: 'MessageDeliveryFailed' as const,
        emailId: one.emailId,
        at,
        data: { ...data, classificationCode: null, enhanced: null, remoteHost: null, was: statusBefore(one) },
      })),
    )
    return taken.length
  })
}

async function eraseTraces(db: Db, found: readonly ErasedEmail[], total: Erased): Promise<void> {
  const queued = await contentsStillQueued(db, found)
  const free = found.filter((one) => !queued.has(one.contentId))
  total.contents += await eraseContents(db, free)
  total.kept += new Set(found.filter((one) => queued.has(one.contentId)).map((one) => one.contentId)).size
  await eraseFromConversations(db, found)
  await eraseFromEvents(db, found)
  await eraseFromHits(db, found)
  total.emails += found.length
}
