/**
 * Erases a person: their queued emails fail, and only counts remain of sent ones. Received messages from or to them are deleted, and their
 * forwarded copies are treated like emails to the person. The suppression stays, so that they get no further mail.
 * Runs in small transactions, none of which reads a whole table after it has written, and may be repeated.
 */
import { domainToUnicode } from 'node:url'
import { deleteResponsesWith } from '#accept'
import { addressHashesOf, type Secrets } from '#base'
import { listCredentialsOfOthers } from '#credentials'
import type { Db, Tx } from '#db'
import { cancelQueued } from '#delivery'
import {
  countNotErased,
  type ErasedContent,
  type ErasedEmail,
  eraseCopies,
  eraseEmails,
  eraseFromConversations,
  listEmailsTo,
  listErasedContents,
} from '#emails'
import { eraseAddressFromEvents, eraseFromEvents } from '#events'
import { eraseUnneededContents } from '#privacy'
import { eraseReceived, forgetForwardTarget, listReceivedOf, type ReceivedCopies } from '#received-mail'
import { eraseFromLogs } from '#request-logs'
import { contentsStillQueued } from '#spool'
import { eraseFromHits } from '#tracking'
import { eraseFromDeliveries } from '#webhooks'

export interface Erased {
  /** Emails to the address, and forwarded copies, that were reduced to counts. */
  emails: number
  /** Messages removed. */
  contents: number
  /**
   * Messages still needed by other recipients, or whose copy is being sent, and emails to the address that are being sent. Repeat the
   * erasure after their delivery: the next attempt of an email that fails now may be hours away, and the repetition cancels it.
   */
  kept: number
}

const maxAtOnce = 500

/** `tenantId` null: in all tenants. `progressed` is called with the number of processed emails. */
export async function eraseAddress(
  { db, secrets }: { db: Db; secrets: Secrets },
  address: string,
  tenantId: string | null,
  nowMs: number,
  progressed: (emails: number) => void,
): Promise<Erased> {
  const person = address.toLowerCase()
  await cancelQueued(db, { recipient: person, tenantId: tenantId ?? undefined }, 'the data of the recipient was erased', nowMs)
  const total: Erased = { emails: 0, contents: 0, kept: 0 }
  const names = [person, ...addressHashesOf(secrets, person)]
  for (const name of names)
    for (;;) {
      const found = await listEmailsTo(db, name, tenantId, maxAtOnce)
      if (found.length === 0) break
      total.emails += await eraseSome(db, name, found)
      progressed(total.emails)
    }
  await eraseReceivedMail(db, { person, tenantId, nowMs }, total)
  await forgetForwardTarget(db, person, tenantId)
  await eraseUnneeded(db, tenantId, total)
  total.kept += await countNotErased(db, person, tenantId)
  for (const name of names) {
    await eraseAddressFromEvents(db, name, tenantId)
    await eraseFromDeliveries(db, name, tenantId)
  }
  const ofOthers = tenantId === null ? [] : await listCredentialsOfOthers(db, tenantId)
  for (const spelling of [...names, ...spellingsOf(person)]) {
    await eraseFromLogs({ db, secrets }, spelling, tenantId)
    await deleteResponsesWith(db, spelling, ofOthers)
  }
  return total
}

/** Requests and responses contain the address as submitted: its domain as A-labels or in Unicode. */
function spellingsOf(address: string): Set<string> {
  const at = address.lastIndexOf('@') + 1
  return new Set([address, address.slice(0, at) + domainToUnicode(address.slice(at))])
}

/** Once an email has lost its address, its other traces can no longer be found: events before, the rest in the same transaction. */
async function eraseSome(db: Db, person: string, found: readonly ErasedEmail[]): Promise<number> {
  await eraseFromEvents(db, found)
  return db.transaction(async (tx) => {
    const erased = await eraseEmails(tx, person, found)
    await eraseTraces(tx, erased)
    return erased.length
  })
}

async function eraseTraces(tx: Tx, emails: readonly ErasedEmail[]): Promise<void> {
  await eraseFromConversations(tx, emails)
  await eraseFromHits(tx, emails)
}

const copiesOf = (messages: readonly ReceivedCopies[]) =>
  messages.flatMap(({ tenantId, forwarded }) => forwarded.map(({ emailId }) => ({ tenantId, id: emailId, contentId: emailId })))

/** A message whose copy is being sent stays: only the message names the copy. */
async function eraseReceivedMail(
  db: Db,
  { person, tenantId, nowMs }: { person: string; tenantId: string | null; nowMs: number },
  total: Erased,
): Promise<void> {
  for (let some = await listReceivedOf(db, person, tenantId, undefined); some.length > 0; ) {
    for (const emailId of await contentsStillQueued(db, copiesOf(some)))
      await cancelQueued(db, { emailId }, 'the data of the author was erased', nowMs)
    const sending = await contentsStillQueued(db, copiesOf(some))
    const free = some.filter(({ forwarded }) => !forwarded.some(({ emailId }) => sending.has(emailId)))
    await eraseFromEvents(db, copiesOf(free))
    total.emails += await db.transaction(async (tx) => {
      const copies = await eraseCopies(tx, copiesOf(await eraseReceived(tx, free)))
      await eraseTraces(tx, copies)
      return copies.length
    })
    total.kept += some.length - free.length
    some = await listReceivedOf(db, person, tenantId, some.at(-1))
  }
}

/** Deletes all content sent to erased people, now or earlier, that no queued recipient needs. */
async function eraseUnneeded(db: Db, tenantId: string | null, total: Erased): Promise<void> {
  let after: ErasedContent | undefined
  do {
    const some = await listErasedContents(db, tenantId, after, maxAtOnce)
    const { deleted, kept } = await eraseUnneededContents(db, some)
    total.contents += deleted
    total.kept += kept
    after = some.at(-1)
  } while (after)
}
