/**
 * Returns the send-limit slots of emails that were not written, after a flush whose reply was lost.
 */
import { type Clock, pause } from '#base'
import type { Db } from '#db'
import { findEmail } from '#emails'
import type { GrantedSlots, Slots } from '#limits'
import type { Prepared } from './submission-rows.ts'

/** By then a statement whose reply was lost has ended too. */
const lookAgainMs = 15_000
/** Covers the hour that the slots belong to. */
const maxLooks = 240

interface UnwrittenDeps {
  db: Db
  clock: Clock
  slots: Slots
}

export async function giveBackUnwritten(
  submissions: readonly Prepared[],
  taken: GrantedSlots,
  { db, slots }: UnwrittenDeps,
): Promise<void> {
  const unwritten: number[] = []
  for (const [n, { tenantId, emails }] of submissions.entries())
    if (emails[0] && !(await findEmail(db, emails[0].id, tenantId))) unwritten.push(n)
  await slots.giveBack(taken, unwritten)
}

/** Used while the database is unavailable. Never rejects. */
export async function giveBackLater(submissions: readonly Prepared[], taken: GrantedSlots, deps: UnwrittenDeps): Promise<void> {
  for (let look = 0; look < maxLooks; look++) {
    await pause(deps.clock, lookAgainMs)
    const isDone = await giveBackUnwritten(submissions, taken, deps).then(
      () => true,
      () => false,
    )
    if (isDone) return
  }
}
