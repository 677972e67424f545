/** The loops of a delivery process that make deferred mail of its shards ready in time, and correct due times that are too far ahead. */
import { type Clock, type Log, type Loop, metrics, startLoop } from '#base'
import type { Db } from '#db'
import { type Leases, maxRetryMs, promote, type RetrySchedule, recall, type Wakefulness } from '#spool'
import { maxPostponeMs } from './egress/pool-wait.ts'

/** Interval of promotions while there was mail lately. */
const promoteMs = 250
/** The same without new mail. */
const asleepPromoteMs = 2000
/** How often to look for mail postponed too far by a process whose clock was fast. */
const recallMs = 60_000
/** Emails for one turn. */
const maxChanged = 2000

interface DueTimeDeps {
  db: Db
  clock: Clock
  log: Log
  leases: Leases
  schedule: RetrySchedule
  wakefulness: Wakefulness
  /** Mail has become ready. */
  nudge: () => void
}

export function startDueTimeLoops(deps: DueTimeDeps): Loop[] {
  const { clock, log } = deps
  return [
    startLoop({ clock, log, name: 'making deferred mail due', everyMs: promoteMs }, () => promoteDue(deps)),
    startLoop({ clock, log, name: 'correcting due times', everyMs: recallMs }, () => recallFar(deps)),
  ]
}

/** Returns the ms until the next turn. */
async function promoteDue({ db, clock, leases, wakefulness, nudge }: DueTimeDeps): Promise<number> {
  const shards = leases.owned()
  if (shards.length > 0 && (await promote(db, shards, clock.nowMs(), maxChanged)) > 0) {
    wakefulness.stayAwake()
    nudge()
  }
  return wakefulness.delayMs(promoteMs, asleepPromoteMs)
}

/** A row that is due later than the schedule can produce was written by a clock that was wrong. */
async function recallFar({ db, clock, log, leases, schedule }: DueTimeDeps): Promise<undefined> {
  const shards = leases.owned()
  if (shards.length === 0) return
  const nowMs = clock.nowMs()
  const maxWaitMs = Math.max(maxRetryMs(schedule), maxPostponeMs) + recallMs
  const emails = await recall(db, shards, nowMs + maxWaitMs, nowMs, maxChanged)
  if (emails === 0) return
  metrics.recalled.inc(emails)
  log.warn({ emails }, 'next attempts were beyond the retry schedule because a clock had been ahead; made due now')
}
