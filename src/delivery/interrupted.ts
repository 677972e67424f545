/**
 * Orphaned claims: rows claimed in the spool but not in flight, because an earlier owner was lost or the reply to a claim was. The mail
 * may have been sent, so the attempt is recorded as unknown and retried at once.
 */
import type { Clock, Ids, Log } from '#base'
import type { Db } from '#db'
import { findInterrupted, type OwnedShard, type RetrySchedule } from '#spool'
import type { Hands } from './hands.ts'
import { decide, type Finding, unsaid, untried } from './outcome.ts'
import type { Recorder } from './record.ts'

const mostAtOnce = 500

const lost: Finding = { ...unsaid, kind: 'unknown', message: 'the delivering process was lost before it recorded an outcome' }

export interface InterruptedDeps {
  db: Db
  clock: Clock
  ids: Ids
  log: Log
  schedule: RetrySchedule
  hands: Hands
  recorder: Recorder
}

export async function recordInterrupted(shards: readonly OwnedShard[], deps: InterruptedDeps): Promise<void> {
  const inHand = deps.hands.all().map((one) => one.emailId)
  const found = await findInterrupted(deps.db, shards, inHand, mostAtOnce)
  if (found.length === 0) return
  deps.log.warn({ emails: found.length }, 'their delivering process was lost; their outcome is unknown')
  const facts = untried(deps, 'at once')
  await deps.recorder.record(found.map((one) => decide(one, lost, facts)))
}
