/**
 * Erases a person: what is queued for them fails, and of what was sent only the numbers stay. Their suppression stays too, so that they
 * are not written to again. Runs in small transactions and may be run again.
 */
import { domainToUnicode } from 'node:url'
import { forgetAnswersWith } from '#accept'
import type { Secrets } from '#base'
import type { Db, Tx } from '#db'
import { cancelQueued } from '#delivery'
import { type ErasedContent, eraseContents, eraseEmails, eraseFromConversations, listErasedContents } from '#emails'
import { eraseFromEvents } from '#events'
import { eraseFromLogs } from '#request-logs'
import { contentsStillQueued } from '#spool'
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
  await cancelQueued(db, { recipient: person, tenantId: tenantId ?? undefined }, 'the recipient was erased', nowMs)
  const total: Erased = { emails: 0, contents: 0, kept: 0 }
  for (;;) {
    const erased = await db.transaction((tx) => eraseSome(tx, person, tenantId))
    if (erased === 0) break
    total.emails += erased
    told(total.emails)
  }
  await eraseUnneeded(db, tenantId, total)
  await eraseFromDeliveries(db, person, tenantId)
  for (const spelling of spellingsOf(person)) {
    await eraseFromLogs({ db, secrets }, spelling, tenantId)
    await forgetAnswersWith(db, spelling)
  }
  return total
}

/** Requests and answers have an address as it was given: its domain with A-labels or in letters of its own. */
function spellingsOf(address: string): Set<string> {
  const at = address.lastIndexOf('@') + 1
  return new Set([address, address.slice(0, at) + domainToUnicode(address.slice(at))])
}

/** In one transaction: an email without its address leads nobody to its other traces. */
async function eraseSome(tx: Tx, person: string, tenantId: string | null): Promise<number> {
  const found = await eraseEmails(tx, person, tenantId, mostAtOnce)
  await eraseFromConversations(tx, found)
  await eraseFromEvents(tx, found)
  await eraseFromHits(tx, found)
  return found.length
}

/** Whatever was sent to people who were erased, now or before, and nobody waits for any more. */
async function eraseUnneeded(db: Db, tenantId: string | null, total: Erased): Promise<void> {
  let after: ErasedContent | undefined
  do {
    const some = await listErasedContents(db, tenantId, after, mostAtOnce)
    const queued = await contentsStillQueued(db, some)
    const free = some.filter((one) => !queued.has(one.contentId))
    total.contents += await eraseContents(db, free)
    total.kept += some.length - free.length
    after = some.at(-1)
  } while (after)
}
