/**
 * Orphaned claims: rows claimed in the spool but not in flight, because an earlier owner was lost or the reply to a claim was. The mail
 * may have been sent, so the attempt is recorded as unknown and retried at once.
 */
import type { Clock, Ids, Log } from '#base'
import type { Db } from '#db'
import { findOrphanedClaims, type OrphanedClaim, type OwnedShard, type RetrySchedule } from '#spool'
import { type AttemptResult, decideOutcome, noReply, withoutAttempt } from './attempt-outcome.ts'
import type { InFlight } from './in-flight.ts'
import type { Recorder } from './record-outcomes.ts'

const maxAtOnce = 500

const lost: AttemptResult = { ...noReply, kind: 'unknown', message: 'the delivery process ended before it recorded an outcome' }

export interface OrphanedClaimsDeps {
  db: Db
  clock: Clock
  ids: Ids
  log: Log
  schedule: RetrySchedule
  inFlight: InFlight
  recorder: Recorder
  /** The transport of claims that took no other; undefined: the installation has no transport rules. */
  defaultTransport: string | undefined
}

export async function recordOrphanedClaims(shards: readonly OwnedShard[], deps: OrphanedClaimsDeps): Promise<void> {
  const inFlightIds = deps.inFlight.all().map((one) => one.emailId)
  const found = await findOrphanedClaims(deps.db, shards, inFlightIds, maxAtOnce)
  if (found.length === 0) return
  deps.log.warn({ emails: found.length }, 'the delivery process of these recipients ended; their outcome is unknown')
  const facts = withoutAttempt(deps, 'at once')
  const transportOf = ({ test, transport }: OrphanedClaim) => (test ? undefined : (transport ?? deps.defaultTransport))
  await deps.recorder.record(found.map((one) => decideOutcome(one, lost, { ...facts, transport: transportOf(one) })))
}
