/**
 * Guarantee R16: mail queued in a restored backup may have been sent since. Therefore no such mail is sent and no webhook is called until
 * the operator resumes. Then all of it is sent and becomes final.
 */
import { type Db, sql } from '#db'
import { holdAfterRestore, resumeAfterRestore, resumePaused, resumeTenant } from '#delivery'
import { listQueuePauses, recordRestore } from '#spool'
import { listPauses } from '#tenants'
import type { Ledger } from './ledger.ts'
import type { Gate } from './serial-database.ts'
import type { Time } from './virtual-time.ts'

const openEmails = sql<{ open: number }>`
  select count(*) as open
  from emails
  where status in ('pending', 'softfail', 'held')`

export interface RestoringDeps {
  db: Db
  time: Time
  gate: Gate
  ledger: Ledger
  madeAtMs: number
  startAll: () => void
}

const leaps = 12
const leapMs = 600_000
const maxTurns = 600

export async function checkRestored({ db, time, gate, ledger, madeAtMs, startAll }: RestoringDeps): Promise<string[]> {
  const sent = () => [...ledger.copies.values()].reduce((sum, copies) => sum + copies.length, 0)
  const before = { sent: sent(), heard: ledger.heard.length }
  const goOn = async (wallMs: number) => {
    time.advance(600, wallMs)
    await gate.settle()
    for (let step = 0; step < 4; step++) {
      time.advance(150)
      await gate.settle()
    }
  }
  ledger.tell(`the backup of ${new Date(madeAtMs).toISOString()} is restored`)
  await recordRestore(db, new Date(madeAtMs), time.wallMs)
  await holdAfterRestore(db, time.wallMs)
  startAll()
  await gate.settle()
  for (let leap = 0; leap < leaps; leap++) await goOn(leapMs)
  const broken: string[] = []
  if (sent() !== before.sent) broken.push(`R16: ${sent() - before.sent} messages were sent after a restore, before anybody said so`)
  if (ledger.heard.length !== before.heard)
    broken.push(`R16: webhooks heard of ${ledger.heard.length - before.heard} events after a restore, before anybody said so`)
  await resumeAfterRestore(db, time.wallMs)
  // Queues paused at the time of the backup are paused again, so the operator must resume them again.
  for (const id of (await listPauses(db)).keys()) await resumeTenant(db, id, time.wallMs)
  for (const stop of await listQueuePauses(db)) await resumePaused(db, stop, time.wallMs)
  for (let turn = 0; turn < maxTurns; turn++) {
    await goOn(leapMs)
    if (((await db.first(openEmails))?.open ?? 0) === 0) return broken
  }
  return [...broken, 'R16: not everything of a restored backup became final after it was resumed']
}
